from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.fairshare_type_1 import FairshareType1
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.limits import Limits
    from ..models.quota import Quota


T = TypeVar("T", bound="Terms")


@_attrs_define
class Terms:
    """What an association is given: its share, its part in priorities, its limits.

    Attributes:
        fairshare (FairshareType1 | int | Unset): Shares beside the siblings' (default 1), or "parent".
        priority (int | None | Unset): Relative priority; the highest of all associations counts as 1.0. Absent: the
            parent's.
        limits (Limits | Unset): Limits that associations and QOS have in common. Absent: none. `grp_*` bind the sum
            over all below an association, or over all
            jobs of a QOS; `max_*` bind one job, and of associations the nearest one that says something counts.
        quota (Quota | Unset): What a tenant is guaranteed, and under which conditions it borrows and lends. Counts are
            held by running jobs at once.
        max_jobs (int | None | Unset): Running jobs of each user below it; the nearest association that says something
            counts.
        max_submit_jobs (int | None | Unset): Pending and running jobs of each user below it; beyond it submissions are
            refused.
    """

    fairshare: FairshareType1 | int | Unset = UNSET
    priority: int | None | Unset = UNSET
    limits: Limits | Unset = UNSET
    quota: Quota | Unset = UNSET
    max_jobs: int | None | Unset = UNSET
    max_submit_jobs: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        fairshare: int | str | Unset
        if isinstance(self.fairshare, Unset):
            fairshare = UNSET
        elif isinstance(self.fairshare, FairshareType1):
            fairshare = self.fairshare.value
        else:
            fairshare = self.fairshare

        priority: int | None | Unset
        if isinstance(self.priority, Unset):
            priority = UNSET
        else:
            priority = self.priority

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        quota: dict[str, Any] | Unset = UNSET
        if not isinstance(self.quota, Unset):
            quota = self.quota.to_dict()

        max_jobs: int | None | Unset
        if isinstance(self.max_jobs, Unset):
            max_jobs = UNSET
        else:
            max_jobs = self.max_jobs

        max_submit_jobs: int | None | Unset
        if isinstance(self.max_submit_jobs, Unset):
            max_submit_jobs = UNSET
        else:
            max_submit_jobs = self.max_submit_jobs

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if fairshare is not UNSET:
            field_dict["fairshare"] = fairshare
        if priority is not UNSET:
            field_dict["priority"] = priority
        if limits is not UNSET:
            field_dict["limits"] = limits
        if quota is not UNSET:
            field_dict["quota"] = quota
        if max_jobs is not UNSET:
            field_dict["max_jobs"] = max_jobs
        if max_submit_jobs is not UNSET:
            field_dict["max_submit_jobs"] = max_submit_jobs

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.limits import Limits  # noqa: PLC0415
        from ..models.quota import Quota  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_fairshare(data: object) -> FairshareType1 | int | Unset:
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                componentsschemas_fairshare_type_1 = FairshareType1(data)

                return componentsschemas_fairshare_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FairshareType1 | int | Unset, data)

        fairshare = _parse_fairshare(d.pop("fairshare", UNSET))

        def _parse_priority(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        priority = _parse_priority(d.pop("priority", UNSET))

        _limits = d.pop("limits", UNSET)
        limits: Limits | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = Limits.from_dict(_limits)

        _quota = d.pop("quota", UNSET)
        quota: Quota | Unset
        if isinstance(_quota, Unset):
            quota = UNSET
        else:
            quota = Quota.from_dict(_quota)

        def _parse_max_jobs(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_jobs = _parse_max_jobs(d.pop("max_jobs", UNSET))

        def _parse_max_submit_jobs(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_submit_jobs = _parse_max_submit_jobs(d.pop("max_submit_jobs", UNSET))

        terms = cls(
            fairshare=fairshare,
            priority=priority,
            limits=limits,
            quota=quota,
            max_jobs=max_jobs,
            max_submit_jobs=max_submit_jobs,
        )

        return terms
