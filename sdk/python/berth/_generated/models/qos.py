from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.limits import Limits
    from ..models.qos_max_tres_per_account import QosMaxTresPerAccount
    from ..models.qos_max_tres_per_user import QosMaxTresPerUser
    from ..models.qos_max_tres_run_minutes_per_account import (
        QosMaxTresRunMinutesPerAccount,
    )
    from ..models.qos_max_tres_run_minutes_per_user import QosMaxTresRunMinutesPerUser
    from ..models.qos_min_tres_per_job import QosMinTresPerJob


T = TypeVar("T", bound="Qos")


@_attrs_define
class Qos:
    """Quality of service: a priority and limits that jobs choose by name.

    Attributes:
        name (str):
        priority (int | Unset): Relative priority; the highest of all QOS counts as 1.0.
        max_time_seconds (int | None | Unset):
        allow_tenants (list[str] | Unset): Tenants that may use it; empty: all.
        description (None | str | Unset):
        usage_factor (float | Unset): Its jobs' use counts so many times; 0 is free.
        limit_factor (float | Unset): Multiplies the resource limits of associations for its jobs.
        over_partition_qos (bool | Unset): Its limits win over those of the partition's QOS.
        deny_on_limit (bool | Unset): A job that breaks one of its limits by itself is refused, whatever the policy
            says.
        limits (Limits | Unset): Limits that associations and QOS have in common. Absent: none. `grp_*` bind the sum
            over all below an association, or over all
            jobs of a QOS; `max_*` bind one job, and of associations the nearest one that says something counts.
        max_jobs_per_user (int | None | Unset):
        max_jobs_per_account (int | None | Unset):
        max_submit_jobs_per_user (int | None | Unset):
        max_submit_jobs_per_account (int | None | Unset):
        max_tres_per_user (QosMaxTresPerUser | Unset):
        max_tres_per_account (QosMaxTresPerAccount | Unset):
        max_tres_run_minutes_per_user (QosMaxTresRunMinutesPerUser | Unset): What a user's running jobs may still use
            until their time limits, in resource-minutes.
        max_tres_run_minutes_per_account (QosMaxTresRunMinutesPerAccount | Unset):
        min_tres_per_job (QosMinTresPerJob | Unset): The least that a job must ask for.
    """

    name: str
    priority: int | Unset = UNSET
    max_time_seconds: int | None | Unset = UNSET
    allow_tenants: list[str] | Unset = UNSET
    description: None | str | Unset = UNSET
    usage_factor: float | Unset = UNSET
    limit_factor: float | Unset = UNSET
    over_partition_qos: bool | Unset = UNSET
    deny_on_limit: bool | Unset = UNSET
    limits: Limits | Unset = UNSET
    max_jobs_per_user: int | None | Unset = UNSET
    max_jobs_per_account: int | None | Unset = UNSET
    max_submit_jobs_per_user: int | None | Unset = UNSET
    max_submit_jobs_per_account: int | None | Unset = UNSET
    max_tres_per_user: QosMaxTresPerUser | Unset = UNSET
    max_tres_per_account: QosMaxTresPerAccount | Unset = UNSET
    max_tres_run_minutes_per_user: QosMaxTresRunMinutesPerUser | Unset = UNSET
    max_tres_run_minutes_per_account: QosMaxTresRunMinutesPerAccount | Unset = UNSET
    min_tres_per_job: QosMinTresPerJob | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        priority = self.priority

        max_time_seconds: int | None | Unset
        if isinstance(self.max_time_seconds, Unset):
            max_time_seconds = UNSET
        else:
            max_time_seconds = self.max_time_seconds

        allow_tenants: list[str] | Unset = UNSET
        if not isinstance(self.allow_tenants, Unset):
            allow_tenants = self.allow_tenants

        description: None | str | Unset
        if isinstance(self.description, Unset):
            description = UNSET
        else:
            description = self.description

        usage_factor = self.usage_factor

        limit_factor = self.limit_factor

        over_partition_qos = self.over_partition_qos

        deny_on_limit = self.deny_on_limit

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        max_jobs_per_user: int | None | Unset
        if isinstance(self.max_jobs_per_user, Unset):
            max_jobs_per_user = UNSET
        else:
            max_jobs_per_user = self.max_jobs_per_user

        max_jobs_per_account: int | None | Unset
        if isinstance(self.max_jobs_per_account, Unset):
            max_jobs_per_account = UNSET
        else:
            max_jobs_per_account = self.max_jobs_per_account

        max_submit_jobs_per_user: int | None | Unset
        if isinstance(self.max_submit_jobs_per_user, Unset):
            max_submit_jobs_per_user = UNSET
        else:
            max_submit_jobs_per_user = self.max_submit_jobs_per_user

        max_submit_jobs_per_account: int | None | Unset
        if isinstance(self.max_submit_jobs_per_account, Unset):
            max_submit_jobs_per_account = UNSET
        else:
            max_submit_jobs_per_account = self.max_submit_jobs_per_account

        max_tres_per_user: dict[str, Any] | Unset = UNSET
        if not isinstance(self.max_tres_per_user, Unset):
            max_tres_per_user = self.max_tres_per_user.to_dict()

        max_tres_per_account: dict[str, Any] | Unset = UNSET
        if not isinstance(self.max_tres_per_account, Unset):
            max_tres_per_account = self.max_tres_per_account.to_dict()

        max_tres_run_minutes_per_user: dict[str, Any] | Unset = UNSET
        if not isinstance(self.max_tres_run_minutes_per_user, Unset):
            max_tres_run_minutes_per_user = self.max_tres_run_minutes_per_user.to_dict()

        max_tres_run_minutes_per_account: dict[str, Any] | Unset = UNSET
        if not isinstance(self.max_tres_run_minutes_per_account, Unset):
            max_tres_run_minutes_per_account = self.max_tres_run_minutes_per_account.to_dict()

        min_tres_per_job: dict[str, Any] | Unset = UNSET
        if not isinstance(self.min_tres_per_job, Unset):
            min_tres_per_job = self.min_tres_per_job.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if priority is not UNSET:
            field_dict["priority"] = priority
        if max_time_seconds is not UNSET:
            field_dict["max_time_seconds"] = max_time_seconds
        if allow_tenants is not UNSET:
            field_dict["allow_tenants"] = allow_tenants
        if description is not UNSET:
            field_dict["description"] = description
        if usage_factor is not UNSET:
            field_dict["usage_factor"] = usage_factor
        if limit_factor is not UNSET:
            field_dict["limit_factor"] = limit_factor
        if over_partition_qos is not UNSET:
            field_dict["over_partition_qos"] = over_partition_qos
        if deny_on_limit is not UNSET:
            field_dict["deny_on_limit"] = deny_on_limit
        if limits is not UNSET:
            field_dict["limits"] = limits
        if max_jobs_per_user is not UNSET:
            field_dict["max_jobs_per_user"] = max_jobs_per_user
        if max_jobs_per_account is not UNSET:
            field_dict["max_jobs_per_account"] = max_jobs_per_account
        if max_submit_jobs_per_user is not UNSET:
            field_dict["max_submit_jobs_per_user"] = max_submit_jobs_per_user
        if max_submit_jobs_per_account is not UNSET:
            field_dict["max_submit_jobs_per_account"] = max_submit_jobs_per_account
        if max_tres_per_user is not UNSET:
            field_dict["max_tres_per_user"] = max_tres_per_user
        if max_tres_per_account is not UNSET:
            field_dict["max_tres_per_account"] = max_tres_per_account
        if max_tres_run_minutes_per_user is not UNSET:
            field_dict["max_tres_run_minutes_per_user"] = max_tres_run_minutes_per_user
        if max_tres_run_minutes_per_account is not UNSET:
            field_dict["max_tres_run_minutes_per_account"] = max_tres_run_minutes_per_account
        if min_tres_per_job is not UNSET:
            field_dict["min_tres_per_job"] = min_tres_per_job

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.limits import Limits  # noqa: PLC0415
        from ..models.qos_max_tres_per_account import QosMaxTresPerAccount  # noqa: PLC0415
        from ..models.qos_max_tres_per_user import QosMaxTresPerUser  # noqa: PLC0415
        from ..models.qos_max_tres_run_minutes_per_account import (
            QosMaxTresRunMinutesPerAccount,  # noqa: PLC0415
        )
        from ..models.qos_max_tres_run_minutes_per_user import (
            QosMaxTresRunMinutesPerUser,  # noqa: PLC0415
        )
        from ..models.qos_min_tres_per_job import QosMinTresPerJob  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        priority = d.pop("priority", UNSET)

        def _parse_max_time_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_time_seconds = _parse_max_time_seconds(d.pop("max_time_seconds", UNSET))

        allow_tenants = cast(list[str], d.pop("allow_tenants", UNSET))

        def _parse_description(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        description = _parse_description(d.pop("description", UNSET))

        usage_factor = d.pop("usage_factor", UNSET)

        limit_factor = d.pop("limit_factor", UNSET)

        over_partition_qos = d.pop("over_partition_qos", UNSET)

        deny_on_limit = d.pop("deny_on_limit", UNSET)

        _limits = d.pop("limits", UNSET)
        limits: Limits | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = Limits.from_dict(_limits)

        def _parse_max_jobs_per_user(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_jobs_per_user = _parse_max_jobs_per_user(d.pop("max_jobs_per_user", UNSET))

        def _parse_max_jobs_per_account(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_jobs_per_account = _parse_max_jobs_per_account(d.pop("max_jobs_per_account", UNSET))

        def _parse_max_submit_jobs_per_user(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_submit_jobs_per_user = _parse_max_submit_jobs_per_user(d.pop("max_submit_jobs_per_user", UNSET))

        def _parse_max_submit_jobs_per_account(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_submit_jobs_per_account = _parse_max_submit_jobs_per_account(d.pop("max_submit_jobs_per_account", UNSET))

        _max_tres_per_user = d.pop("max_tres_per_user", UNSET)
        max_tres_per_user: QosMaxTresPerUser | Unset
        if isinstance(_max_tres_per_user, Unset):
            max_tres_per_user = UNSET
        else:
            max_tres_per_user = QosMaxTresPerUser.from_dict(_max_tres_per_user)

        _max_tres_per_account = d.pop("max_tres_per_account", UNSET)
        max_tres_per_account: QosMaxTresPerAccount | Unset
        if isinstance(_max_tres_per_account, Unset):
            max_tres_per_account = UNSET
        else:
            max_tres_per_account = QosMaxTresPerAccount.from_dict(_max_tres_per_account)

        _max_tres_run_minutes_per_user = d.pop("max_tres_run_minutes_per_user", UNSET)
        max_tres_run_minutes_per_user: QosMaxTresRunMinutesPerUser | Unset
        if isinstance(_max_tres_run_minutes_per_user, Unset):
            max_tres_run_minutes_per_user = UNSET
        else:
            max_tres_run_minutes_per_user = QosMaxTresRunMinutesPerUser.from_dict(_max_tres_run_minutes_per_user)

        _max_tres_run_minutes_per_account = d.pop("max_tres_run_minutes_per_account", UNSET)
        max_tres_run_minutes_per_account: QosMaxTresRunMinutesPerAccount | Unset
        if isinstance(_max_tres_run_minutes_per_account, Unset):
            max_tres_run_minutes_per_account = UNSET
        else:
            max_tres_run_minutes_per_account = QosMaxTresRunMinutesPerAccount.from_dict(_max_tres_run_minutes_per_account)

        _min_tres_per_job = d.pop("min_tres_per_job", UNSET)
        min_tres_per_job: QosMinTresPerJob | Unset
        if isinstance(_min_tres_per_job, Unset):
            min_tres_per_job = UNSET
        else:
            min_tres_per_job = QosMinTresPerJob.from_dict(_min_tres_per_job)

        qos = cls(
            name=name,
            priority=priority,
            max_time_seconds=max_time_seconds,
            allow_tenants=allow_tenants,
            description=description,
            usage_factor=usage_factor,
            limit_factor=limit_factor,
            over_partition_qos=over_partition_qos,
            deny_on_limit=deny_on_limit,
            limits=limits,
            max_jobs_per_user=max_jobs_per_user,
            max_jobs_per_account=max_jobs_per_account,
            max_submit_jobs_per_user=max_submit_jobs_per_user,
            max_submit_jobs_per_account=max_submit_jobs_per_account,
            max_tres_per_user=max_tres_per_user,
            max_tres_per_account=max_tres_per_account,
            max_tres_run_minutes_per_user=max_tres_run_minutes_per_user,
            max_tres_run_minutes_per_account=max_tres_run_minutes_per_account,
            min_tres_per_job=min_tres_per_job,
        )

        return qos
