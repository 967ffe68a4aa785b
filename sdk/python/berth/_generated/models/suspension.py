from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="Suspension")


@_attrs_define
class Suspension:
    """That an attempt was told to stand still: its processes are frozen, its CPUs are for others, all else it keeps.

    Attributes:
        number (int): Counts the attempt's suspensions from 1.
        at (datetime.datetime): When it was told.
        since (datetime.datetime | None | Unset): Since when it stands still on all its nodes; absent: not yet.
        for_job (int | None | Unset):
        is_held (bool | Unset): It goes on only when a person says so.
    """

    number: int
    at: datetime.datetime
    since: datetime.datetime | None | Unset = UNSET
    for_job: int | None | Unset = UNSET
    is_held: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        number = self.number

        at = self.at.isoformat()

        since: None | str | Unset
        if isinstance(self.since, Unset):
            since = UNSET
        elif isinstance(self.since, datetime.datetime):
            since = self.since.isoformat()
        else:
            since = self.since

        for_job: int | None | Unset
        if isinstance(self.for_job, Unset):
            for_job = UNSET
        else:
            for_job = self.for_job

        is_held = self.is_held

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "number": number,
                "at": at,
            }
        )
        if since is not UNSET:
            field_dict["since"] = since
        if for_job is not UNSET:
            field_dict["for_job"] = for_job
        if is_held is not UNSET:
            field_dict["is_held"] = is_held

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        number = d.pop("number")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        def _parse_since(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                since_type_0 = datetime.datetime.fromisoformat(data)

                return since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        since = _parse_since(d.pop("since", UNSET))

        def _parse_for_job(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        for_job = _parse_for_job(d.pop("for_job", UNSET))

        is_held = d.pop("is_held", UNSET)

        suspension = cls(
            number=number,
            at=at,
            since=since,
            for_job=for_job,
            is_held=is_held,
        )

        suspension.additional_properties = d
        return suspension

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
