from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.hold import Hold
from ..models.job_state import JobState
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.array_view import ArrayView
    from ..models.component_view import ComponentView
    from ..models.job_labels import JobLabels


T = TypeVar("T", bound="Job")


@_attrs_define
class Job:
    """A job.

    Attributes:
        job_id (int):
        name_ref (str): How users name it: `1234`, `1234_7` for a task of an array, or `1234+1` for a component of a
            heterogeneous job.
        state (JobState): State of a job or of one attempt. The first five are live, the others are ends.
        name (str):
        tenant (str):
        account (str):
        user (str):
        partition (str):
        qos (str):
        pending_reasons (list[str]): Codes of what holds a pending job, the binding one first; `explain` has them in
            full.
        submit_time (datetime.datetime):
        time_limit_seconds (int):
        nice (int):
        attempt (int): Number of the present or last attempt; 0 before the first.
        restarts (int):
        is_expediting (bool): It is requeued ahead of everything after a node's failure.
        labels (JobLabels):
        version (int): Grows with each change; the ETag.
        hold (Hold | None | Unset):
        priority (int | None | Unset): Of a pending job, as of the last plan.
        planned_start (datetime.datetime | None | Unset):
        eligible_time (datetime.datetime | None | Unset): Not before this instant: the job's own begin time, or the end
            of a requeue's delay.
        start_time (datetime.datetime | None | Unset):
        end_time (datetime.datetime | None | Unset):
        deadline (datetime.datetime | None | Unset):
        nodes (None | str | Unset): Nodes of the present or last attempt: `n[1-4]`.
        exit_code (int | None | Unset):
        exit_signal (int | None | Unset):
        reason (None | str | Unset): Why it ended as it did, or why it was requeued.
        run_id (None | str | Unset): Unique, sortable id of that attempt.
        suspended_seconds (int | Unset): Seconds for which the present or last attempt has been suspended: they do not
            count against its time limit.
        array (ArrayView | None | Unset):
        array_job_id (int | None | Unset): The array this job is a task of.
        array_index (int | None | Unset):
        component (ComponentView | None | Unset):
    """

    job_id: int
    name_ref: str
    state: JobState
    name: str
    tenant: str
    account: str
    user: str
    partition: str
    qos: str
    pending_reasons: list[str]
    submit_time: datetime.datetime
    time_limit_seconds: int
    nice: int
    attempt: int
    restarts: int
    is_expediting: bool
    labels: JobLabels
    version: int
    hold: Hold | None | Unset = UNSET
    priority: int | None | Unset = UNSET
    planned_start: datetime.datetime | None | Unset = UNSET
    eligible_time: datetime.datetime | None | Unset = UNSET
    start_time: datetime.datetime | None | Unset = UNSET
    end_time: datetime.datetime | None | Unset = UNSET
    deadline: datetime.datetime | None | Unset = UNSET
    nodes: None | str | Unset = UNSET
    exit_code: int | None | Unset = UNSET
    exit_signal: int | None | Unset = UNSET
    reason: None | str | Unset = UNSET
    run_id: None | str | Unset = UNSET
    suspended_seconds: int | Unset = UNSET
    array: ArrayView | None | Unset = UNSET
    array_job_id: int | None | Unset = UNSET
    array_index: int | None | Unset = UNSET
    component: ComponentView | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.array_view import ArrayView  # noqa: PLC0415
        from ..models.component_view import ComponentView  # noqa: PLC0415

        job_id = self.job_id

        name_ref = self.name_ref

        state = self.state.value

        name = self.name

        tenant = self.tenant

        account = self.account

        user = self.user

        partition = self.partition

        qos = self.qos

        pending_reasons = self.pending_reasons

        submit_time = self.submit_time.isoformat()

        time_limit_seconds = self.time_limit_seconds

        nice = self.nice

        attempt = self.attempt

        restarts = self.restarts

        is_expediting = self.is_expediting

        labels = self.labels.to_dict()

        version = self.version

        hold: None | str | Unset
        if isinstance(self.hold, Unset):
            hold = UNSET
        elif isinstance(self.hold, Hold):
            hold = self.hold.value
        else:
            hold = self.hold

        priority: int | None | Unset
        if isinstance(self.priority, Unset):
            priority = UNSET
        else:
            priority = self.priority

        planned_start: None | str | Unset
        if isinstance(self.planned_start, Unset):
            planned_start = UNSET
        elif isinstance(self.planned_start, datetime.datetime):
            planned_start = self.planned_start.isoformat()
        else:
            planned_start = self.planned_start

        eligible_time: None | str | Unset
        if isinstance(self.eligible_time, Unset):
            eligible_time = UNSET
        elif isinstance(self.eligible_time, datetime.datetime):
            eligible_time = self.eligible_time.isoformat()
        else:
            eligible_time = self.eligible_time

        start_time: None | str | Unset
        if isinstance(self.start_time, Unset):
            start_time = UNSET
        elif isinstance(self.start_time, datetime.datetime):
            start_time = self.start_time.isoformat()
        else:
            start_time = self.start_time

        end_time: None | str | Unset
        if isinstance(self.end_time, Unset):
            end_time = UNSET
        elif isinstance(self.end_time, datetime.datetime):
            end_time = self.end_time.isoformat()
        else:
            end_time = self.end_time

        deadline: None | str | Unset
        if isinstance(self.deadline, Unset):
            deadline = UNSET
        elif isinstance(self.deadline, datetime.datetime):
            deadline = self.deadline.isoformat()
        else:
            deadline = self.deadline

        nodes: None | str | Unset
        if isinstance(self.nodes, Unset):
            nodes = UNSET
        else:
            nodes = self.nodes

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

        reason: None | str | Unset
        if isinstance(self.reason, Unset):
            reason = UNSET
        else:
            reason = self.reason

        run_id: None | str | Unset
        if isinstance(self.run_id, Unset):
            run_id = UNSET
        else:
            run_id = self.run_id

        suspended_seconds = self.suspended_seconds

        array: dict[str, Any] | None | Unset
        if isinstance(self.array, Unset):
            array = UNSET
        elif isinstance(self.array, ArrayView):
            array = self.array.to_dict()
        else:
            array = self.array

        array_job_id: int | None | Unset
        if isinstance(self.array_job_id, Unset):
            array_job_id = UNSET
        else:
            array_job_id = self.array_job_id

        array_index: int | None | Unset
        if isinstance(self.array_index, Unset):
            array_index = UNSET
        else:
            array_index = self.array_index

        component: dict[str, Any] | None | Unset
        if isinstance(self.component, Unset):
            component = UNSET
        elif isinstance(self.component, ComponentView):
            component = self.component.to_dict()
        else:
            component = self.component

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "name_ref": name_ref,
                "state": state,
                "name": name,
                "tenant": tenant,
                "account": account,
                "user": user,
                "partition": partition,
                "qos": qos,
                "pending_reasons": pending_reasons,
                "submit_time": submit_time,
                "time_limit_seconds": time_limit_seconds,
                "nice": nice,
                "attempt": attempt,
                "restarts": restarts,
                "is_expediting": is_expediting,
                "labels": labels,
                "version": version,
            }
        )
        if hold is not UNSET:
            field_dict["hold"] = hold
        if priority is not UNSET:
            field_dict["priority"] = priority
        if planned_start is not UNSET:
            field_dict["planned_start"] = planned_start
        if eligible_time is not UNSET:
            field_dict["eligible_time"] = eligible_time
        if start_time is not UNSET:
            field_dict["start_time"] = start_time
        if end_time is not UNSET:
            field_dict["end_time"] = end_time
        if deadline is not UNSET:
            field_dict["deadline"] = deadline
        if nodes is not UNSET:
            field_dict["nodes"] = nodes
        if exit_code is not UNSET:
            field_dict["exit_code"] = exit_code
        if exit_signal is not UNSET:
            field_dict["exit_signal"] = exit_signal
        if reason is not UNSET:
            field_dict["reason"] = reason
        if run_id is not UNSET:
            field_dict["run_id"] = run_id
        if suspended_seconds is not UNSET:
            field_dict["suspended_seconds"] = suspended_seconds
        if array is not UNSET:
            field_dict["array"] = array
        if array_job_id is not UNSET:
            field_dict["array_job_id"] = array_job_id
        if array_index is not UNSET:
            field_dict["array_index"] = array_index
        if component is not UNSET:
            field_dict["component"] = component

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.array_view import ArrayView  # noqa: PLC0415
        from ..models.component_view import ComponentView  # noqa: PLC0415
        from ..models.job_labels import JobLabels  # noqa: PLC0415

        d = dict(src_dict)
        job_id = d.pop("job_id")

        name_ref = d.pop("name_ref")

        state = JobState(d.pop("state"))

        name = d.pop("name")

        tenant = d.pop("tenant")

        account = d.pop("account")

        user = d.pop("user")

        partition = d.pop("partition")

        qos = d.pop("qos")

        pending_reasons = cast(list[str], d.pop("pending_reasons"))

        submit_time = datetime.datetime.fromisoformat(d.pop("submit_time"))

        time_limit_seconds = d.pop("time_limit_seconds")

        nice = d.pop("nice")

        attempt = d.pop("attempt")

        restarts = d.pop("restarts")

        is_expediting = d.pop("is_expediting")

        labels = JobLabels.from_dict(d.pop("labels"))

        version = d.pop("version")

        def _parse_hold(data: object) -> Hold | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                hold_type_0 = Hold(data)

                return hold_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Hold | None | Unset, data)

        hold = _parse_hold(d.pop("hold", UNSET))

        def _parse_priority(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        priority = _parse_priority(d.pop("priority", UNSET))

        def _parse_planned_start(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                planned_start_type_0 = datetime.datetime.fromisoformat(data)

                return planned_start_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        planned_start = _parse_planned_start(d.pop("planned_start", UNSET))

        def _parse_eligible_time(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                eligible_time_type_0 = datetime.datetime.fromisoformat(data)

                return eligible_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        eligible_time = _parse_eligible_time(d.pop("eligible_time", UNSET))

        def _parse_start_time(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                start_time_type_0 = datetime.datetime.fromisoformat(data)

                return start_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        start_time = _parse_start_time(d.pop("start_time", UNSET))

        def _parse_end_time(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                end_time_type_0 = datetime.datetime.fromisoformat(data)

                return end_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        end_time = _parse_end_time(d.pop("end_time", UNSET))

        def _parse_deadline(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                deadline_type_0 = datetime.datetime.fromisoformat(data)

                return deadline_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        deadline = _parse_deadline(d.pop("deadline", UNSET))

        def _parse_nodes(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        nodes = _parse_nodes(d.pop("nodes", UNSET))

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

        def _parse_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reason = _parse_reason(d.pop("reason", UNSET))

        def _parse_run_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        run_id = _parse_run_id(d.pop("run_id", UNSET))

        suspended_seconds = d.pop("suspended_seconds", UNSET)

        def _parse_array(data: object) -> ArrayView | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                array_type_0 = ArrayView.from_dict(data)

                return array_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ArrayView | None | Unset, data)

        array = _parse_array(d.pop("array", UNSET))

        def _parse_array_job_id(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        array_job_id = _parse_array_job_id(d.pop("array_job_id", UNSET))

        def _parse_array_index(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        array_index = _parse_array_index(d.pop("array_index", UNSET))

        def _parse_component(data: object) -> ComponentView | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                component_type_0 = ComponentView.from_dict(data)

                return component_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ComponentView | None | Unset, data)

        component = _parse_component(d.pop("component", UNSET))

        job = cls(
            job_id=job_id,
            name_ref=name_ref,
            state=state,
            name=name,
            tenant=tenant,
            account=account,
            user=user,
            partition=partition,
            qos=qos,
            pending_reasons=pending_reasons,
            submit_time=submit_time,
            time_limit_seconds=time_limit_seconds,
            nice=nice,
            attempt=attempt,
            restarts=restarts,
            is_expediting=is_expediting,
            labels=labels,
            version=version,
            hold=hold,
            priority=priority,
            planned_start=planned_start,
            eligible_time=eligible_time,
            start_time=start_time,
            end_time=end_time,
            deadline=deadline,
            nodes=nodes,
            exit_code=exit_code,
            exit_signal=exit_signal,
            reason=reason,
            run_id=run_id,
            suspended_seconds=suspended_seconds,
            array=array,
            array_job_id=array_job_id,
            array_index=array_index,
            component=component,
        )

        job.additional_properties = d
        return job

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
