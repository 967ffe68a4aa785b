from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PutUser")


@_attrs_define
class PutUser:
    """
    Attributes:
        default_account (None | str | Unset):
        is_suspended (bool | Unset):
    """

    default_account: None | str | Unset = UNSET
    is_suspended: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        default_account: None | str | Unset
        if isinstance(self.default_account, Unset):
            default_account = UNSET
        else:
            default_account = self.default_account

        is_suspended = self.is_suspended

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if default_account is not UNSET:
            field_dict["default_account"] = default_account
        if is_suspended is not UNSET:
            field_dict["is_suspended"] = is_suspended

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_default_account(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        default_account = _parse_default_account(d.pop("default_account", UNSET))

        is_suspended = d.pop("is_suspended", UNSET)

        put_user = cls(
            default_account=default_account,
            is_suspended=is_suspended,
        )

        return put_user
