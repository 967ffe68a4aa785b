from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.node_state import NodeState
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.inventory import Inventory
    from ..models.node_allocated_shares import NodeAllocatedShares


T = TypeVar("T", bound="Node")


@_attrs_define
class Node:
    """
    Attributes:
        name (str):
        state (NodeState): Base state of a node. Allocated and mixed are derived from what runs there.
        status (str): State and flags in one word, as operators say it: `mixed`, `draining`, `drained`, `powered_down`,
            …
        flags (list[str]): On top of the state: `drain`, `fail`, …; `reserved` or `maintenance` while a reservation of
            it lasts; `planned` of an idle one on which a
            pending job is planned to start.
        features (list[str]):
        weight (int): Lower is filled first.
        inventory (Inventory): What a node has, as its worker found it.
        allocated_cpus (int):
        allocated_memory_bytes (int):
        allocated_gpus (list[int]): Indices of GPUs in use.
        jobs (list[int]): Jobs that hold something here; of other tenants only their number is told, in `other_jobs`.
        other_jobs (int):
        address (str):
        drivers (list[str]):
        worker_version (str):
        clock_skew_ms (int): The node's clock minus the service's, in milliseconds.
        registered_at (datetime.datetime):
        reservation (None | str | Unset): Reservations of it that last, as far as the caller may see them.
        reason (None | str | Unset): Why it is drained or down.
        allocated_shares (NodeAllocatedShares | Unset): Of GPUs that are shared: how many shares jobs hold, by `shard`
            and `mps`.
        last_seen (datetime.datetime | None | Unset):
    """

    name: str
    state: NodeState
    status: str
    flags: list[str]
    features: list[str]
    weight: int
    inventory: Inventory
    allocated_cpus: int
    allocated_memory_bytes: int
    allocated_gpus: list[int]
    jobs: list[int]
    other_jobs: int
    address: str
    drivers: list[str]
    worker_version: str
    clock_skew_ms: int
    registered_at: datetime.datetime
    reservation: None | str | Unset = UNSET
    reason: None | str | Unset = UNSET
    allocated_shares: NodeAllocatedShares | Unset = UNSET
    last_seen: datetime.datetime | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        state = self.state.value

        status = self.status

        flags = self.flags

        features = self.features

        weight = self.weight

        inventory = self.inventory.to_dict()

        allocated_cpus = self.allocated_cpus

        allocated_memory_bytes = self.allocated_memory_bytes

        allocated_gpus = self.allocated_gpus

        jobs = self.jobs

        other_jobs = self.other_jobs

        address = self.address

        drivers = self.drivers

        worker_version = self.worker_version

        clock_skew_ms = self.clock_skew_ms

        registered_at = self.registered_at.isoformat()

        reservation: None | str | Unset
        if isinstance(self.reservation, Unset):
            reservation = UNSET
        else:
            reservation = self.reservation

        reason: None | str | Unset
        if isinstance(self.reason, Unset):
            reason = UNSET
        else:
            reason = self.reason

        allocated_shares: dict[str, Any] | Unset = UNSET
        if not isinstance(self.allocated_shares, Unset):
            allocated_shares = self.allocated_shares.to_dict()

        last_seen: None | str | Unset
        if isinstance(self.last_seen, Unset):
            last_seen = UNSET
        elif isinstance(self.last_seen, datetime.datetime):
            last_seen = self.last_seen.isoformat()
        else:
            last_seen = self.last_seen

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "state": state,
                "status": status,
                "flags": flags,
                "features": features,
                "weight": weight,
                "inventory": inventory,
                "allocated_cpus": allocated_cpus,
                "allocated_memory_bytes": allocated_memory_bytes,
                "allocated_gpus": allocated_gpus,
                "jobs": jobs,
                "other_jobs": other_jobs,
                "address": address,
                "drivers": drivers,
                "worker_version": worker_version,
                "clock_skew_ms": clock_skew_ms,
                "registered_at": registered_at,
            }
        )
        if reservation is not UNSET:
            field_dict["reservation"] = reservation
        if reason is not UNSET:
            field_dict["reason"] = reason
        if allocated_shares is not UNSET:
            field_dict["allocated_shares"] = allocated_shares
        if last_seen is not UNSET:
            field_dict["last_seen"] = last_seen

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.inventory import Inventory  # noqa: PLC0415
        from ..models.node_allocated_shares import NodeAllocatedShares  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        state = NodeState(d.pop("state"))

        status = d.pop("status")

        flags = cast(list[str], d.pop("flags"))

        features = cast(list[str], d.pop("features"))

        weight = d.pop("weight")

        inventory = Inventory.from_dict(d.pop("inventory"))

        allocated_cpus = d.pop("allocated_cpus")

        allocated_memory_bytes = d.pop("allocated_memory_bytes")

        allocated_gpus = cast(list[int], d.pop("allocated_gpus"))

        jobs = cast(list[int], d.pop("jobs"))

        other_jobs = d.pop("other_jobs")

        address = d.pop("address")

        drivers = cast(list[str], d.pop("drivers"))

        worker_version = d.pop("worker_version")

        clock_skew_ms = d.pop("clock_skew_ms")

        registered_at = datetime.datetime.fromisoformat(d.pop("registered_at"))

        def _parse_reservation(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reservation = _parse_reservation(d.pop("reservation", UNSET))

        def _parse_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reason = _parse_reason(d.pop("reason", UNSET))

        _allocated_shares = d.pop("allocated_shares", UNSET)
        allocated_shares: NodeAllocatedShares | Unset
        if isinstance(_allocated_shares, Unset):
            allocated_shares = UNSET
        else:
            allocated_shares = NodeAllocatedShares.from_dict(_allocated_shares)

        def _parse_last_seen(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_seen_type_0 = datetime.datetime.fromisoformat(data)

                return last_seen_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        last_seen = _parse_last_seen(d.pop("last_seen", UNSET))

        node = cls(
            name=name,
            state=state,
            status=status,
            flags=flags,
            features=features,
            weight=weight,
            inventory=inventory,
            allocated_cpus=allocated_cpus,
            allocated_memory_bytes=allocated_memory_bytes,
            allocated_gpus=allocated_gpus,
            jobs=jobs,
            other_jobs=other_jobs,
            address=address,
            drivers=drivers,
            worker_version=worker_version,
            clock_skew_ms=clock_skew_ms,
            registered_at=registered_at,
            reservation=reservation,
            reason=reason,
            allocated_shares=allocated_shares,
            last_seen=last_seen,
        )

        node.additional_properties = d
        return node

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
