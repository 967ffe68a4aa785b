from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="CreateJoinToken")


@_attrs_define
class CreateJoinToken:
    """
    Attributes:
        node_pattern (str | Unset): Node names it lets in; `*` stands for any text. Default: '*'.
        uses (int | Unset): Registrations it is good for. Default: 1.
        valid_seconds (int | Unset): Seconds it is valid. Default: 3600.
    """

    node_pattern: str | Unset = "*"
    uses: int | Unset = 1
    valid_seconds: int | Unset = 3600

    def to_dict(self) -> dict[str, Any]:
        node_pattern = self.node_pattern

        uses = self.uses

        valid_seconds = self.valid_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if node_pattern is not UNSET:
            field_dict["node_pattern"] = node_pattern
        if uses is not UNSET:
            field_dict["uses"] = uses
        if valid_seconds is not UNSET:
            field_dict["valid_seconds"] = valid_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        node_pattern = d.pop("node_pattern", UNSET)

        uses = d.pop("uses", UNSET)

        valid_seconds = d.pop("valid_seconds", UNSET)

        create_join_token = cls(
            node_pattern=node_pattern,
            uses=uses,
            valid_seconds=valid_seconds,
        )

        return create_join_token
