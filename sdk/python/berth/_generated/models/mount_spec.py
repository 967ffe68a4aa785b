from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="MountSpec")


@_attrs_define
class MountSpec:
    """
    Attributes:
        source (str): Path on the node; the worker's configuration says which may be mounted.
        target (str):
        read_only (bool | Unset):
    """

    source: str
    target: str
    read_only: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        source = self.source

        target = self.target

        read_only = self.read_only

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "source": source,
                "target": target,
            }
        )
        if read_only is not UNSET:
            field_dict["read_only"] = read_only

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        source = d.pop("source")

        target = d.pop("target")

        read_only = d.pop("read_only", UNSET)

        mount_spec = cls(
            source=source,
            target=target,
            read_only=read_only,
        )

        return mount_spec
