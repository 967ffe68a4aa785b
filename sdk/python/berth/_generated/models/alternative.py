from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.planned_start import PlannedStart
    from ..models.update_job import UpdateJob


T = TypeVar("T", bound="Alternative")


@_attrs_define
class Alternative:
    """A change with which the job would start sooner, as far as can be told now.

    Attributes:
        words (str): What would be changed, in words: `a time limit of 00:30:00 or less`.
        change (UpdateJob): A merge patch of the job's spec: a field that is absent stays, `null` takes it back to its
            default. While it runs a job changes only
            in its name, comment, labels, nice, requeue and time limit, which its user may only lower; and by
            `resources.nodes` or `nodelist` one
            with a script gives back all nodes but so many, or but those.
        starts_now (bool): It would start at once.
        planned_start (PlannedStart): Where and when a job is planned to start.
    """

    words: str
    change: UpdateJob
    starts_now: bool
    planned_start: PlannedStart
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        words = self.words

        change = self.change.to_dict()

        starts_now = self.starts_now

        planned_start = self.planned_start.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "words": words,
                "change": change,
                "starts_now": starts_now,
                "planned_start": planned_start,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.planned_start import PlannedStart  # noqa: PLC0415
        from ..models.update_job import UpdateJob  # noqa: PLC0415

        d = dict(src_dict)
        words = d.pop("words")

        change = UpdateJob.from_dict(d.pop("change"))

        starts_now = d.pop("starts_now")

        planned_start = PlannedStart.from_dict(d.pop("planned_start"))

        alternative = cls(
            words=words,
            change=change,
            starts_now=starts_now,
            planned_start=planned_start,
        )

        alternative.additional_properties = d
        return alternative

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
