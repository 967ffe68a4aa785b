from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.gpus import Gpus


T = TypeVar("T", bound="DeclareNode")


@_attrs_define
class DeclareNode:
    """A node that does not exist yet. It is powered down, and powered up when a job needs it; what its worker then finds
    holds.

        Attributes:
            name (str):
            cpus (int):
            memory_bytes (int): Bytes. Text such as "80GiB" is accepted on input too.
            threads_per_core (int | Unset): Threads of each core: jobs get whole cores.
            gpus (list[Gpus] | Unset): By type; each with its type.
            gres (list[str] | Unset): How its GPUs may be shared: `shard:64` or `mps:800` over all of them, `mps:1300+1200`
                each by itself.
            features (list[str] | Unset):
            weight (int | Unset): Lower is filled first; 1 if absent.
    """

    name: str
    cpus: int
    memory_bytes: int
    threads_per_core: int | Unset = UNSET
    gpus: list[Gpus] | Unset = UNSET
    gres: list[str] | Unset = UNSET
    features: list[str] | Unset = UNSET
    weight: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        cpus = self.cpus

        memory_bytes = self.memory_bytes

        threads_per_core = self.threads_per_core

        gpus: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.gpus, Unset):
            gpus = []
            for gpus_item_data in self.gpus:
                gpus_item = gpus_item_data.to_dict()
                gpus.append(gpus_item)

        gres: list[str] | Unset = UNSET
        if not isinstance(self.gres, Unset):
            gres = self.gres

        features: list[str] | Unset = UNSET
        if not isinstance(self.features, Unset):
            features = self.features

        weight = self.weight

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "cpus": cpus,
                "memory_bytes": memory_bytes,
            }
        )
        if threads_per_core is not UNSET:
            field_dict["threads_per_core"] = threads_per_core
        if gpus is not UNSET:
            field_dict["gpus"] = gpus
        if gres is not UNSET:
            field_dict["gres"] = gres
        if features is not UNSET:
            field_dict["features"] = features
        if weight is not UNSET:
            field_dict["weight"] = weight

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.gpus import Gpus  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        cpus = d.pop("cpus")

        memory_bytes = d.pop("memory_bytes")

        threads_per_core = d.pop("threads_per_core", UNSET)

        _gpus = d.pop("gpus", UNSET)
        gpus: list[Gpus] | Unset = UNSET
        if _gpus is not UNSET:
            gpus = []
            for gpus_item_data in _gpus:
                gpus_item = Gpus.from_dict(gpus_item_data)

                gpus.append(gpus_item)

        gres = cast(list[str], d.pop("gres", UNSET))

        features = cast(list[str], d.pop("features", UNSET))

        weight = d.pop("weight", UNSET)

        declare_node = cls(
            name=name,
            cpus=cpus,
            memory_bytes=memory_bytes,
            threads_per_core=threads_per_core,
            gpus=gpus,
            gres=gres,
            features=features,
            weight=weight,
        )

        return declare_node
