from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="NodeAllocation")


@_attrs_define
class NodeAllocation:
    """What one node gives to one attempt. Exact: CPU ids and GPU indices, not counts.

    Attributes:
        node (str):
        cpus (list[int]): Logical CPU ids.
        memory_bytes (int): Bytes. Text such as "80GiB" is accepted on input too.
        gpus (list[int]): GPU indices on the node.
        tasks (int): Tasks of the job's own command (or of `srun` without a count) that run here.
    """

    node: str
    cpus: list[int]
    memory_bytes: int
    gpus: list[int]
    tasks: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        node = self.node

        cpus = self.cpus

        memory_bytes = self.memory_bytes

        gpus = self.gpus

        tasks = self.tasks

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "node": node,
                "cpus": cpus,
                "memory_bytes": memory_bytes,
                "gpus": gpus,
                "tasks": tasks,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        node = d.pop("node")

        cpus = cast(list[int], d.pop("cpus"))

        memory_bytes = d.pop("memory_bytes")

        gpus = cast(list[int], d.pop("gpus"))

        tasks = d.pop("tasks")

        node_allocation = cls(
            node=node,
            cpus=cpus,
            memory_bytes=memory_bytes,
            gpus=gpus,
            tasks=tasks,
        )

        node_allocation.additional_properties = d
        return node_allocation

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
