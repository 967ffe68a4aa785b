from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="UpdateTenant")


@_attrs_define
class UpdateTenant:
    """
    Attributes:
        display_name (None | str | Unset):
        is_suspended (bool | None | Unset):
    """

    display_name: None | str | Unset = UNSET
    is_suspended: bool | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        display_name: None | str | Unset
        if isinstance(self.display_name, Unset):
            display_name = UNSET
        else:
            display_name = self.display_name

        is_suspended: bool | None | Unset
        if isinstance(self.is_suspended, Unset):
            is_suspended = UNSET
        else:
            is_suspended = self.is_suspended

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if display_name is not UNSET:
            field_dict["display_name"] = display_name
        if is_suspended is not UNSET:
            field_dict["is_suspended"] = is_suspended

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_display_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        display_name = _parse_display_name(d.pop("display_name", UNSET))

        def _parse_is_suspended(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        is_suspended = _parse_is_suspended(d.pop("is_suspended", UNSET))

        update_tenant = cls(
            display_name=display_name,
            is_suspended=is_suspended,
        )

        return update_tenant
