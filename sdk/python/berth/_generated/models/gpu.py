from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="Gpu")


@_attrs_define
class Gpu:
    """One GPU of a node.

    Attributes:
        index (int): Index as the vendor's tools count on this node.
        uuid (str):
        type_ (str): Type as jobs ask for it, lower-case: `h100`, `mi300x`.
        memory_bytes (int): Bytes. Text such as "80GiB" is accepted on input too.
        numa (int | None | Unset): NUMA node next to it, if known.
        fault (None | str | Unset): Out of service until cleared: no new job gets it.
    """

    index: int
    uuid: str
    type_: str
    memory_bytes: int
    numa: int | None | Unset = UNSET
    fault: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        index = self.index

        uuid = self.uuid

        type_ = self.type_

        memory_bytes = self.memory_bytes

        numa: int | None | Unset
        if isinstance(self.numa, Unset):
            numa = UNSET
        else:
            numa = self.numa

        fault: None | str | Unset
        if isinstance(self.fault, Unset):
            fault = UNSET
        else:
            fault = self.fault

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "index": index,
                "uuid": uuid,
                "type": type_,
                "memory_bytes": memory_bytes,
            }
        )
        if numa is not UNSET:
            field_dict["numa"] = numa
        if fault is not UNSET:
            field_dict["fault"] = fault

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        index = d.pop("index")

        uuid = d.pop("uuid")

        type_ = d.pop("type")

        memory_bytes = d.pop("memory_bytes")

        def _parse_numa(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        numa = _parse_numa(d.pop("numa", UNSET))

        def _parse_fault(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        fault = _parse_fault(d.pop("fault", UNSET))

        gpu = cls(
            index=index,
            uuid=uuid,
            type_=type_,
            memory_bytes=memory_bytes,
            numa=numa,
            fault=fault,
        )

        gpu.additional_properties = d
        return gpu

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
