from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.job_state import JobState
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.decision import Decision
    from ..models.node_allocation import NodeAllocation
    from ..models.preempted import Preempted
    from ..models.suspension import Suspension


T = TypeVar("T", bound="Attempt")


@_attrs_define
class Attempt:
    """An attempt: one run of a job on one set of nodes.

    Attributes:
        attempt (int):
        run_id (str):
        state (JobState): State of a job or of one attempt. The first five are live, the others are ends.
        nodes (str):
        allocation (list[NodeAllocation]):
        allocated_at (datetime.datetime):
        started_at (datetime.datetime | None | Unset):
        ended_at (datetime.datetime | None | Unset):
        stop_reason (None | str | Unset):
        exit_code (int | None | Unset):
        exit_signal (int | None | Unset):
        failure (None | str | Unset):
        decision (Decision | None | Unset):
        checkpoint_at (datetime.datetime | None | Unset): Its last checkpoint.
        preempted (None | Preempted | Unset):
        suspension (None | Suspension | Unset):
        suspended_seconds (int | Unset): Seconds for which it has been suspended.
    """

    attempt: int
    run_id: str
    state: JobState
    nodes: str
    allocation: list[NodeAllocation]
    allocated_at: datetime.datetime
    started_at: datetime.datetime | None | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET
    stop_reason: None | str | Unset = UNSET
    exit_code: int | None | Unset = UNSET
    exit_signal: int | None | Unset = UNSET
    failure: None | str | Unset = UNSET
    decision: Decision | None | Unset = UNSET
    checkpoint_at: datetime.datetime | None | Unset = UNSET
    preempted: None | Preempted | Unset = UNSET
    suspension: None | Suspension | Unset = UNSET
    suspended_seconds: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.preempted import Preempted  # noqa: PLC0415
        from ..models.suspension import Suspension  # noqa: PLC0415

        attempt = self.attempt

        run_id = self.run_id

        state = self.state.value

        nodes = self.nodes

        allocation = []
        for allocation_item_data in self.allocation:
            allocation_item = allocation_item_data.to_dict()
            allocation.append(allocation_item)

        allocated_at = self.allocated_at.isoformat()

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

        stop_reason: None | str | Unset
        if isinstance(self.stop_reason, Unset):
            stop_reason = UNSET
        else:
            stop_reason = self.stop_reason

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

        failure: None | str | Unset
        if isinstance(self.failure, Unset):
            failure = UNSET
        else:
            failure = self.failure

        decision: dict[str, Any] | None | Unset
        if isinstance(self.decision, Unset):
            decision = UNSET
        elif isinstance(self.decision, Decision):
            decision = self.decision.to_dict()
        else:
            decision = self.decision

        checkpoint_at: None | str | Unset
        if isinstance(self.checkpoint_at, Unset):
            checkpoint_at = UNSET
        elif isinstance(self.checkpoint_at, datetime.datetime):
            checkpoint_at = self.checkpoint_at.isoformat()
        else:
            checkpoint_at = self.checkpoint_at

        preempted: dict[str, Any] | None | Unset
        if isinstance(self.preempted, Unset):
            preempted = UNSET
        elif isinstance(self.preempted, Preempted):
            preempted = self.preempted.to_dict()
        else:
            preempted = self.preempted

        suspension: dict[str, Any] | None | Unset
        if isinstance(self.suspension, Unset):
            suspension = UNSET
        elif isinstance(self.suspension, Suspension):
            suspension = self.suspension.to_dict()
        else:
            suspension = self.suspension

        suspended_seconds = self.suspended_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "attempt": attempt,
                "run_id": run_id,
                "state": state,
                "nodes": nodes,
                "allocation": allocation,
                "allocated_at": allocated_at,
            }
        )
        if started_at is not UNSET:
            field_dict["started_at"] = started_at
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at
        if stop_reason is not UNSET:
            field_dict["stop_reason"] = stop_reason
        if exit_code is not UNSET:
            field_dict["exit_code"] = exit_code
        if exit_signal is not UNSET:
            field_dict["exit_signal"] = exit_signal
        if failure is not UNSET:
            field_dict["failure"] = failure
        if decision is not UNSET:
            field_dict["decision"] = decision
        if checkpoint_at is not UNSET:
            field_dict["checkpoint_at"] = checkpoint_at
        if preempted is not UNSET:
            field_dict["preempted"] = preempted
        if suspension is not UNSET:
            field_dict["suspension"] = suspension
        if suspended_seconds is not UNSET:
            field_dict["suspended_seconds"] = suspended_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.node_allocation import NodeAllocation  # noqa: PLC0415
        from ..models.preempted import Preempted  # noqa: PLC0415
        from ..models.suspension import Suspension  # noqa: PLC0415

        d = dict(src_dict)
        attempt = d.pop("attempt")

        run_id = d.pop("run_id")

        state = JobState(d.pop("state"))

        nodes = d.pop("nodes")

        allocation = []
        _allocation = d.pop("allocation")
        for allocation_item_data in _allocation:
            allocation_item = NodeAllocation.from_dict(allocation_item_data)

            allocation.append(allocation_item)

        allocated_at = datetime.datetime.fromisoformat(d.pop("allocated_at"))

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

        def _parse_stop_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stop_reason = _parse_stop_reason(d.pop("stop_reason", UNSET))

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

        def _parse_failure(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        failure = _parse_failure(d.pop("failure", UNSET))

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

        def _parse_checkpoint_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                checkpoint_at_type_0 = datetime.datetime.fromisoformat(data)

                return checkpoint_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        checkpoint_at = _parse_checkpoint_at(d.pop("checkpoint_at", UNSET))

        def _parse_preempted(data: object) -> None | Preempted | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                preempted_type_0 = Preempted.from_dict(data)

                return preempted_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Preempted | Unset, data)

        preempted = _parse_preempted(d.pop("preempted", UNSET))

        def _parse_suspension(data: object) -> None | Suspension | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                suspension_type_0 = Suspension.from_dict(data)

                return suspension_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Suspension | Unset, data)

        suspension = _parse_suspension(d.pop("suspension", UNSET))

        suspended_seconds = d.pop("suspended_seconds", UNSET)

        attempt = cls(
            attempt=attempt,
            run_id=run_id,
            state=state,
            nodes=nodes,
            allocation=allocation,
            allocated_at=allocated_at,
            started_at=started_at,
            ended_at=ended_at,
            stop_reason=stop_reason,
            exit_code=exit_code,
            exit_signal=exit_signal,
            failure=failure,
            decision=decision,
            checkpoint_at=checkpoint_at,
            preempted=preempted,
            suspension=suspension,
            suspended_seconds=suspended_seconds,
        )

        attempt.additional_properties = d
        return attempt

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
