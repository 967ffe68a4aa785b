from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ArrayView")


@_attrs_define
class ArrayView:
    """An array's own part.

    Attributes:
        tasks (int):
        pending (str): Indices that have not started: `3-9,12`.
        pending_tasks (int): How many they are.
        throttle (int | None | Unset): Most tasks at once.
        cancelled (None | str | Unset): Indices that were cancelled together while they waited; they have no jobs of
            their own.
    """

    tasks: int
    pending: str
    pending_tasks: int
    throttle: int | None | Unset = UNSET
    cancelled: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        tasks = self.tasks

        pending = self.pending

        pending_tasks = self.pending_tasks

        throttle: int | None | Unset
        if isinstance(self.throttle, Unset):
            throttle = UNSET
        else:
            throttle = self.throttle

        cancelled: None | str | Unset
        if isinstance(self.cancelled, Unset):
            cancelled = UNSET
        else:
            cancelled = self.cancelled

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tasks": tasks,
                "pending": pending,
                "pending_tasks": pending_tasks,
            }
        )
        if throttle is not UNSET:
            field_dict["throttle"] = throttle
        if cancelled is not UNSET:
            field_dict["cancelled"] = cancelled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        tasks = d.pop("tasks")

        pending = d.pop("pending")

        pending_tasks = d.pop("pending_tasks")

        def _parse_throttle(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        throttle = _parse_throttle(d.pop("throttle", UNSET))

        def _parse_cancelled(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        cancelled = _parse_cancelled(d.pop("cancelled", UNSET))

        array_view = cls(
            tasks=tasks,
            pending=pending,
            pending_tasks=pending_tasks,
            throttle=throttle,
            cancelled=cancelled,
        )

        array_view.additional_properties = d
        return array_view

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
