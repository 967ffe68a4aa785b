from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.job_state import JobState
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.fault import Fault


T = TypeVar("T", bound="SubmittedJob")


@_attrs_define
class SubmittedJob:
    """What a submission is answered.

    Attributes:
        job_id (int):
        state (JobState): State of a job or of one attempt. The first five are live, the others are ends.
        submit_time (datetime.datetime):
        components (list[int] | Unset): Of a heterogeneous job: the ids of its components, its own first.
        warnings (list[Fault] | Unset): What was understood but not done: unsupported directives, for example.
    """

    job_id: int
    state: JobState
    submit_time: datetime.datetime
    components: list[int] | Unset = UNSET
    warnings: list[Fault] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job_id = self.job_id

        state = self.state.value

        submit_time = self.submit_time.isoformat()

        components: list[int] | Unset = UNSET
        if not isinstance(self.components, Unset):
            components = self.components

        warnings: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.warnings, Unset):
            warnings = []
            for warnings_item_data in self.warnings:
                warnings_item = warnings_item_data.to_dict()
                warnings.append(warnings_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "state": state,
                "submit_time": submit_time,
            }
        )
        if components is not UNSET:
            field_dict["components"] = components
        if warnings is not UNSET:
            field_dict["warnings"] = warnings

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.fault import Fault  # noqa: PLC0415

        d = dict(src_dict)
        job_id = d.pop("job_id")

        state = JobState(d.pop("state"))

        submit_time = datetime.datetime.fromisoformat(d.pop("submit_time"))

        components = cast(list[int], d.pop("components", UNSET))

        _warnings = d.pop("warnings", UNSET)
        warnings: list[Fault] | Unset = UNSET
        if _warnings is not UNSET:
            warnings = []
            for warnings_item_data in _warnings:
                warnings_item = Fault.from_dict(warnings_item_data)

                warnings.append(warnings_item)

        submitted_job = cls(
            job_id=job_id,
            state=state,
            submit_time=submit_time,
            components=components,
            warnings=warnings,
        )

        submitted_job.additional_properties = d
        return submitted_job

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
