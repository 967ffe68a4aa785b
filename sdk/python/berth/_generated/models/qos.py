from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Qos")


@_attrs_define
class Qos:
    """Quality of service: a priority and limits that jobs choose by name.

    Attributes:
        name (str):
        priority (int | Unset): Relative priority; the highest of all QOS counts as 1.0.
        max_time_seconds (int | None | Unset):
        allow_tenants (list[str] | Unset): Tenants that may use it; empty: all.
        description (None | str | Unset):
    """

    name: str
    priority: int | Unset = UNSET
    max_time_seconds: int | None | Unset = UNSET
    allow_tenants: list[str] | Unset = UNSET
    description: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        priority = self.priority

        max_time_seconds: int | None | Unset
        if isinstance(self.max_time_seconds, Unset):
            max_time_seconds = UNSET
        else:
            max_time_seconds = self.max_time_seconds

        allow_tenants: list[str] | Unset = UNSET
        if not isinstance(self.allow_tenants, Unset):
            allow_tenants = self.allow_tenants

        description: None | str | Unset
        if isinstance(self.description, Unset):
            description = UNSET
        else:
            description = self.description

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if priority is not UNSET:
            field_dict["priority"] = priority
        if max_time_seconds is not UNSET:
            field_dict["max_time_seconds"] = max_time_seconds
        if allow_tenants is not UNSET:
            field_dict["allow_tenants"] = allow_tenants
        if description is not UNSET:
            field_dict["description"] = description

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        priority = d.pop("priority", UNSET)

        def _parse_max_time_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_time_seconds = _parse_max_time_seconds(d.pop("max_time_seconds", UNSET))

        allow_tenants = cast(list[str], d.pop("allow_tenants", UNSET))

        def _parse_description(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        description = _parse_description(d.pop("description", UNSET))

        qos = cls(
            name=name,
            priority=priority,
            max_time_seconds=max_time_seconds,
            allow_tenants=allow_tenants,
            description=description,
        )

        return qos
