from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reserved_share import ReservedShare


T = TypeVar("T", bound="ReservedPart")


@_attrs_define
class ReservedPart:
    """What is kept of some nodes.

    Attributes:
        nodes (str): Folded: `n[1-4]`.
        share (None | ReservedShare | Unset):
    """

    nodes: str
    share: None | ReservedShare | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.reserved_share import ReservedShare  # noqa: PLC0415

        nodes = self.nodes

        share: dict[str, Any] | None | Unset
        if isinstance(self.share, Unset):
            share = UNSET
        elif isinstance(self.share, ReservedShare):
            share = self.share.to_dict()
        else:
            share = self.share

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "nodes": nodes,
            }
        )
        if share is not UNSET:
            field_dict["share"] = share

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reserved_share import ReservedShare  # noqa: PLC0415

        d = dict(src_dict)
        nodes = d.pop("nodes")

        def _parse_share(data: object) -> None | ReservedShare | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                share_type_0 = ReservedShare.from_dict(data)

                return share_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ReservedShare | Unset, data)

        share = _parse_share(d.pop("share", UNSET))

        reserved_part = cls(
            nodes=nodes,
            share=share,
        )

        reserved_part.additional_properties = d
        return reserved_part

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
