from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.queue_policy import QueuePolicy


T = TypeVar("T", bound="Policy")


@_attrs_define
class Policy:
    """The cluster's weights. A job's priority is Σ weight × factor, each factor in 0..=1 (Slurm's multifactor plugin).

    Attributes:
        weight_age (int | Unset):  Default: 1000.
        weight_partition (int | Unset):  Default: 1000.
        weight_qos (int | Unset):  Default: 10000.
        max_age_seconds (int | Unset):
        node_timeout_seconds (int | Unset):
        kill_wait_seconds (int | Unset):
        requeue_delay_seconds (int | Unset):
        decision_keep_seconds (int | Unset):
        queue (None | QueuePolicy | Unset):
    """

    weight_age: int | Unset = 1000
    weight_partition: int | Unset = 1000
    weight_qos: int | Unset = 10000
    max_age_seconds: int | Unset = UNSET
    node_timeout_seconds: int | Unset = UNSET
    kill_wait_seconds: int | Unset = UNSET
    requeue_delay_seconds: int | Unset = UNSET
    decision_keep_seconds: int | Unset = UNSET
    queue: None | QueuePolicy | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.queue_policy import QueuePolicy  # noqa: PLC0415

        weight_age = self.weight_age

        weight_partition = self.weight_partition

        weight_qos = self.weight_qos

        max_age_seconds = self.max_age_seconds

        node_timeout_seconds = self.node_timeout_seconds

        kill_wait_seconds = self.kill_wait_seconds

        requeue_delay_seconds = self.requeue_delay_seconds

        decision_keep_seconds = self.decision_keep_seconds

        queue: dict[str, Any] | None | Unset
        if isinstance(self.queue, Unset):
            queue = UNSET
        elif isinstance(self.queue, QueuePolicy):
            queue = self.queue.to_dict()
        else:
            queue = self.queue

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if weight_age is not UNSET:
            field_dict["weight_age"] = weight_age
        if weight_partition is not UNSET:
            field_dict["weight_partition"] = weight_partition
        if weight_qos is not UNSET:
            field_dict["weight_qos"] = weight_qos
        if max_age_seconds is not UNSET:
            field_dict["max_age_seconds"] = max_age_seconds
        if node_timeout_seconds is not UNSET:
            field_dict["node_timeout_seconds"] = node_timeout_seconds
        if kill_wait_seconds is not UNSET:
            field_dict["kill_wait_seconds"] = kill_wait_seconds
        if requeue_delay_seconds is not UNSET:
            field_dict["requeue_delay_seconds"] = requeue_delay_seconds
        if decision_keep_seconds is not UNSET:
            field_dict["decision_keep_seconds"] = decision_keep_seconds
        if queue is not UNSET:
            field_dict["queue"] = queue

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.queue_policy import QueuePolicy  # noqa: PLC0415

        d = dict(src_dict)
        weight_age = d.pop("weight_age", UNSET)

        weight_partition = d.pop("weight_partition", UNSET)

        weight_qos = d.pop("weight_qos", UNSET)

        max_age_seconds = d.pop("max_age_seconds", UNSET)

        node_timeout_seconds = d.pop("node_timeout_seconds", UNSET)

        kill_wait_seconds = d.pop("kill_wait_seconds", UNSET)

        requeue_delay_seconds = d.pop("requeue_delay_seconds", UNSET)

        decision_keep_seconds = d.pop("decision_keep_seconds", UNSET)

        def _parse_queue(data: object) -> None | QueuePolicy | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                queue_type_0 = QueuePolicy.from_dict(data)

                return queue_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | QueuePolicy | Unset, data)

        queue = _parse_queue(d.pop("queue", UNSET))

        policy = cls(
            weight_age=weight_age,
            weight_partition=weight_partition,
            weight_qos=weight_qos,
            max_age_seconds=max_age_seconds,
            node_timeout_seconds=node_timeout_seconds,
            kill_wait_seconds=kill_wait_seconds,
            requeue_delay_seconds=requeue_delay_seconds,
            decision_keep_seconds=decision_keep_seconds,
            queue=queue,
        )

        return policy
