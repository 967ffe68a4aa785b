from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.gpu import Gpu
    from ..models.inventory_facts import InventoryFacts
    from ..models.inventory_gpu_shares import InventoryGpuShares
    from ..models.numa_node import NumaNode


T = TypeVar("T", bound="Inventory")


@_attrs_define
class Inventory:
    """What a node has, as its worker found it.

    Attributes:
        cpus (list[int] | Unset): Ids of the logical CPUs that jobs may use.
        numa (list[NumaNode] | Unset):
        sockets (int | Unset):  Default: 0.
        threads_per_core (int | Unset):  Default: 0.
        cores (list[list[int]] | Unset): The CPUs of each core. A job gets whole ones. Empty: a job may get any CPU by
            itself.
        memory_bytes (int | Unset): Bytes. Text such as "80GiB" is accepted on input too.
        gpus (list[Gpu] | Unset):
        gpu_shares (InventoryGpuShares | Unset): How its GPUs may be shared: by the way of sharing and the GPU's index,
            into how many shares.
        facts (InventoryFacts | Unset): Facts for people: kernel, cgroup layout, runtime, driver version.
    """

    cpus: list[int] | Unset = UNSET
    numa: list[NumaNode] | Unset = UNSET
    sockets: int | Unset = 0
    threads_per_core: int | Unset = 0
    cores: list[list[int]] | Unset = UNSET
    memory_bytes: int | Unset = UNSET
    gpus: list[Gpu] | Unset = UNSET
    gpu_shares: InventoryGpuShares | Unset = UNSET
    facts: InventoryFacts | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        cpus: list[int] | Unset = UNSET
        if not isinstance(self.cpus, Unset):
            cpus = self.cpus

        numa: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.numa, Unset):
            numa = []
            for numa_item_data in self.numa:
                numa_item = numa_item_data.to_dict()
                numa.append(numa_item)

        sockets = self.sockets

        threads_per_core = self.threads_per_core

        cores: list[list[int]] | Unset = UNSET
        if not isinstance(self.cores, Unset):
            cores = []
            for cores_item_data in self.cores:
                cores_item = cores_item_data

                cores.append(cores_item)

        memory_bytes = self.memory_bytes

        gpus: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.gpus, Unset):
            gpus = []
            for gpus_item_data in self.gpus:
                gpus_item = gpus_item_data.to_dict()
                gpus.append(gpus_item)

        gpu_shares: dict[str, Any] | Unset = UNSET
        if not isinstance(self.gpu_shares, Unset):
            gpu_shares = self.gpu_shares.to_dict()

        facts: dict[str, Any] | Unset = UNSET
        if not isinstance(self.facts, Unset):
            facts = self.facts.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if cpus is not UNSET:
            field_dict["cpus"] = cpus
        if numa is not UNSET:
            field_dict["numa"] = numa
        if sockets is not UNSET:
            field_dict["sockets"] = sockets
        if threads_per_core is not UNSET:
            field_dict["threads_per_core"] = threads_per_core
        if cores is not UNSET:
            field_dict["cores"] = cores
        if memory_bytes is not UNSET:
            field_dict["memory_bytes"] = memory_bytes
        if gpus is not UNSET:
            field_dict["gpus"] = gpus
        if gpu_shares is not UNSET:
            field_dict["gpu_shares"] = gpu_shares
        if facts is not UNSET:
            field_dict["facts"] = facts

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.gpu import Gpu  # noqa: PLC0415
        from ..models.inventory_facts import InventoryFacts  # noqa: PLC0415
        from ..models.inventory_gpu_shares import InventoryGpuShares  # noqa: PLC0415
        from ..models.numa_node import NumaNode  # noqa: PLC0415

        d = dict(src_dict)
        cpus = cast(list[int], d.pop("cpus", UNSET))

        _numa = d.pop("numa", UNSET)
        numa: list[NumaNode] | Unset = UNSET
        if _numa is not UNSET:
            numa = []
            for numa_item_data in _numa:
                numa_item = NumaNode.from_dict(numa_item_data)

                numa.append(numa_item)

        sockets = d.pop("sockets", UNSET)

        threads_per_core = d.pop("threads_per_core", UNSET)

        _cores = d.pop("cores", UNSET)
        cores: list[list[int]] | Unset = UNSET
        if _cores is not UNSET:
            cores = []
            for cores_item_data in _cores:
                cores_item = cast(list[int], cores_item_data)

                cores.append(cores_item)

        memory_bytes = d.pop("memory_bytes", UNSET)

        _gpus = d.pop("gpus", UNSET)
        gpus: list[Gpu] | Unset = UNSET
        if _gpus is not UNSET:
            gpus = []
            for gpus_item_data in _gpus:
                gpus_item = Gpu.from_dict(gpus_item_data)

                gpus.append(gpus_item)

        _gpu_shares = d.pop("gpu_shares", UNSET)
        gpu_shares: InventoryGpuShares | Unset
        if isinstance(_gpu_shares, Unset):
            gpu_shares = UNSET
        else:
            gpu_shares = InventoryGpuShares.from_dict(_gpu_shares)

        _facts = d.pop("facts", UNSET)
        facts: InventoryFacts | Unset
        if isinstance(_facts, Unset):
            facts = UNSET
        else:
            facts = InventoryFacts.from_dict(_facts)

        inventory = cls(
            cpus=cpus,
            numa=numa,
            sockets=sockets,
            threads_per_core=threads_per_core,
            cores=cores,
            memory_bytes=memory_bytes,
            gpus=gpus,
            gpu_shares=gpu_shares,
            facts=facts,
        )

        inventory.additional_properties = d
        return inventory

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
