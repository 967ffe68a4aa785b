from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.terms import Terms


T = TypeVar("T", bound="Association")


@_attrs_define
class Association:
    """
    Attributes:
        tenant (str):
        account (str):
        user (str):
        is_manager (bool): May act on all jobs of the account.
        terms (Terms): What an association is given: its share, its part in priorities, its limits.
    """

    tenant: str
    account: str
    user: str
    is_manager: bool
    terms: Terms
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        tenant = self.tenant

        account = self.account

        user = self.user

        is_manager = self.is_manager

        terms = self.terms.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tenant": tenant,
                "account": account,
                "user": user,
                "is_manager": is_manager,
                "terms": terms,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.terms import Terms  # noqa: PLC0415

        d = dict(src_dict)
        tenant = d.pop("tenant")

        account = d.pop("account")

        user = d.pop("user")

        is_manager = d.pop("is_manager")

        terms = Terms.from_dict(d.pop("terms"))

        association = cls(
            tenant=tenant,
            account=account,
            user=user,
            is_manager=is_manager,
            terms=terms,
        )

        association.additional_properties = d
        return association

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
