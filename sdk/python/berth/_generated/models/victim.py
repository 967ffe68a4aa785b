from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.preempt_mode import PreemptMode

T = TypeVar("T", bound="Victim")


@_attrs_define
class Victim:
    """A job that had to make room.

    Attributes:
        job (int):
        mode (PreemptMode): What becomes of a preempted job (Slurm's PreemptMode).
        at (datetime.datetime):
        own (bool): It is the caller's tenant's own.
    """

    job: int
    mode: PreemptMode
    at: datetime.datetime
    own: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job = self.job

        mode = self.mode.value

        at = self.at.isoformat()

        own = self.own

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job": job,
                "mode": mode,
                "at": at,
                "own": own,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        job = d.pop("job")

        mode = PreemptMode(d.pop("mode"))

        at = datetime.datetime.fromisoformat(d.pop("at"))

        own = d.pop("own")

        victim = cls(
            job=job,
            mode=mode,
            at=at,
            own=own,
        )

        victim.additional_properties = d
        return victim

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
