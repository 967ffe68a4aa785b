from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="User")


@_attrs_define
class User:
    """
    Attributes:
        tenant (str):
        name (str):
        is_suspended (bool): A suspended user cannot submit.
        default_account (None | str | Unset):
    """

    tenant: str
    name: str
    is_suspended: bool
    default_account: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        tenant = self.tenant

        name = self.name

        is_suspended = self.is_suspended

        default_account: None | str | Unset
        if isinstance(self.default_account, Unset):
            default_account = UNSET
        else:
            default_account = self.default_account

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tenant": tenant,
                "name": name,
                "is_suspended": is_suspended,
            }
        )
        if default_account is not UNSET:
            field_dict["default_account"] = default_account

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        tenant = d.pop("tenant")

        name = d.pop("name")

        is_suspended = d.pop("is_suspended")

        def _parse_default_account(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        default_account = _parse_default_account(d.pop("default_account", UNSET))

        user = cls(
            tenant=tenant,
            name=name,
            is_suspended=is_suspended,
            default_account=default_account,
        )

        user.additional_properties = d
        return user

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
