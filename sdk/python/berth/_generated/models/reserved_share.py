from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reserved_share_gpus import ReservedShareGpus


T = TypeVar("T", bound="ReservedShare")


@_attrs_define
class ReservedShare:
    """A part of a node.

    Attributes:
        cpus (int):
        memory_bytes (int): Bytes. Text such as "80GiB" is accepted on input too.
        gpus (ReservedShareGpus | Unset): By type.
    """

    cpus: int
    memory_bytes: int
    gpus: ReservedShareGpus | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        cpus = self.cpus

        memory_bytes = self.memory_bytes

        gpus: dict[str, Any] | Unset = UNSET
        if not isinstance(self.gpus, Unset):
            gpus = self.gpus.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "cpus": cpus,
                "memory_bytes": memory_bytes,
            }
        )
        if gpus is not UNSET:
            field_dict["gpus"] = gpus

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reserved_share_gpus import ReservedShareGpus  # noqa: PLC0415

        d = dict(src_dict)
        cpus = d.pop("cpus")

        memory_bytes = d.pop("memory_bytes")

        _gpus = d.pop("gpus", UNSET)
        gpus: ReservedShareGpus | Unset
        if isinstance(_gpus, Unset):
            gpus = UNSET
        else:
            gpus = ReservedShareGpus.from_dict(_gpus)

        reserved_share = cls(
            cpus=cpus,
            memory_bytes=memory_bytes,
            gpus=gpus,
        )

        reserved_share.additional_properties = d
        return reserved_share

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
