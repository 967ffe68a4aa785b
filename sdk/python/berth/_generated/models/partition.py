from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.partition_state import PartitionState
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.partition_billing_weights import PartitionBillingWeights


T = TypeVar("T", bound="Partition")


@_attrs_define
class Partition:
    """A set of nodes with limits and a priority of its own.

    Attributes:
        name (str):
        nodes (str | Unset): Host-list of its nodes (`n[1-40]`), or `ALL`.
        node_features (list[str] | Unset): Nodes with all these features belong to it too.
        state (PartitionState | Unset): State of a partition, as Slurm's: `down` queues but starts nothing, `drain`
            refuses new jobs but starts queued ones.
        is_default (bool | Unset): Jobs that name no partition go here.
        max_time_seconds (int | None | Unset):
        default_time_seconds (int | None | Unset):
        min_nodes (int | None | Unset):
        max_nodes (int | None | Unset):
        max_cpus_per_node (int | None | Unset):
        max_memory_per_node_bytes (int | None | Unset):
        default_memory_per_cpu_bytes (int | None | Unset):
        priority_tier (int | Unset): Partitions of a higher tier are planned first.
        priority_job_factor (int | Unset): The partition's part in a job's priority, 0 to 65535.
        allow_tenants (list[str] | Unset): Tenants that may use it; empty: all.
        allow_accounts (list[str] | Unset): Accounts that may use it; empty: all.
        allow_qos (list[str] | Unset): QOS that may be used in it; empty: all.
        qos (None | str | Unset):
        billing_weights (PartitionBillingWeights | Unset): What a job is billed for each unit it holds (`{"cpu": 1,
            "mem": "0.25G", "gres/gpu": 16}`); empty: its CPUs.
    """

    name: str
    nodes: str | Unset = UNSET
    node_features: list[str] | Unset = UNSET
    state: PartitionState | Unset = UNSET
    is_default: bool | Unset = UNSET
    max_time_seconds: int | None | Unset = UNSET
    default_time_seconds: int | None | Unset = UNSET
    min_nodes: int | None | Unset = UNSET
    max_nodes: int | None | Unset = UNSET
    max_cpus_per_node: int | None | Unset = UNSET
    max_memory_per_node_bytes: int | None | Unset = UNSET
    default_memory_per_cpu_bytes: int | None | Unset = UNSET
    priority_tier: int | Unset = UNSET
    priority_job_factor: int | Unset = UNSET
    allow_tenants: list[str] | Unset = UNSET
    allow_accounts: list[str] | Unset = UNSET
    allow_qos: list[str] | Unset = UNSET
    qos: None | str | Unset = UNSET
    billing_weights: PartitionBillingWeights | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        nodes = self.nodes

        node_features: list[str] | Unset = UNSET
        if not isinstance(self.node_features, Unset):
            node_features = self.node_features

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state.value

        is_default = self.is_default

        max_time_seconds: int | None | Unset
        if isinstance(self.max_time_seconds, Unset):
            max_time_seconds = UNSET
        else:
            max_time_seconds = self.max_time_seconds

        default_time_seconds: int | None | Unset
        if isinstance(self.default_time_seconds, Unset):
            default_time_seconds = UNSET
        else:
            default_time_seconds = self.default_time_seconds

        min_nodes: int | None | Unset
        if isinstance(self.min_nodes, Unset):
            min_nodes = UNSET
        else:
            min_nodes = self.min_nodes

        max_nodes: int | None | Unset
        if isinstance(self.max_nodes, Unset):
            max_nodes = UNSET
        else:
            max_nodes = self.max_nodes

        max_cpus_per_node: int | None | Unset
        if isinstance(self.max_cpus_per_node, Unset):
            max_cpus_per_node = UNSET
        else:
            max_cpus_per_node = self.max_cpus_per_node

        max_memory_per_node_bytes: int | None | Unset
        if isinstance(self.max_memory_per_node_bytes, Unset):
            max_memory_per_node_bytes = UNSET
        else:
            max_memory_per_node_bytes = self.max_memory_per_node_bytes

        default_memory_per_cpu_bytes: int | None | Unset
        if isinstance(self.default_memory_per_cpu_bytes, Unset):
            default_memory_per_cpu_bytes = UNSET
        else:
            default_memory_per_cpu_bytes = self.default_memory_per_cpu_bytes

        priority_tier = self.priority_tier

        priority_job_factor = self.priority_job_factor

        allow_tenants: list[str] | Unset = UNSET
        if not isinstance(self.allow_tenants, Unset):
            allow_tenants = self.allow_tenants

        allow_accounts: list[str] | Unset = UNSET
        if not isinstance(self.allow_accounts, Unset):
            allow_accounts = self.allow_accounts

        allow_qos: list[str] | Unset = UNSET
        if not isinstance(self.allow_qos, Unset):
            allow_qos = self.allow_qos

        qos: None | str | Unset
        if isinstance(self.qos, Unset):
            qos = UNSET
        else:
            qos = self.qos

        billing_weights: dict[str, Any] | Unset = UNSET
        if not isinstance(self.billing_weights, Unset):
            billing_weights = self.billing_weights.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if nodes is not UNSET:
            field_dict["nodes"] = nodes
        if node_features is not UNSET:
            field_dict["node_features"] = node_features
        if state is not UNSET:
            field_dict["state"] = state
        if is_default is not UNSET:
            field_dict["is_default"] = is_default
        if max_time_seconds is not UNSET:
            field_dict["max_time_seconds"] = max_time_seconds
        if default_time_seconds is not UNSET:
            field_dict["default_time_seconds"] = default_time_seconds
        if min_nodes is not UNSET:
            field_dict["min_nodes"] = min_nodes
        if max_nodes is not UNSET:
            field_dict["max_nodes"] = max_nodes
        if max_cpus_per_node is not UNSET:
            field_dict["max_cpus_per_node"] = max_cpus_per_node
        if max_memory_per_node_bytes is not UNSET:
            field_dict["max_memory_per_node_bytes"] = max_memory_per_node_bytes
        if default_memory_per_cpu_bytes is not UNSET:
            field_dict["default_memory_per_cpu_bytes"] = default_memory_per_cpu_bytes
        if priority_tier is not UNSET:
            field_dict["priority_tier"] = priority_tier
        if priority_job_factor is not UNSET:
            field_dict["priority_job_factor"] = priority_job_factor
        if allow_tenants is not UNSET:
            field_dict["allow_tenants"] = allow_tenants
        if allow_accounts is not UNSET:
            field_dict["allow_accounts"] = allow_accounts
        if allow_qos is not UNSET:
            field_dict["allow_qos"] = allow_qos
        if qos is not UNSET:
            field_dict["qos"] = qos
        if billing_weights is not UNSET:
            field_dict["billing_weights"] = billing_weights

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.partition_billing_weights import PartitionBillingWeights  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        nodes = d.pop("nodes", UNSET)

        node_features = cast(list[str], d.pop("node_features", UNSET))

        _state = d.pop("state", UNSET)
        state: PartitionState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = PartitionState(_state)

        is_default = d.pop("is_default", UNSET)

        def _parse_max_time_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_time_seconds = _parse_max_time_seconds(d.pop("max_time_seconds", UNSET))

        def _parse_default_time_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        default_time_seconds = _parse_default_time_seconds(d.pop("default_time_seconds", UNSET))

        def _parse_min_nodes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        min_nodes = _parse_min_nodes(d.pop("min_nodes", UNSET))

        def _parse_max_nodes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_nodes = _parse_max_nodes(d.pop("max_nodes", UNSET))

        def _parse_max_cpus_per_node(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_cpus_per_node = _parse_max_cpus_per_node(d.pop("max_cpus_per_node", UNSET))

        def _parse_max_memory_per_node_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_memory_per_node_bytes = _parse_max_memory_per_node_bytes(d.pop("max_memory_per_node_bytes", UNSET))

        def _parse_default_memory_per_cpu_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        default_memory_per_cpu_bytes = _parse_default_memory_per_cpu_bytes(d.pop("default_memory_per_cpu_bytes", UNSET))

        priority_tier = d.pop("priority_tier", UNSET)

        priority_job_factor = d.pop("priority_job_factor", UNSET)

        allow_tenants = cast(list[str], d.pop("allow_tenants", UNSET))

        allow_accounts = cast(list[str], d.pop("allow_accounts", UNSET))

        allow_qos = cast(list[str], d.pop("allow_qos", UNSET))

        def _parse_qos(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        qos = _parse_qos(d.pop("qos", UNSET))

        _billing_weights = d.pop("billing_weights", UNSET)
        billing_weights: PartitionBillingWeights | Unset
        if isinstance(_billing_weights, Unset):
            billing_weights = UNSET
        else:
            billing_weights = PartitionBillingWeights.from_dict(_billing_weights)

        partition = cls(
            name=name,
            nodes=nodes,
            node_features=node_features,
            state=state,
            is_default=is_default,
            max_time_seconds=max_time_seconds,
            default_time_seconds=default_time_seconds,
            min_nodes=min_nodes,
            max_nodes=max_nodes,
            max_cpus_per_node=max_cpus_per_node,
            max_memory_per_node_bytes=max_memory_per_node_bytes,
            default_memory_per_cpu_bytes=default_memory_per_cpu_bytes,
            priority_tier=priority_tier,
            priority_job_factor=priority_job_factor,
            allow_tenants=allow_tenants,
            allow_accounts=allow_accounts,
            allow_qos=allow_qos,
            qos=qos,
            billing_weights=billing_weights,
        )

        return partition
