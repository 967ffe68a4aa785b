from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.preempt_mode import PreemptMode
from ..types import UNSET, Unset

T = TypeVar("T", bound="Preempted")


@_attrs_define
class Preempted:
    """That an attempt was preempted.

    Attributes:
        for_job (int): A job's number. Never reused.
        mode (PreemptMode): What becomes of a preempted job (Slurm's PreemptMode).
        at (datetime.datetime): When it was told to stop.
        kill_at (datetime.datetime): End of its grace: it is killed then.
        reclaimed (bool | Unset): The other job's tenant took back what it had lent.
    """

    for_job: int
    mode: PreemptMode
    at: datetime.datetime
    kill_at: datetime.datetime
    reclaimed: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        for_job = self.for_job

        mode = self.mode.value

        at = self.at.isoformat()

        kill_at = self.kill_at.isoformat()

        reclaimed = self.reclaimed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "for_job": for_job,
                "mode": mode,
                "at": at,
                "kill_at": kill_at,
            }
        )
        if reclaimed is not UNSET:
            field_dict["reclaimed"] = reclaimed

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        for_job = d.pop("for_job")

        mode = PreemptMode(d.pop("mode"))

        at = datetime.datetime.fromisoformat(d.pop("at"))

        kill_at = datetime.datetime.fromisoformat(d.pop("kill_at"))

        reclaimed = d.pop("reclaimed", UNSET)

        preempted = cls(
            for_job=for_job,
            mode=mode,
            at=at,
            kill_at=kill_at,
            reclaimed=reclaimed,
        )

        preempted.additional_properties = d
        return preempted

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
