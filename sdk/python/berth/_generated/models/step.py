from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.job_state import JobState
from ..types import UNSET, Unset

T = TypeVar("T", bound="Step")


@_attrs_define
class Step:
    """A step of a job.

    Attributes:
        step_id (str): `batch`, or the step's number as text
        attempt (int):
        name (str):
        state (JobState): State of a job or of one attempt. The first five are live, the others are ends.
        tasks (int):
        nodes (str):
        created_at (datetime.datetime):
        cpu_microseconds (int):
        memory_peak_bytes (int):
        started_at (datetime.datetime | None | Unset):
        ended_at (datetime.datetime | None | Unset):
        exit_code (int | None | Unset):
        exit_signal (int | None | Unset):
    """

    step_id: str
    attempt: int
    name: str
    state: JobState
    tasks: int
    nodes: str
    created_at: datetime.datetime
    cpu_microseconds: int
    memory_peak_bytes: int
    started_at: datetime.datetime | None | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET
    exit_code: int | None | Unset = UNSET
    exit_signal: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        step_id = self.step_id

        attempt = self.attempt

        name = self.name

        state = self.state.value

        tasks = self.tasks

        nodes = self.nodes

        created_at = self.created_at.isoformat()

        cpu_microseconds = self.cpu_microseconds

        memory_peak_bytes = self.memory_peak_bytes

        started_at: None | str | Unset
        if isinstance(self.started_at, Unset):
            started_at = UNSET
        elif isinstance(self.started_at, datetime.datetime):
            started_at = self.started_at.isoformat()
        else:
            started_at = self.started_at

        ended_at: None | str | Unset
        if isinstance(self.ended_at, Unset):
            ended_at = UNSET
        elif isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        exit_code: int | None | Unset
        if isinstance(self.exit_code, Unset):
            exit_code = UNSET
        else:
            exit_code = self.exit_code

        exit_signal: int | None | Unset
        if isinstance(self.exit_signal, Unset):
            exit_signal = UNSET
        else:
            exit_signal = self.exit_signal

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "step_id": step_id,
                "attempt": attempt,
                "name": name,
                "state": state,
                "tasks": tasks,
                "nodes": nodes,
                "created_at": created_at,
                "cpu_microseconds": cpu_microseconds,
                "memory_peak_bytes": memory_peak_bytes,
            }
        )
        if started_at is not UNSET:
            field_dict["started_at"] = started_at
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at
        if exit_code is not UNSET:
            field_dict["exit_code"] = exit_code
        if exit_signal is not UNSET:
            field_dict["exit_signal"] = exit_signal

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        step_id = d.pop("step_id")

        attempt = d.pop("attempt")

        name = d.pop("name")

        state = JobState(d.pop("state"))

        tasks = d.pop("tasks")

        nodes = d.pop("nodes")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        cpu_microseconds = d.pop("cpu_microseconds")

        memory_peak_bytes = d.pop("memory_peak_bytes")

        def _parse_started_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                started_at_type_0 = datetime.datetime.fromisoformat(data)

                return started_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        started_at = _parse_started_at(d.pop("started_at", UNSET))

        def _parse_ended_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        ended_at = _parse_ended_at(d.pop("ended_at", UNSET))

        def _parse_exit_code(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        exit_code = _parse_exit_code(d.pop("exit_code", UNSET))

        def _parse_exit_signal(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        exit_signal = _parse_exit_signal(d.pop("exit_signal", UNSET))

        step = cls(
            step_id=step_id,
            attempt=attempt,
            name=name,
            state=state,
            tasks=tasks,
            nodes=nodes,
            created_at=created_at,
            cpu_microseconds=cpu_microseconds,
            memory_peak_bytes=memory_peak_bytes,
            started_at=started_at,
            ended_at=ended_at,
            exit_code=exit_code,
            exit_signal=exit_signal,
        )

        step.additional_properties = d
        return step

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
