from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.limits_grp_tres import LimitsGrpTres
    from ..models.limits_grp_tres_minutes import LimitsGrpTresMinutes
    from ..models.limits_grp_tres_run_minutes import LimitsGrpTresRunMinutes
    from ..models.limits_max_tres_minutes_per_job import LimitsMaxTresMinutesPerJob
    from ..models.limits_max_tres_per_job import LimitsMaxTresPerJob
    from ..models.limits_max_tres_per_node import LimitsMaxTresPerNode


T = TypeVar("T", bound="Limits")


@_attrs_define
class Limits:
    """Limits that associations and QOS have in common. Absent: none. `grp_*` bind the sum over all below an association,
    or over all
    jobs of a QOS; `max_*` bind one job, and of associations the nearest one that says something counts.

        Attributes:
            grp_tres (LimitsGrpTres | Unset): Held by running jobs at once. A node counts once, however many of the jobs are
                on it.
            grp_tres_minutes (LimitsGrpTresMinutes | Unset): Decayed use and what runs, in resource-minutes.
            grp_tres_run_minutes (LimitsGrpTresRunMinutes | Unset): What running jobs may still use until their time limits,
                in resource-minutes.
            grp_jobs (int | None | Unset): Running at once.
            grp_submit_jobs (int | None | Unset): Pending and running; beyond it submissions are refused.
            grp_wall_minutes (int | None | Unset): Decayed run time of all jobs, in minutes.
            max_tres_per_job (LimitsMaxTresPerJob | Unset):
            max_tres_per_node (LimitsMaxTresPerNode | Unset):
            max_tres_minutes_per_job (LimitsMaxTresMinutesPerJob | Unset): A job's resources times its time limit, in
                resource-minutes.
            max_wall_seconds (int | None | Unset):
    """

    grp_tres: LimitsGrpTres | Unset = UNSET
    grp_tres_minutes: LimitsGrpTresMinutes | Unset = UNSET
    grp_tres_run_minutes: LimitsGrpTresRunMinutes | Unset = UNSET
    grp_jobs: int | None | Unset = UNSET
    grp_submit_jobs: int | None | Unset = UNSET
    grp_wall_minutes: int | None | Unset = UNSET
    max_tres_per_job: LimitsMaxTresPerJob | Unset = UNSET
    max_tres_per_node: LimitsMaxTresPerNode | Unset = UNSET
    max_tres_minutes_per_job: LimitsMaxTresMinutesPerJob | Unset = UNSET
    max_wall_seconds: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        grp_tres: dict[str, Any] | Unset = UNSET
        if not isinstance(self.grp_tres, Unset):
            grp_tres = self.grp_tres.to_dict()

        grp_tres_minutes: dict[str, Any] | Unset = UNSET
        if not isinstance(self.grp_tres_minutes, Unset):
            grp_tres_minutes = self.grp_tres_minutes.to_dict()

        grp_tres_run_minutes: dict[str, Any] | Unset = UNSET
        if not isinstance(self.grp_tres_run_minutes, Unset):
            grp_tres_run_minutes = self.grp_tres_run_minutes.to_dict()

        grp_jobs: int | None | Unset
        if isinstance(self.grp_jobs, Unset):
            grp_jobs = UNSET
        else:
            grp_jobs = self.grp_jobs

        grp_submit_jobs: int | None | Unset
        if isinstance(self.grp_submit_jobs, Unset):
            grp_submit_jobs = UNSET
        else:
            grp_submit_jobs = self.grp_submit_jobs

        grp_wall_minutes: int | None | Unset
        if isinstance(self.grp_wall_minutes, Unset):
            grp_wall_minutes = UNSET
        else:
            grp_wall_minutes = self.grp_wall_minutes

        max_tres_per_job: dict[str, Any] | Unset = UNSET
        if not isinstance(self.max_tres_per_job, Unset):
            max_tres_per_job = self.max_tres_per_job.to_dict()

        max_tres_per_node: dict[str, Any] | Unset = UNSET
        if not isinstance(self.max_tres_per_node, Unset):
            max_tres_per_node = self.max_tres_per_node.to_dict()

        max_tres_minutes_per_job: dict[str, Any] | Unset = UNSET
        if not isinstance(self.max_tres_minutes_per_job, Unset):
            max_tres_minutes_per_job = self.max_tres_minutes_per_job.to_dict()

        max_wall_seconds: int | None | Unset
        if isinstance(self.max_wall_seconds, Unset):
            max_wall_seconds = UNSET
        else:
            max_wall_seconds = self.max_wall_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if grp_tres is not UNSET:
            field_dict["grp_tres"] = grp_tres
        if grp_tres_minutes is not UNSET:
            field_dict["grp_tres_minutes"] = grp_tres_minutes
        if grp_tres_run_minutes is not UNSET:
            field_dict["grp_tres_run_minutes"] = grp_tres_run_minutes
        if grp_jobs is not UNSET:
            field_dict["grp_jobs"] = grp_jobs
        if grp_submit_jobs is not UNSET:
            field_dict["grp_submit_jobs"] = grp_submit_jobs
        if grp_wall_minutes is not UNSET:
            field_dict["grp_wall_minutes"] = grp_wall_minutes
        if max_tres_per_job is not UNSET:
            field_dict["max_tres_per_job"] = max_tres_per_job
        if max_tres_per_node is not UNSET:
            field_dict["max_tres_per_node"] = max_tres_per_node
        if max_tres_minutes_per_job is not UNSET:
            field_dict["max_tres_minutes_per_job"] = max_tres_minutes_per_job
        if max_wall_seconds is not UNSET:
            field_dict["max_wall_seconds"] = max_wall_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.limits_grp_tres import LimitsGrpTres  # noqa: PLC0415
        from ..models.limits_grp_tres_minutes import LimitsGrpTresMinutes  # noqa: PLC0415
        from ..models.limits_grp_tres_run_minutes import LimitsGrpTresRunMinutes  # noqa: PLC0415
        from ..models.limits_max_tres_minutes_per_job import LimitsMaxTresMinutesPerJob  # noqa: PLC0415
        from ..models.limits_max_tres_per_job import LimitsMaxTresPerJob  # noqa: PLC0415
        from ..models.limits_max_tres_per_node import LimitsMaxTresPerNode  # noqa: PLC0415

        d = dict(src_dict)
        _grp_tres = d.pop("grp_tres", UNSET)
        grp_tres: LimitsGrpTres | Unset
        if isinstance(_grp_tres, Unset):
            grp_tres = UNSET
        else:
            grp_tres = LimitsGrpTres.from_dict(_grp_tres)

        _grp_tres_minutes = d.pop("grp_tres_minutes", UNSET)
        grp_tres_minutes: LimitsGrpTresMinutes | Unset
        if isinstance(_grp_tres_minutes, Unset):
            grp_tres_minutes = UNSET
        else:
            grp_tres_minutes = LimitsGrpTresMinutes.from_dict(_grp_tres_minutes)

        _grp_tres_run_minutes = d.pop("grp_tres_run_minutes", UNSET)
        grp_tres_run_minutes: LimitsGrpTresRunMinutes | Unset
        if isinstance(_grp_tres_run_minutes, Unset):
            grp_tres_run_minutes = UNSET
        else:
            grp_tres_run_minutes = LimitsGrpTresRunMinutes.from_dict(_grp_tres_run_minutes)

        def _parse_grp_jobs(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        grp_jobs = _parse_grp_jobs(d.pop("grp_jobs", UNSET))

        def _parse_grp_submit_jobs(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        grp_submit_jobs = _parse_grp_submit_jobs(d.pop("grp_submit_jobs", UNSET))

        def _parse_grp_wall_minutes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        grp_wall_minutes = _parse_grp_wall_minutes(d.pop("grp_wall_minutes", UNSET))

        _max_tres_per_job = d.pop("max_tres_per_job", UNSET)
        max_tres_per_job: LimitsMaxTresPerJob | Unset
        if isinstance(_max_tres_per_job, Unset):
            max_tres_per_job = UNSET
        else:
            max_tres_per_job = LimitsMaxTresPerJob.from_dict(_max_tres_per_job)

        _max_tres_per_node = d.pop("max_tres_per_node", UNSET)
        max_tres_per_node: LimitsMaxTresPerNode | Unset
        if isinstance(_max_tres_per_node, Unset):
            max_tres_per_node = UNSET
        else:
            max_tres_per_node = LimitsMaxTresPerNode.from_dict(_max_tres_per_node)

        _max_tres_minutes_per_job = d.pop("max_tres_minutes_per_job", UNSET)
        max_tres_minutes_per_job: LimitsMaxTresMinutesPerJob | Unset
        if isinstance(_max_tres_minutes_per_job, Unset):
            max_tres_minutes_per_job = UNSET
        else:
            max_tres_minutes_per_job = LimitsMaxTresMinutesPerJob.from_dict(_max_tres_minutes_per_job)

        def _parse_max_wall_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_wall_seconds = _parse_max_wall_seconds(d.pop("max_wall_seconds", UNSET))

        limits = cls(
            grp_tres=grp_tres,
            grp_tres_minutes=grp_tres_minutes,
            grp_tres_run_minutes=grp_tres_run_minutes,
            grp_jobs=grp_jobs,
            grp_submit_jobs=grp_submit_jobs,
            grp_wall_minutes=grp_wall_minutes,
            max_tres_per_job=max_tres_per_job,
            max_tres_per_node=max_tres_per_node,
            max_tres_minutes_per_job=max_tres_minutes_per_job,
            max_wall_seconds=max_wall_seconds,
        )

        return limits
