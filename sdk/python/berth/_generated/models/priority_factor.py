from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="PriorityFactor")


@_attrs_define
class PriorityFactor:
    """One factor of a job's priority.

    Attributes:
        name (str):
        raw (float): The factor, 0 to 1; `site` and `nice` are whole numbers.
        weight (float):
        value (float): raw × weight.
    """

    name: str
    raw: float
    weight: float
    value: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        raw = self.raw

        weight = self.weight

        value = self.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "raw": raw,
                "weight": weight,
                "value": value,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        raw = d.pop("raw")

        weight = d.pop("weight")

        value = d.pop("value")

        priority_factor = cls(
            name=name,
            raw=raw,
            weight=weight,
            value=value,
        )

        priority_factor.additional_properties = d
        return priority_factor

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
