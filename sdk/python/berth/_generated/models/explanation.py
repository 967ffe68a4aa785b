from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.job_state import JobState
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.advice import Advice
    from ..models.ahead import Ahead
    from ..models.planned_start import PlannedStart
    from ..models.preempted_attempt import PreemptedAttempt
    from ..models.priority import Priority
    from ..models.start import Start
    from ..models.verdict import Verdict
    from ..models.victim import Victim


T = TypeVar("T", bound="Explanation")


@_attrs_define
class Explanation:
    """
    Attributes:
        job_id (int):
        state (JobState): State of a job or of one attempt. The first five are live, the others are ends.
        as_of (datetime.datetime): When the plan was made that this tells of.
        summary (str): All of it in a sentence.
        verdicts (list[Verdict]): What holds it, the binding one first.
        ahead (list[Ahead]):
        priority (None | Priority | Unset):
        planned_start (None | PlannedStart | Unset):
        start (None | Start | Unset):
        victims (list[Victim] | Unset): Whom it preempted, the last first, at most twenty.
        preempted (list[PreemptedAttempt] | Unset): Which of its attempts were preempted, and for whom.
        advice (Advice | None | Unset):
    """

    job_id: int
    state: JobState
    as_of: datetime.datetime
    summary: str
    verdicts: list[Verdict]
    ahead: list[Ahead]
    priority: None | Priority | Unset = UNSET
    planned_start: None | PlannedStart | Unset = UNSET
    start: None | Start | Unset = UNSET
    victims: list[Victim] | Unset = UNSET
    preempted: list[PreemptedAttempt] | Unset = UNSET
    advice: Advice | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.advice import Advice  # noqa: PLC0415
        from ..models.planned_start import PlannedStart  # noqa: PLC0415
        from ..models.priority import Priority  # noqa: PLC0415
        from ..models.start import Start  # noqa: PLC0415

        job_id = self.job_id

        state = self.state.value

        as_of = self.as_of.isoformat()

        summary = self.summary

        verdicts = []
        for verdicts_item_data in self.verdicts:
            verdicts_item = verdicts_item_data.to_dict()
            verdicts.append(verdicts_item)

        ahead = []
        for ahead_item_data in self.ahead:
            ahead_item = ahead_item_data.to_dict()
            ahead.append(ahead_item)

        priority: dict[str, Any] | None | Unset
        if isinstance(self.priority, Unset):
            priority = UNSET
        elif isinstance(self.priority, Priority):
            priority = self.priority.to_dict()
        else:
            priority = self.priority

        planned_start: dict[str, Any] | None | Unset
        if isinstance(self.planned_start, Unset):
            planned_start = UNSET
        elif isinstance(self.planned_start, PlannedStart):
            planned_start = self.planned_start.to_dict()
        else:
            planned_start = self.planned_start

        start: dict[str, Any] | None | Unset
        if isinstance(self.start, Unset):
            start = UNSET
        elif isinstance(self.start, Start):
            start = self.start.to_dict()
        else:
            start = self.start

        victims: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.victims, Unset):
            victims = []
            for victims_item_data in self.victims:
                victims_item = victims_item_data.to_dict()
                victims.append(victims_item)

        preempted: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.preempted, Unset):
            preempted = []
            for preempted_item_data in self.preempted:
                preempted_item = preempted_item_data.to_dict()
                preempted.append(preempted_item)

        advice: dict[str, Any] | None | Unset
        if isinstance(self.advice, Unset):
            advice = UNSET
        elif isinstance(self.advice, Advice):
            advice = self.advice.to_dict()
        else:
            advice = self.advice

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "state": state,
                "as_of": as_of,
                "summary": summary,
                "verdicts": verdicts,
                "ahead": ahead,
            }
        )
        if priority is not UNSET:
            field_dict["priority"] = priority
        if planned_start is not UNSET:
            field_dict["planned_start"] = planned_start
        if start is not UNSET:
            field_dict["start"] = start
        if victims is not UNSET:
            field_dict["victims"] = victims
        if preempted is not UNSET:
            field_dict["preempted"] = preempted
        if advice is not UNSET:
            field_dict["advice"] = advice

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.advice import Advice  # noqa: PLC0415
        from ..models.ahead import Ahead  # noqa: PLC0415
        from ..models.planned_start import PlannedStart  # noqa: PLC0415
        from ..models.preempted_attempt import PreemptedAttempt  # noqa: PLC0415
        from ..models.priority import Priority  # noqa: PLC0415
        from ..models.start import Start  # noqa: PLC0415
        from ..models.verdict import Verdict  # noqa: PLC0415
        from ..models.victim import Victim  # noqa: PLC0415

        d = dict(src_dict)
        job_id = d.pop("job_id")

        state = JobState(d.pop("state"))

        as_of = datetime.datetime.fromisoformat(d.pop("as_of"))

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

        def _parse_start(data: object) -> None | Start | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                start_type_0 = Start.from_dict(data)

                return start_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Start | Unset, data)

        start = _parse_start(d.pop("start", UNSET))

        _victims = d.pop("victims", UNSET)
        victims: list[Victim] | Unset = UNSET
        if _victims is not UNSET:
            victims = []
            for victims_item_data in _victims:
                victims_item = Victim.from_dict(victims_item_data)

                victims.append(victims_item)

        _preempted = d.pop("preempted", UNSET)
        preempted: list[PreemptedAttempt] | Unset = UNSET
        if _preempted is not UNSET:
            preempted = []
            for preempted_item_data in _preempted:
                preempted_item = PreemptedAttempt.from_dict(preempted_item_data)

                preempted.append(preempted_item)

        def _parse_advice(data: object) -> Advice | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                advice_type_0 = Advice.from_dict(data)

                return advice_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Advice | None | Unset, data)

        advice = _parse_advice(d.pop("advice", UNSET))

        explanation = cls(
            job_id=job_id,
            state=state,
            as_of=as_of,
            summary=summary,
            verdicts=verdicts,
            ahead=ahead,
            priority=priority,
            planned_start=planned_start,
            start=start,
            victims=victims,
            preempted=preempted,
            advice=advice,
        )

        explanation.additional_properties = d
        return explanation

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
