from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.ahead import Ahead
    from ..models.decision import Decision
    from ..models.priority import Priority
    from ..models.verdict import Verdict


T = TypeVar("T", bound="Start")


@_attrs_define
class Start:
    """Why a job started then and there.

    Attributes:
        at (datetime.datetime): When it was given its nodes.
        nodes (str):
        waited_for (list[Verdict]): What held it when it was last looked at before; empty if nothing ever did.
        passed (list[Ahead]): Jobs ahead of it in the queue that stayed waiting, at most ten.
        decision (Decision | None | Unset):
        priority (None | Priority | Unset):
    """

    at: datetime.datetime
    nodes: str
    waited_for: list[Verdict]
    passed: list[Ahead]
    decision: Decision | None | Unset = UNSET
    priority: None | Priority | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.priority import Priority  # noqa: PLC0415

        at = self.at.isoformat()

        nodes = self.nodes

        waited_for = []
        for waited_for_item_data in self.waited_for:
            waited_for_item = waited_for_item_data.to_dict()
            waited_for.append(waited_for_item)

        passed = []
        for passed_item_data in self.passed:
            passed_item = passed_item_data.to_dict()
            passed.append(passed_item)

        decision: dict[str, Any] | None | Unset
        if isinstance(self.decision, Unset):
            decision = UNSET
        elif isinstance(self.decision, Decision):
            decision = self.decision.to_dict()
        else:
            decision = self.decision

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
                "at": at,
                "nodes": nodes,
                "waited_for": waited_for,
                "passed": passed,
            }
        )
        if decision is not UNSET:
            field_dict["decision"] = decision
        if priority is not UNSET:
            field_dict["priority"] = priority

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.ahead import Ahead  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.priority import Priority  # noqa: PLC0415
        from ..models.verdict import Verdict  # noqa: PLC0415

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        nodes = d.pop("nodes")

        waited_for = []
        _waited_for = d.pop("waited_for")
        for waited_for_item_data in _waited_for:
            waited_for_item = Verdict.from_dict(waited_for_item_data)

            waited_for.append(waited_for_item)

        passed = []
        _passed = d.pop("passed")
        for passed_item_data in _passed:
            passed_item = Ahead.from_dict(passed_item_data)

            passed.append(passed_item)

        def _parse_decision(data: object) -> Decision | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                decision_type_0 = Decision.from_dict(data)

                return decision_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Decision | None | Unset, data)

        decision = _parse_decision(d.pop("decision", UNSET))

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

        start = cls(
            at=at,
            nodes=nodes,
            waited_for=waited_for,
            passed=passed,
            decision=decision,
            priority=priority,
        )

        start.additional_properties = d
        return start

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
