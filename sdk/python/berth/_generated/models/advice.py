from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.alternative import Alternative


T = TypeVar("T", bound="Advice")


@_attrs_define
class Advice:
    """What was found in the time that there was.

    Attributes:
        as_of (datetime.datetime): When the plans were made that this tells of.
        alternatives (list[Alternative]): The soonest first.
        is_partial (bool): Not everything was tried: a plan of this queue takes long.
    """

    as_of: datetime.datetime
    alternatives: list[Alternative]
    is_partial: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        as_of = self.as_of.isoformat()

        alternatives = []
        for alternatives_item_data in self.alternatives:
            alternatives_item = alternatives_item_data.to_dict()
            alternatives.append(alternatives_item)

        is_partial = self.is_partial

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "as_of": as_of,
                "alternatives": alternatives,
                "is_partial": is_partial,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.alternative import Alternative  # noqa: PLC0415

        d = dict(src_dict)
        as_of = datetime.datetime.fromisoformat(d.pop("as_of"))

        alternatives = []
        _alternatives = d.pop("alternatives")
        for alternatives_item_data in _alternatives:
            alternatives_item = Alternative.from_dict(alternatives_item_data)

            alternatives.append(alternatives_item)

        is_partial = d.pop("is_partial")

        advice = cls(
            as_of=as_of,
            alternatives=alternatives,
            is_partial=is_partial,
        )

        advice.additional_properties = d
        return advice

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
