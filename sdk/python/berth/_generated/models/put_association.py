from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.terms import Terms


T = TypeVar("T", bound="PutAssociation")


@_attrs_define
class PutAssociation:
    """
    Attributes:
        account (str):
        user (str):
        is_manager (bool | Unset):
        terms (Terms | Unset): What an association is given: its share, its part in priorities, its limits.
    """

    account: str
    user: str
    is_manager: bool | Unset = UNSET
    terms: Terms | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        account = self.account

        user = self.user

        is_manager = self.is_manager

        terms: dict[str, Any] | Unset = UNSET
        if not isinstance(self.terms, Unset):
            terms = self.terms.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "account": account,
                "user": user,
            }
        )
        if is_manager is not UNSET:
            field_dict["is_manager"] = is_manager
        if terms is not UNSET:
            field_dict["terms"] = terms

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.terms import Terms  # noqa: PLC0415

        d = dict(src_dict)
        account = d.pop("account")

        user = d.pop("user")

        is_manager = d.pop("is_manager", UNSET)

        _terms = d.pop("terms", UNSET)
        terms: Terms | Unset
        if isinstance(_terms, Unset):
            terms = UNSET
        else:
            terms = Terms.from_dict(_terms)

        put_association = cls(
            account=account,
            user=user,
            is_manager=is_manager,
            terms=terms,
        )

        return put_association
