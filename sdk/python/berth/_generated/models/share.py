from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.fairshare_type_1 import FairshareType1
from ..types import UNSET, Unset

T = TypeVar("T", bound="Share")


@_attrs_define
class Share:
    """One line of the share tree, in the order of a walk from the root.

    Attributes:
        tenant (str):
        depth (int): Steps below the root: 1 for a tenant.
        fairshare (FairshareType1 | int): Shares beside the siblings' (default 1), or "parent".
        norm_shares (float): Shares ÷ the siblings' sum, itself included.
        raw_usage (float): Decayed billing-seconds of all below it.
        effective_usage (float): Part of the parent's usage.
        account (None | str | Unset):
        user (None | str | Unset):
        level_fs (float | None | Unset): norm_shares ÷ effective_usage; absent where nothing was used: no share is
            better.
        factor (float | None | Unset): The factor in priorities, 0 to 1; users alone have one.
    """

    tenant: str
    depth: int
    fairshare: FairshareType1 | int
    norm_shares: float
    raw_usage: float
    effective_usage: float
    account: None | str | Unset = UNSET
    user: None | str | Unset = UNSET
    level_fs: float | None | Unset = UNSET
    factor: float | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        tenant = self.tenant

        depth = self.depth

        fairshare: int | str
        if isinstance(self.fairshare, FairshareType1):
            fairshare = self.fairshare.value
        else:
            fairshare = self.fairshare

        norm_shares = self.norm_shares

        raw_usage = self.raw_usage

        effective_usage = self.effective_usage

        account: None | str | Unset
        if isinstance(self.account, Unset):
            account = UNSET
        else:
            account = self.account

        user: None | str | Unset
        if isinstance(self.user, Unset):
            user = UNSET
        else:
            user = self.user

        level_fs: float | None | Unset
        if isinstance(self.level_fs, Unset):
            level_fs = UNSET
        else:
            level_fs = self.level_fs

        factor: float | None | Unset
        if isinstance(self.factor, Unset):
            factor = UNSET
        else:
            factor = self.factor

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tenant": tenant,
                "depth": depth,
                "fairshare": fairshare,
                "norm_shares": norm_shares,
                "raw_usage": raw_usage,
                "effective_usage": effective_usage,
            }
        )
        if account is not UNSET:
            field_dict["account"] = account
        if user is not UNSET:
            field_dict["user"] = user
        if level_fs is not UNSET:
            field_dict["level_fs"] = level_fs
        if factor is not UNSET:
            field_dict["factor"] = factor

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        tenant = d.pop("tenant")

        depth = d.pop("depth")

        def _parse_fairshare(data: object) -> FairshareType1 | int:
            try:
                if not isinstance(data, str):
                    raise TypeError()
                componentsschemas_fairshare_type_1 = FairshareType1(data)

                return componentsschemas_fairshare_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FairshareType1 | int, data)

        fairshare = _parse_fairshare(d.pop("fairshare"))

        norm_shares = d.pop("norm_shares")

        raw_usage = d.pop("raw_usage")

        effective_usage = d.pop("effective_usage")

        def _parse_account(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        account = _parse_account(d.pop("account", UNSET))

        def _parse_user(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user = _parse_user(d.pop("user", UNSET))

        def _parse_level_fs(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        level_fs = _parse_level_fs(d.pop("level_fs", UNSET))

        def _parse_factor(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        factor = _parse_factor(d.pop("factor", UNSET))

        share = cls(
            tenant=tenant,
            depth=depth,
            fairshare=fairshare,
            norm_shares=norm_shares,
            raw_usage=raw_usage,
            effective_usage=effective_usage,
            account=account,
            user=user,
            level_fs=level_fs,
            factor=factor,
        )

        share.additional_properties = d
        return share

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
