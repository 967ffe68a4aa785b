from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.billing import Billing
from ..models.fair_share_rule import FairShareRule
from ..models.hetjob_priority import HetjobPriority
from ..models.impossible_limit import ImpossibleLimit
from ..models.preempt_by import PreemptBy
from ..models.preempt_mode import PreemptMode
from ..models.reclaim import Reclaim
from ..models.usage_reset import UsageReset
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.policy_weight_tres import PolicyWeightTres
    from ..models.power_policy import PowerPolicy
    from ..models.queue_policy import QueuePolicy


T = TypeVar("T", bound="Policy")


@_attrs_define
class Policy:
    """The cluster's weights and rules. A job's priority is Σ weight × factor, each factor in 0..=1 (Slurm's multifactor
    plugin).

    By default a QOS weighs more than fair share, and fair share more than age or the partition.

        Attributes:
            weight_age (int | Unset):  Default: 1000.
            weight_fairshare (int | Unset):  Default: 5000.
            weight_job_size (int | Unset):  Default: 0.
            weight_association (int | Unset):  Default: 0.
            weight_partition (int | Unset):  Default: 1000.
            weight_qos (int | Unset):  Default: 10000.
            weight_tres (PolicyWeightTres | Unset): For each resource its part of the partition's total; `{"gres/gpu":
                3000}`.
            favor_small (bool | Unset): Small jobs get the size factor instead of large ones. Default: False.
            small_relative_to_time (bool | Unset): The size factor is the job's CPUs over its time limit in minutes.
                Default: False.
            max_age_seconds (int | Unset):
            half_life_seconds (int | Unset):
            usage_reset (UsageReset | Unset): When all usage is set to nothing, in UTC.
            fair_share_rule (FairShareRule | Unset): How usage becomes the fair-share factor.
            billing (Billing | Unset): How a partition's billing weights make one number of a job's resources.
            safe_limits (bool | Unset): Limits in resource-minutes and wall time count what a job may use up to its time
                limit, not only what has been used. Default: True.
            impossible_limit (ImpossibleLimit | Unset): What becomes of a submission that breaks a limit by itself, so that
                it could never start.
            node_timeout_seconds (int | Unset):
            kill_wait_seconds (int | Unset):
            requeue_delay_seconds (int | Unset):
            decision_keep_seconds (int | Unset):
            preempt_by (PreemptBy | Unset): By what a job may preempt others (Slurm's PreemptType).
            reclaim (Reclaim | Unset): Whether jobs within their tenant's guarantee stop those of tenants of the cohort that
                have borrowed.
            preempt_mode (PreemptMode | Unset): What becomes of a preempted job (Slurm's PreemptMode).
            preempt_exempt_seconds (int | Unset):
            reservation_overrun_seconds (int | None | Unset):
            max_array_size (int | Unset): One more than the highest index of an array, and so the most tasks of one
                (MaxArraySize). Default: 1000000.
            hetjob_priority (HetjobPriority | Unset): Whose priority and tier the components of a heterogeneous job share:
                they are tried as one.
            queue (None | QueuePolicy | Unset):
            power (None | PowerPolicy | Unset):
            resume_timeout_seconds (int | Unset):
            suspend_timeout_seconds (int | Unset):
            reboot_timeout_seconds (int | Unset):
    """

    weight_age: int | Unset = 1000
    weight_fairshare: int | Unset = 5000
    weight_job_size: int | Unset = 0
    weight_association: int | Unset = 0
    weight_partition: int | Unset = 1000
    weight_qos: int | Unset = 10000
    weight_tres: PolicyWeightTres | Unset = UNSET
    favor_small: bool | Unset = False
    small_relative_to_time: bool | Unset = False
    max_age_seconds: int | Unset = UNSET
    half_life_seconds: int | Unset = UNSET
    usage_reset: UsageReset | Unset = UNSET
    fair_share_rule: FairShareRule | Unset = UNSET
    billing: Billing | Unset = UNSET
    safe_limits: bool | Unset = True
    impossible_limit: ImpossibleLimit | Unset = UNSET
    node_timeout_seconds: int | Unset = UNSET
    kill_wait_seconds: int | Unset = UNSET
    requeue_delay_seconds: int | Unset = UNSET
    decision_keep_seconds: int | Unset = UNSET
    preempt_by: PreemptBy | Unset = UNSET
    reclaim: Reclaim | Unset = UNSET
    preempt_mode: PreemptMode | Unset = UNSET
    preempt_exempt_seconds: int | Unset = UNSET
    reservation_overrun_seconds: int | None | Unset = UNSET
    max_array_size: int | Unset = 1000000
    hetjob_priority: HetjobPriority | Unset = UNSET
    queue: None | QueuePolicy | Unset = UNSET
    power: None | PowerPolicy | Unset = UNSET
    resume_timeout_seconds: int | Unset = UNSET
    suspend_timeout_seconds: int | Unset = UNSET
    reboot_timeout_seconds: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.power_policy import PowerPolicy  # noqa: PLC0415
        from ..models.queue_policy import QueuePolicy  # noqa: PLC0415

        weight_age = self.weight_age

        weight_fairshare = self.weight_fairshare

        weight_job_size = self.weight_job_size

        weight_association = self.weight_association

        weight_partition = self.weight_partition

        weight_qos = self.weight_qos

        weight_tres: dict[str, Any] | Unset = UNSET
        if not isinstance(self.weight_tres, Unset):
            weight_tres = self.weight_tres.to_dict()

        favor_small = self.favor_small

        small_relative_to_time = self.small_relative_to_time

        max_age_seconds = self.max_age_seconds

        half_life_seconds = self.half_life_seconds

        usage_reset: str | Unset = UNSET
        if not isinstance(self.usage_reset, Unset):
            usage_reset = self.usage_reset.value

        fair_share_rule: str | Unset = UNSET
        if not isinstance(self.fair_share_rule, Unset):
            fair_share_rule = self.fair_share_rule.value

        billing: str | Unset = UNSET
        if not isinstance(self.billing, Unset):
            billing = self.billing.value

        safe_limits = self.safe_limits

        impossible_limit: str | Unset = UNSET
        if not isinstance(self.impossible_limit, Unset):
            impossible_limit = self.impossible_limit.value

        node_timeout_seconds = self.node_timeout_seconds

        kill_wait_seconds = self.kill_wait_seconds

        requeue_delay_seconds = self.requeue_delay_seconds

        decision_keep_seconds = self.decision_keep_seconds

        preempt_by: str | Unset = UNSET
        if not isinstance(self.preempt_by, Unset):
            preempt_by = self.preempt_by.value

        reclaim: str | Unset = UNSET
        if not isinstance(self.reclaim, Unset):
            reclaim = self.reclaim.value

        preempt_mode: str | Unset = UNSET
        if not isinstance(self.preempt_mode, Unset):
            preempt_mode = self.preempt_mode.value

        preempt_exempt_seconds = self.preempt_exempt_seconds

        reservation_overrun_seconds: int | None | Unset
        if isinstance(self.reservation_overrun_seconds, Unset):
            reservation_overrun_seconds = UNSET
        else:
            reservation_overrun_seconds = self.reservation_overrun_seconds

        max_array_size = self.max_array_size

        hetjob_priority: str | Unset = UNSET
        if not isinstance(self.hetjob_priority, Unset):
            hetjob_priority = self.hetjob_priority.value

        queue: dict[str, Any] | None | Unset
        if isinstance(self.queue, Unset):
            queue = UNSET
        elif isinstance(self.queue, QueuePolicy):
            queue = self.queue.to_dict()
        else:
            queue = self.queue

        power: dict[str, Any] | None | Unset
        if isinstance(self.power, Unset):
            power = UNSET
        elif isinstance(self.power, PowerPolicy):
            power = self.power.to_dict()
        else:
            power = self.power

        resume_timeout_seconds = self.resume_timeout_seconds

        suspend_timeout_seconds = self.suspend_timeout_seconds

        reboot_timeout_seconds = self.reboot_timeout_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if weight_age is not UNSET:
            field_dict["weight_age"] = weight_age
        if weight_fairshare is not UNSET:
            field_dict["weight_fairshare"] = weight_fairshare
        if weight_job_size is not UNSET:
            field_dict["weight_job_size"] = weight_job_size
        if weight_association is not UNSET:
            field_dict["weight_association"] = weight_association
        if weight_partition is not UNSET:
            field_dict["weight_partition"] = weight_partition
        if weight_qos is not UNSET:
            field_dict["weight_qos"] = weight_qos
        if weight_tres is not UNSET:
            field_dict["weight_tres"] = weight_tres
        if favor_small is not UNSET:
            field_dict["favor_small"] = favor_small
        if small_relative_to_time is not UNSET:
            field_dict["small_relative_to_time"] = small_relative_to_time
        if max_age_seconds is not UNSET:
            field_dict["max_age_seconds"] = max_age_seconds
        if half_life_seconds is not UNSET:
            field_dict["half_life_seconds"] = half_life_seconds
        if usage_reset is not UNSET:
            field_dict["usage_reset"] = usage_reset
        if fair_share_rule is not UNSET:
            field_dict["fair_share_rule"] = fair_share_rule
        if billing is not UNSET:
            field_dict["billing"] = billing
        if safe_limits is not UNSET:
            field_dict["safe_limits"] = safe_limits
        if impossible_limit is not UNSET:
            field_dict["impossible_limit"] = impossible_limit
        if node_timeout_seconds is not UNSET:
            field_dict["node_timeout_seconds"] = node_timeout_seconds
        if kill_wait_seconds is not UNSET:
            field_dict["kill_wait_seconds"] = kill_wait_seconds
        if requeue_delay_seconds is not UNSET:
            field_dict["requeue_delay_seconds"] = requeue_delay_seconds
        if decision_keep_seconds is not UNSET:
            field_dict["decision_keep_seconds"] = decision_keep_seconds
        if preempt_by is not UNSET:
            field_dict["preempt_by"] = preempt_by
        if reclaim is not UNSET:
            field_dict["reclaim"] = reclaim
        if preempt_mode is not UNSET:
            field_dict["preempt_mode"] = preempt_mode
        if preempt_exempt_seconds is not UNSET:
            field_dict["preempt_exempt_seconds"] = preempt_exempt_seconds
        if reservation_overrun_seconds is not UNSET:
            field_dict["reservation_overrun_seconds"] = reservation_overrun_seconds
        if max_array_size is not UNSET:
            field_dict["max_array_size"] = max_array_size
        if hetjob_priority is not UNSET:
            field_dict["hetjob_priority"] = hetjob_priority
        if queue is not UNSET:
            field_dict["queue"] = queue
        if power is not UNSET:
            field_dict["power"] = power
        if resume_timeout_seconds is not UNSET:
            field_dict["resume_timeout_seconds"] = resume_timeout_seconds
        if suspend_timeout_seconds is not UNSET:
            field_dict["suspend_timeout_seconds"] = suspend_timeout_seconds
        if reboot_timeout_seconds is not UNSET:
            field_dict["reboot_timeout_seconds"] = reboot_timeout_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.policy_weight_tres import PolicyWeightTres  # noqa: PLC0415
        from ..models.power_policy import PowerPolicy  # noqa: PLC0415
        from ..models.queue_policy import QueuePolicy  # noqa: PLC0415

        d = dict(src_dict)
        weight_age = d.pop("weight_age", UNSET)

        weight_fairshare = d.pop("weight_fairshare", UNSET)

        weight_job_size = d.pop("weight_job_size", UNSET)

        weight_association = d.pop("weight_association", UNSET)

        weight_partition = d.pop("weight_partition", UNSET)

        weight_qos = d.pop("weight_qos", UNSET)

        _weight_tres = d.pop("weight_tres", UNSET)
        weight_tres: PolicyWeightTres | Unset
        if isinstance(_weight_tres, Unset):
            weight_tres = UNSET
        else:
            weight_tres = PolicyWeightTres.from_dict(_weight_tres)

        favor_small = d.pop("favor_small", UNSET)

        small_relative_to_time = d.pop("small_relative_to_time", UNSET)

        max_age_seconds = d.pop("max_age_seconds", UNSET)

        half_life_seconds = d.pop("half_life_seconds", UNSET)

        _usage_reset = d.pop("usage_reset", UNSET)
        usage_reset: UsageReset | Unset
        if isinstance(_usage_reset, Unset):
            usage_reset = UNSET
        else:
            usage_reset = UsageReset(_usage_reset)

        _fair_share_rule = d.pop("fair_share_rule", UNSET)
        fair_share_rule: FairShareRule | Unset
        if isinstance(_fair_share_rule, Unset):
            fair_share_rule = UNSET
        else:
            fair_share_rule = FairShareRule(_fair_share_rule)

        _billing = d.pop("billing", UNSET)
        billing: Billing | Unset
        if isinstance(_billing, Unset):
            billing = UNSET
        else:
            billing = Billing(_billing)

        safe_limits = d.pop("safe_limits", UNSET)

        _impossible_limit = d.pop("impossible_limit", UNSET)
        impossible_limit: ImpossibleLimit | Unset
        if isinstance(_impossible_limit, Unset):
            impossible_limit = UNSET
        else:
            impossible_limit = ImpossibleLimit(_impossible_limit)

        node_timeout_seconds = d.pop("node_timeout_seconds", UNSET)

        kill_wait_seconds = d.pop("kill_wait_seconds", UNSET)

        requeue_delay_seconds = d.pop("requeue_delay_seconds", UNSET)

        decision_keep_seconds = d.pop("decision_keep_seconds", UNSET)

        _preempt_by = d.pop("preempt_by", UNSET)
        preempt_by: PreemptBy | Unset
        if isinstance(_preempt_by, Unset):
            preempt_by = UNSET
        else:
            preempt_by = PreemptBy(_preempt_by)

        _reclaim = d.pop("reclaim", UNSET)
        reclaim: Reclaim | Unset
        if isinstance(_reclaim, Unset):
            reclaim = UNSET
        else:
            reclaim = Reclaim(_reclaim)

        _preempt_mode = d.pop("preempt_mode", UNSET)
        preempt_mode: PreemptMode | Unset
        if isinstance(_preempt_mode, Unset):
            preempt_mode = UNSET
        else:
            preempt_mode = PreemptMode(_preempt_mode)

        preempt_exempt_seconds = d.pop("preempt_exempt_seconds", UNSET)

        def _parse_reservation_overrun_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        reservation_overrun_seconds = _parse_reservation_overrun_seconds(d.pop("reservation_overrun_seconds", UNSET))

        max_array_size = d.pop("max_array_size", UNSET)

        _hetjob_priority = d.pop("hetjob_priority", UNSET)
        hetjob_priority: HetjobPriority | Unset
        if isinstance(_hetjob_priority, Unset):
            hetjob_priority = UNSET
        else:
            hetjob_priority = HetjobPriority(_hetjob_priority)

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

        def _parse_power(data: object) -> None | PowerPolicy | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                power_type_0 = PowerPolicy.from_dict(data)

                return power_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PowerPolicy | Unset, data)

        power = _parse_power(d.pop("power", UNSET))

        resume_timeout_seconds = d.pop("resume_timeout_seconds", UNSET)

        suspend_timeout_seconds = d.pop("suspend_timeout_seconds", UNSET)

        reboot_timeout_seconds = d.pop("reboot_timeout_seconds", UNSET)

        policy = cls(
            weight_age=weight_age,
            weight_fairshare=weight_fairshare,
            weight_job_size=weight_job_size,
            weight_association=weight_association,
            weight_partition=weight_partition,
            weight_qos=weight_qos,
            weight_tres=weight_tres,
            favor_small=favor_small,
            small_relative_to_time=small_relative_to_time,
            max_age_seconds=max_age_seconds,
            half_life_seconds=half_life_seconds,
            usage_reset=usage_reset,
            fair_share_rule=fair_share_rule,
            billing=billing,
            safe_limits=safe_limits,
            impossible_limit=impossible_limit,
            node_timeout_seconds=node_timeout_seconds,
            kill_wait_seconds=kill_wait_seconds,
            requeue_delay_seconds=requeue_delay_seconds,
            decision_keep_seconds=decision_keep_seconds,
            preempt_by=preempt_by,
            reclaim=reclaim,
            preempt_mode=preempt_mode,
            preempt_exempt_seconds=preempt_exempt_seconds,
            reservation_overrun_seconds=reservation_overrun_seconds,
            max_array_size=max_array_size,
            hetjob_priority=hetjob_priority,
            queue=queue,
            power=power,
            resume_timeout_seconds=resume_timeout_seconds,
            suspend_timeout_seconds=suspend_timeout_seconds,
            reboot_timeout_seconds=reboot_timeout_seconds,
        )

        return policy
