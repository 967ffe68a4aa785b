from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.inventory_gpu_shares_additional_property import (
        InventoryGpuSharesAdditionalProperty,
    )


T = TypeVar("T", bound="InventoryGpuShares")


@_attrs_define
class InventoryGpuShares:
    """How its GPUs may be shared: by the way of sharing and the GPU's index, into how many shares."""

    additional_properties: dict[str, InventoryGpuSharesAdditionalProperty] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:

        field_dict: dict[str, Any] = {}
        for prop_name, prop in self.additional_properties.items():
            field_dict[prop_name] = prop.to_dict()

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.inventory_gpu_shares_additional_property import (
            InventoryGpuSharesAdditionalProperty,  # noqa: PLC0415
        )

        d = dict(src_dict)
        inventory_gpu_shares = cls()

        additional_properties = {}
        for prop_name, prop_dict in d.items():
            additional_property = InventoryGpuSharesAdditionalProperty.from_dict(prop_dict)

            additional_properties[prop_name] = additional_property

        inventory_gpu_shares.additional_properties = additional_properties
        return inventory_gpu_shares

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> InventoryGpuSharesAdditionalProperty:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: InventoryGpuSharesAdditionalProperty) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
