from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.policy import Policy


T = TypeVar("T", bound="NamedPolicy")


@_attrs_define
class NamedPolicy:
    """A policy to replay under, whole: what is left out has its default.

    Attributes:
        name (str):
        policy (Policy): The cluster's weights and rules. A job's priority is Σ weight × factor, each factor in 0..=1
            (Slurm's multifactor plugin).

            By default a QOS weighs more than fair share, and fair share more than age or the partition.
    """

    name: str
    policy: Policy

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        policy = self.policy.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "policy": policy,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.policy import Policy  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        policy = Policy.from_dict(d.pop("policy"))

        named_policy = cls(
            name=name,
            policy=policy,
        )

        return named_policy
