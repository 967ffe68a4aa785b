from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="AccountFigures")


@_attrs_define
class AccountFigures:
    """
    Attributes:
        tenant (str):
        account (str):
        jobs (int):
        mean_wait_seconds (float):
        unit_hours (float):
    """

    tenant: str
    account: str
    jobs: int
    mean_wait_seconds: float
    unit_hours: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        tenant = self.tenant

        account = self.account

        jobs = self.jobs

        mean_wait_seconds = self.mean_wait_seconds

        unit_hours = self.unit_hours

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tenant": tenant,
                "account": account,
                "jobs": jobs,
                "mean_wait_seconds": mean_wait_seconds,
                "unit_hours": unit_hours,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        tenant = d.pop("tenant")

        account = d.pop("account")

        jobs = d.pop("jobs")

        mean_wait_seconds = d.pop("mean_wait_seconds")

        unit_hours = d.pop("unit_hours")

        account_figures = cls(
            tenant=tenant,
            account=account,
            jobs=jobs,
            mean_wait_seconds=mean_wait_seconds,
            unit_hours=unit_hours,
        )

        account_figures.additional_properties = d
        return account_figures

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
