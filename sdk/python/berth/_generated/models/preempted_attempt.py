from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.preempt_mode import PreemptMode
from ..types import UNSET, Unset

T = TypeVar("T", bound="PreemptedAttempt")


@_attrs_define
class PreemptedAttempt:
    """An attempt that had to make room.

    Attributes:
        for_job (int): A job's number. Never reused.
        mode (PreemptMode): What becomes of a preempted job (Slurm's PreemptMode).
        at (datetime.datetime): When it was told to stop.
        kill_at (datetime.datetime): End of its grace: it is killed then.
        attempt (int):
        reclaimed (bool | Unset): The other job's tenant took back what it had lent.
    """

    for_job: int
    mode: PreemptMode
    at: datetime.datetime
    kill_at: datetime.datetime
    attempt: int
    reclaimed: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        for_job = self.for_job

        mode = self.mode.value

        at = self.at.isoformat()

        kill_at = self.kill_at.isoformat()

        attempt = self.attempt

        reclaimed = self.reclaimed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "for_job": for_job,
                "mode": mode,
                "at": at,
                "kill_at": kill_at,
                "attempt": attempt,
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

        attempt = d.pop("attempt")

        reclaimed = d.pop("reclaimed", UNSET)

        preempted_attempt = cls(
            for_job=for_job,
            mode=mode,
            at=at,
            kill_at=kill_at,
            attempt=attempt,
            reclaimed=reclaimed,
        )

        preempted_attempt.additional_properties = d
        return preempted_attempt

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
