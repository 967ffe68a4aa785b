from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PutAssociation")


@_attrs_define
class PutAssociation:
    """
    Attributes:
        account (str):
        user (str):
        is_manager (bool | Unset):
    """

    account: str
    user: str
    is_manager: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        account = self.account

        user = self.user

        is_manager = self.is_manager

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "account": account,
                "user": user,
            }
        )
        if is_manager is not UNSET:
            field_dict["is_manager"] = is_manager

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        account = d.pop("account")

        user = d.pop("user")

        is_manager = d.pop("is_manager", UNSET)

        put_association = cls(
            account=account,
            user=user,
            is_manager=is_manager,
        )

        return put_association
