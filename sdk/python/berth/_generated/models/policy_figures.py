from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.account_figures import AccountFigures


T = TypeVar("T", bound="PolicyFigures")


@_attrs_define
class PolicyFigures:
    """How a period went. Units are GPUs if any job asked for some, else CPUs.

    Attributes:
        policy (str):
        jobs (int):
        rejected (int): Jobs that the nodes of today cannot run.
        preemptions (int): Attempts that were stopped or lost and run again; replays have none.
        lost_unit_seconds (float): Unit-seconds of such attempts.
        mean_wait_seconds (float):
        p95_wait_seconds (float):
        mean_bounded_slowdown (float): Bounded slowdown: max(1, (wait + run) ÷ max(run, 10 s)).
        median_bounded_slowdown (float):
        utilisation (float): Busy unit-seconds between the first and the last submission ÷ (capacity × that time).
        large_jobs (int): Jobs of the largest hundredth by units, and their mean wait.
        user_max_over_mean (float): The worst user's mean slowdown over the mean of all users with ten jobs or more.
        accounts (list[AccountFigures]):
        large_job_mean_wait_seconds (float | None | Unset):
    """

    policy: str
    jobs: int
    rejected: int
    preemptions: int
    lost_unit_seconds: float
    mean_wait_seconds: float
    p95_wait_seconds: float
    mean_bounded_slowdown: float
    median_bounded_slowdown: float
    utilisation: float
    large_jobs: int
    user_max_over_mean: float
    accounts: list[AccountFigures]
    large_job_mean_wait_seconds: float | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        policy = self.policy

        jobs = self.jobs

        rejected = self.rejected

        preemptions = self.preemptions

        lost_unit_seconds = self.lost_unit_seconds

        mean_wait_seconds = self.mean_wait_seconds

        p95_wait_seconds = self.p95_wait_seconds

        mean_bounded_slowdown = self.mean_bounded_slowdown

        median_bounded_slowdown = self.median_bounded_slowdown

        utilisation = self.utilisation

        large_jobs = self.large_jobs

        user_max_over_mean = self.user_max_over_mean

        accounts = []
        for accounts_item_data in self.accounts:
            accounts_item = accounts_item_data.to_dict()
            accounts.append(accounts_item)

        large_job_mean_wait_seconds: float | None | Unset
        if isinstance(self.large_job_mean_wait_seconds, Unset):
            large_job_mean_wait_seconds = UNSET
        else:
            large_job_mean_wait_seconds = self.large_job_mean_wait_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "policy": policy,
                "jobs": jobs,
                "rejected": rejected,
                "preemptions": preemptions,
                "lost_unit_seconds": lost_unit_seconds,
                "mean_wait_seconds": mean_wait_seconds,
                "p95_wait_seconds": p95_wait_seconds,
                "mean_bounded_slowdown": mean_bounded_slowdown,
                "median_bounded_slowdown": median_bounded_slowdown,
                "utilisation": utilisation,
                "large_jobs": large_jobs,
                "user_max_over_mean": user_max_over_mean,
                "accounts": accounts,
            }
        )
        if large_job_mean_wait_seconds is not UNSET:
            field_dict["large_job_mean_wait_seconds"] = large_job_mean_wait_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.account_figures import AccountFigures  # noqa: PLC0415

        d = dict(src_dict)
        policy = d.pop("policy")

        jobs = d.pop("jobs")

        rejected = d.pop("rejected")

        preemptions = d.pop("preemptions")

        lost_unit_seconds = d.pop("lost_unit_seconds")

        mean_wait_seconds = d.pop("mean_wait_seconds")

        p95_wait_seconds = d.pop("p95_wait_seconds")

        mean_bounded_slowdown = d.pop("mean_bounded_slowdown")

        median_bounded_slowdown = d.pop("median_bounded_slowdown")

        utilisation = d.pop("utilisation")

        large_jobs = d.pop("large_jobs")

        user_max_over_mean = d.pop("user_max_over_mean")

        accounts = []
        _accounts = d.pop("accounts")
        for accounts_item_data in _accounts:
            accounts_item = AccountFigures.from_dict(accounts_item_data)

            accounts.append(accounts_item)

        def _parse_large_job_mean_wait_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        large_job_mean_wait_seconds = _parse_large_job_mean_wait_seconds(d.pop("large_job_mean_wait_seconds", UNSET))

        policy_figures = cls(
            policy=policy,
            jobs=jobs,
            rejected=rejected,
            preemptions=preemptions,
            lost_unit_seconds=lost_unit_seconds,
            mean_wait_seconds=mean_wait_seconds,
            p95_wait_seconds=p95_wait_seconds,
            mean_bounded_slowdown=mean_bounded_slowdown,
            median_bounded_slowdown=median_bounded_slowdown,
            utilisation=utilisation,
            large_jobs=large_jobs,
            user_max_over_mean=user_max_over_mean,
            accounts=accounts,
            large_job_mean_wait_seconds=large_job_mean_wait_seconds,
        )

        policy_figures.additional_properties = d
        return policy_figures

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
