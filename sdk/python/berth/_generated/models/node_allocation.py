from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="NodeAllocation")


@_attrs_define
class NodeAllocation:
    """What one node gives to one attempt. Exact: CPU ids and GPU indices, not counts.

    Attributes:
        node (str):
        cpus (list[int]): Logical CPU ids, core by core where a job has whole cores.
        memory_bytes (int): Bytes. Text such as "80GiB" is accepted on input too.
        gpus (list[int]): GPU indices on the node.
        tasks (int): Tasks of the job's own command (or of `srun` without a count) that run here.
        idle_cpus (list[int] | Unset): CPUs of its cores that it leaves idle. It holds them and is charged for them.
        share (None | str | Unset):
    """

    node: str
    cpus: list[int]
    memory_bytes: int
    gpus: list[int]
    tasks: int
    idle_cpus: list[int] | Unset = UNSET
    share: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        node = self.node

        cpus = self.cpus

        memory_bytes = self.memory_bytes

        gpus = self.gpus

        tasks = self.tasks

        idle_cpus: list[int] | Unset = UNSET
        if not isinstance(self.idle_cpus, Unset):
            idle_cpus = self.idle_cpus

        share: None | str | Unset
        if isinstance(self.share, Unset):
            share = UNSET
        else:
            share = self.share

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
        if idle_cpus is not UNSET:
            field_dict["idle_cpus"] = idle_cpus
        if share is not UNSET:
            field_dict["share"] = share

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        node = d.pop("node")

        cpus = cast(list[int], d.pop("cpus"))

        memory_bytes = d.pop("memory_bytes")

        gpus = cast(list[int], d.pop("gpus"))

        tasks = d.pop("tasks")

        idle_cpus = cast(list[int], d.pop("idle_cpus", UNSET))

        def _parse_share(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        share = _parse_share(d.pop("share", UNSET))

        node_allocation = cls(
            node=node,
            cpus=cpus,
            memory_bytes=memory_bytes,
            gpus=gpus,
            tasks=tasks,
            idle_cpus=idle_cpus,
            share=share,
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
