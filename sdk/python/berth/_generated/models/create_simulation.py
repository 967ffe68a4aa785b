from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.named_policy import NamedPolicy


T = TypeVar("T", bound="CreateSimulation")


@_attrs_define
class CreateSimulation:
    """Replay the jobs submitted within [`from`, `to`) that ran and have ended.

    Attributes:
        from_ (datetime.datetime):
        to (datetime.datetime): At most 92 days after `from`, and not in the future.
        policies (list[NamedPolicy]): Compared with each other and with what was recorded.
    """

    from_: datetime.datetime
    to: datetime.datetime
    policies: list[NamedPolicy]

    def to_dict(self) -> dict[str, Any]:
        from_ = self.from_.isoformat()

        to = self.to.isoformat()

        policies = []
        for policies_item_data in self.policies:
            policies_item = policies_item_data.to_dict()
            policies.append(policies_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "from": from_,
                "to": to,
                "policies": policies,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.named_policy import NamedPolicy  # noqa: PLC0415

        d = dict(src_dict)
        from_ = datetime.datetime.fromisoformat(d.pop("from"))

        to = datetime.datetime.fromisoformat(d.pop("to"))

        policies = []
        _policies = d.pop("policies")
        for policies_item_data in _policies:
            policies_item = NamedPolicy.from_dict(policies_item_data)

            policies.append(policies_item)

        create_simulation = cls(
            from_=from_,
            to=to,
            policies=policies,
        )

        return create_simulation
