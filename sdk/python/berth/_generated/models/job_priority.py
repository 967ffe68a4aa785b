from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.priority_factor import PriorityFactor


T = TypeVar("T", bound="JobPriority")


@_attrs_define
class JobPriority:
    """A pending job's priority.

    Attributes:
        job_id (int):
        tenant (str):
        account (str):
        user (str):
        partition (str):
        qos (str):
        total (int):
        rank (int): Its place among all pending jobs; 1 is first.
        factors (list[PriorityFactor]):
        as_of (datetime.datetime):
    """

    job_id: int
    tenant: str
    account: str
    user: str
    partition: str
    qos: str
    total: int
    rank: int
    factors: list[PriorityFactor]
    as_of: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job_id = self.job_id

        tenant = self.tenant

        account = self.account

        user = self.user

        partition = self.partition

        qos = self.qos

        total = self.total

        rank = self.rank

        factors = []
        for factors_item_data in self.factors:
            factors_item = factors_item_data.to_dict()
            factors.append(factors_item)

        as_of = self.as_of.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job_id": job_id,
                "tenant": tenant,
                "account": account,
                "user": user,
                "partition": partition,
                "qos": qos,
                "total": total,
                "rank": rank,
                "factors": factors,
                "as_of": as_of,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.priority_factor import PriorityFactor  # noqa: PLC0415

        d = dict(src_dict)
        job_id = d.pop("job_id")

        tenant = d.pop("tenant")

        account = d.pop("account")

        user = d.pop("user")

        partition = d.pop("partition")

        qos = d.pop("qos")

        total = d.pop("total")

        rank = d.pop("rank")

        factors = []
        _factors = d.pop("factors")
        for factors_item_data in _factors:
            factors_item = PriorityFactor.from_dict(factors_item_data)

            factors.append(factors_item)

        as_of = datetime.datetime.fromisoformat(d.pop("as_of"))

        job_priority = cls(
            job_id=job_id,
            tenant=tenant,
            account=account,
            user=user,
            partition=partition,
            qos=qos,
            total=total,
            rank=rank,
            factors=factors,
            as_of=as_of,
        )

        job_priority.additional_properties = d
        return job_priority

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
