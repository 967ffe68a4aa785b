from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.ahead import Ahead
    from ..models.fault import Fault
    from ..models.planned_start import PlannedStart
    from ..models.priority import Priority
    from ..models.verdict import Verdict


T = TypeVar("T", bound="DryRunAnswer")


@_attrs_define
class DryRunAnswer:
    """What the next plan would say of the job if it were submitted now. It holds as long as nothing else happens.

    Attributes:
        as_of (datetime.datetime): When the plan was made that this tells of.
        starts_now (bool): All of it, or of an array as many tasks as there is room for, would start at once.
        rank (int): Its place among the pending jobs; 1 is first.
        summary (str): All of it in a sentence.
        verdicts (list[Verdict]): What would hold it, or the tasks of an array that do not start at once; the binding
            one first.
        ahead (list[Ahead]):
        warnings (list[Fault]): What was understood but would not be done: unsupported directives, for example.
        planned_start (None | PlannedStart | Unset):
        priority (None | Priority | Unset):
    """

    as_of: datetime.datetime
    starts_now: bool
    rank: int
    summary: str
    verdicts: list[Verdict]
    ahead: list[Ahead]
    warnings: list[Fault]
    planned_start: None | PlannedStart | Unset = UNSET
    priority: None | Priority | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.planned_start import PlannedStart  # noqa: PLC0415
        from ..models.priority import Priority  # noqa: PLC0415

        as_of = self.as_of.isoformat()

        starts_now = self.starts_now

        rank = self.rank

        summary = self.summary

        verdicts = []
        for verdicts_item_data in self.verdicts:
            verdicts_item = verdicts_item_data.to_dict()
            verdicts.append(verdicts_item)

        ahead = []
        for ahead_item_data in self.ahead:
            ahead_item = ahead_item_data.to_dict()
            ahead.append(ahead_item)

        warnings = []
        for warnings_item_data in self.warnings:
            warnings_item = warnings_item_data.to_dict()
            warnings.append(warnings_item)

        planned_start: dict[str, Any] | None | Unset
        if isinstance(self.planned_start, Unset):
            planned_start = UNSET
        elif isinstance(self.planned_start, PlannedStart):
            planned_start = self.planned_start.to_dict()
        else:
            planned_start = self.planned_start

        priority: dict[str, Any] | None | Unset
        if isinstance(self.priority, Unset):
            priority = UNSET
        elif isinstance(self.priority, Priority):
            priority = self.priority.to_dict()
        else:
            priority = self.priority

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "as_of": as_of,
                "starts_now": starts_now,
                "rank": rank,
                "summary": summary,
                "verdicts": verdicts,
                "ahead": ahead,
                "warnings": warnings,
            }
        )
        if planned_start is not UNSET:
            field_dict["planned_start"] = planned_start
        if priority is not UNSET:
            field_dict["priority"] = priority

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.ahead import Ahead  # noqa: PLC0415
        from ..models.fault import Fault  # noqa: PLC0415
        from ..models.planned_start import PlannedStart  # noqa: PLC0415
        from ..models.priority import Priority  # noqa: PLC0415
        from ..models.verdict import Verdict  # noqa: PLC0415

        d = dict(src_dict)
        as_of = datetime.datetime.fromisoformat(d.pop("as_of"))

        starts_now = d.pop("starts_now")

        rank = d.pop("rank")

        summary = d.pop("summary")

        verdicts = []
        _verdicts = d.pop("verdicts")
        for verdicts_item_data in _verdicts:
            verdicts_item = Verdict.from_dict(verdicts_item_data)

            verdicts.append(verdicts_item)

        ahead = []
        _ahead = d.pop("ahead")
        for ahead_item_data in _ahead:
            ahead_item = Ahead.from_dict(ahead_item_data)

            ahead.append(ahead_item)

        warnings = []
        _warnings = d.pop("warnings")
        for warnings_item_data in _warnings:
            warnings_item = Fault.from_dict(warnings_item_data)

            warnings.append(warnings_item)

        def _parse_planned_start(data: object) -> None | PlannedStart | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                planned_start_type_0 = PlannedStart.from_dict(data)

                return planned_start_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PlannedStart | Unset, data)

        planned_start = _parse_planned_start(d.pop("planned_start", UNSET))

        def _parse_priority(data: object) -> None | Priority | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                priority_type_0 = Priority.from_dict(data)

                return priority_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Priority | Unset, data)

        priority = _parse_priority(d.pop("priority", UNSET))

        dry_run_answer = cls(
            as_of=as_of,
            starts_now=starts_now,
            rank=rank,
            summary=summary,
            verdicts=verdicts,
            ahead=ahead,
            warnings=warnings,
            planned_start=planned_start,
            priority=priority,
        )

        dry_run_answer.additional_properties = d
        return dry_run_answer

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
