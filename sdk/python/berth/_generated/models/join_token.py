from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="JoinToken")


@_attrs_define
class JoinToken:
    """
    Attributes:
        id (str):
        node_pattern (str):
        uses_left (int):
        expires_at (datetime.datetime):
        created_by (str):
        created_at (datetime.datetime):
        token (None | str | Unset): The secret. Shown once, at creation.
    """

    id: str
    node_pattern: str
    uses_left: int
    expires_at: datetime.datetime
    created_by: str
    created_at: datetime.datetime
    token: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        node_pattern = self.node_pattern

        uses_left = self.uses_left

        expires_at = self.expires_at.isoformat()

        created_by = self.created_by

        created_at = self.created_at.isoformat()

        token: None | str | Unset
        if isinstance(self.token, Unset):
            token = UNSET
        else:
            token = self.token

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "node_pattern": node_pattern,
                "uses_left": uses_left,
                "expires_at": expires_at,
                "created_by": created_by,
                "created_at": created_at,
            }
        )
        if token is not UNSET:
            field_dict["token"] = token

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        node_pattern = d.pop("node_pattern")

        uses_left = d.pop("uses_left")

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        created_by = d.pop("created_by")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_token(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        token = _parse_token(d.pop("token", UNSET))

        join_token = cls(
            id=id,
            node_pattern=node_pattern,
            uses_left=uses_left,
            expires_at=expires_at,
            created_by=created_by,
            created_at=created_at,
            token=token,
        )

        join_token.additional_properties = d
        return join_token

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
