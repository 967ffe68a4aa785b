from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.gpus import Gpus


T = TypeVar("T", bound="ResourceRequest")


@_attrs_define
class ResourceRequest:
    """What a job asks for. All of it is optional: one task of one CPU on one node is the default.

    `nodes` × `tasks_per_node` and `tasks` follow Slurm's `-N`, `--ntasks-per-node` and `-n`. At most one of the three
    memory
    fields may be given; without any the partition's default applies.

        Attributes:
            nodes (int | None | Unset): Nodes wanted; absent: as many as the tasks need.
            max_nodes (int | None | Unset): With it, `nodes` is the least and this the most; absent: exactly `nodes`.
            tasks (int | None | Unset):
            tasks_per_node (int | None | Unset):
            cpus_per_task (int | None | Unset):
            memory_per_node_bytes (int | None | Unset):
            memory_per_cpu_bytes (int | None | Unset):
            memory_per_gpu_bytes (int | None | Unset):
            gpus (Gpus | None | Unset):
            gpus_per_node (Gpus | None | Unset):
            gpus_per_task (Gpus | None | Unset):
            gpu_share (None | str | Unset):
            exclusive (bool | Unset): Whole nodes, shared with nobody. Default: False.
            exclusive_user (bool | Unset): Nodes shared with nobody but jobs of the same user that ask for this too. The job
                holds what it asks for. Default: False.
            sockets_per_node (int | None | Unset): Only nodes that have so many sockets at least.
            cores_per_socket (int | None | Unset): Only nodes that have so many cores at least in each socket.
            threads_per_core (int | None | Unset): Only nodes whose cores have so many threads at least, and of each core no
                more of them are used. The job has whole cores all the same.
            tasks_per_core (int | None | Unset): No more tasks on each core.
    """

    nodes: int | None | Unset = UNSET
    max_nodes: int | None | Unset = UNSET
    tasks: int | None | Unset = UNSET
    tasks_per_node: int | None | Unset = UNSET
    cpus_per_task: int | None | Unset = UNSET
    memory_per_node_bytes: int | None | Unset = UNSET
    memory_per_cpu_bytes: int | None | Unset = UNSET
    memory_per_gpu_bytes: int | None | Unset = UNSET
    gpus: Gpus | None | Unset = UNSET
    gpus_per_node: Gpus | None | Unset = UNSET
    gpus_per_task: Gpus | None | Unset = UNSET
    gpu_share: None | str | Unset = UNSET
    exclusive: bool | Unset = False
    exclusive_user: bool | Unset = False
    sockets_per_node: int | None | Unset = UNSET
    cores_per_socket: int | None | Unset = UNSET
    threads_per_core: int | None | Unset = UNSET
    tasks_per_core: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.gpus import Gpus  # noqa: PLC0415

        nodes: int | None | Unset
        if isinstance(self.nodes, Unset):
            nodes = UNSET
        else:
            nodes = self.nodes

        max_nodes: int | None | Unset
        if isinstance(self.max_nodes, Unset):
            max_nodes = UNSET
        else:
            max_nodes = self.max_nodes

        tasks: int | None | Unset
        if isinstance(self.tasks, Unset):
            tasks = UNSET
        else:
            tasks = self.tasks

        tasks_per_node: int | None | Unset
        if isinstance(self.tasks_per_node, Unset):
            tasks_per_node = UNSET
        else:
            tasks_per_node = self.tasks_per_node

        cpus_per_task: int | None | Unset
        if isinstance(self.cpus_per_task, Unset):
            cpus_per_task = UNSET
        else:
            cpus_per_task = self.cpus_per_task

        memory_per_node_bytes: int | None | Unset
        if isinstance(self.memory_per_node_bytes, Unset):
            memory_per_node_bytes = UNSET
        else:
            memory_per_node_bytes = self.memory_per_node_bytes

        memory_per_cpu_bytes: int | None | Unset
        if isinstance(self.memory_per_cpu_bytes, Unset):
            memory_per_cpu_bytes = UNSET
        else:
            memory_per_cpu_bytes = self.memory_per_cpu_bytes

        memory_per_gpu_bytes: int | None | Unset
        if isinstance(self.memory_per_gpu_bytes, Unset):
            memory_per_gpu_bytes = UNSET
        else:
            memory_per_gpu_bytes = self.memory_per_gpu_bytes

        gpus: dict[str, Any] | None | Unset
        if isinstance(self.gpus, Unset):
            gpus = UNSET
        elif isinstance(self.gpus, Gpus):
            gpus = self.gpus.to_dict()
        else:
            gpus = self.gpus

        gpus_per_node: dict[str, Any] | None | Unset
        if isinstance(self.gpus_per_node, Unset):
            gpus_per_node = UNSET
        elif isinstance(self.gpus_per_node, Gpus):
            gpus_per_node = self.gpus_per_node.to_dict()
        else:
            gpus_per_node = self.gpus_per_node

        gpus_per_task: dict[str, Any] | None | Unset
        if isinstance(self.gpus_per_task, Unset):
            gpus_per_task = UNSET
        elif isinstance(self.gpus_per_task, Gpus):
            gpus_per_task = self.gpus_per_task.to_dict()
        else:
            gpus_per_task = self.gpus_per_task

        gpu_share: None | str | Unset
        if isinstance(self.gpu_share, Unset):
            gpu_share = UNSET
        else:
            gpu_share = self.gpu_share

        exclusive = self.exclusive

        exclusive_user = self.exclusive_user

        sockets_per_node: int | None | Unset
        if isinstance(self.sockets_per_node, Unset):
            sockets_per_node = UNSET
        else:
            sockets_per_node = self.sockets_per_node

        cores_per_socket: int | None | Unset
        if isinstance(self.cores_per_socket, Unset):
            cores_per_socket = UNSET
        else:
            cores_per_socket = self.cores_per_socket

        threads_per_core: int | None | Unset
        if isinstance(self.threads_per_core, Unset):
            threads_per_core = UNSET
        else:
            threads_per_core = self.threads_per_core

        tasks_per_core: int | None | Unset
        if isinstance(self.tasks_per_core, Unset):
            tasks_per_core = UNSET
        else:
            tasks_per_core = self.tasks_per_core

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if nodes is not UNSET:
            field_dict["nodes"] = nodes
        if max_nodes is not UNSET:
            field_dict["max_nodes"] = max_nodes
        if tasks is not UNSET:
            field_dict["tasks"] = tasks
        if tasks_per_node is not UNSET:
            field_dict["tasks_per_node"] = tasks_per_node
        if cpus_per_task is not UNSET:
            field_dict["cpus_per_task"] = cpus_per_task
        if memory_per_node_bytes is not UNSET:
            field_dict["memory_per_node_bytes"] = memory_per_node_bytes
        if memory_per_cpu_bytes is not UNSET:
            field_dict["memory_per_cpu_bytes"] = memory_per_cpu_bytes
        if memory_per_gpu_bytes is not UNSET:
            field_dict["memory_per_gpu_bytes"] = memory_per_gpu_bytes
        if gpus is not UNSET:
            field_dict["gpus"] = gpus
        if gpus_per_node is not UNSET:
            field_dict["gpus_per_node"] = gpus_per_node
        if gpus_per_task is not UNSET:
            field_dict["gpus_per_task"] = gpus_per_task
        if gpu_share is not UNSET:
            field_dict["gpu_share"] = gpu_share
        if exclusive is not UNSET:
            field_dict["exclusive"] = exclusive
        if exclusive_user is not UNSET:
            field_dict["exclusive_user"] = exclusive_user
        if sockets_per_node is not UNSET:
            field_dict["sockets_per_node"] = sockets_per_node
        if cores_per_socket is not UNSET:
            field_dict["cores_per_socket"] = cores_per_socket
        if threads_per_core is not UNSET:
            field_dict["threads_per_core"] = threads_per_core
        if tasks_per_core is not UNSET:
            field_dict["tasks_per_core"] = tasks_per_core

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.gpus import Gpus  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_nodes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        nodes = _parse_nodes(d.pop("nodes", UNSET))

        def _parse_max_nodes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_nodes = _parse_max_nodes(d.pop("max_nodes", UNSET))

        def _parse_tasks(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        tasks = _parse_tasks(d.pop("tasks", UNSET))

        def _parse_tasks_per_node(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        tasks_per_node = _parse_tasks_per_node(d.pop("tasks_per_node", UNSET))

        def _parse_cpus_per_task(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        cpus_per_task = _parse_cpus_per_task(d.pop("cpus_per_task", UNSET))

        def _parse_memory_per_node_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        memory_per_node_bytes = _parse_memory_per_node_bytes(d.pop("memory_per_node_bytes", UNSET))

        def _parse_memory_per_cpu_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        memory_per_cpu_bytes = _parse_memory_per_cpu_bytes(d.pop("memory_per_cpu_bytes", UNSET))

        def _parse_memory_per_gpu_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        memory_per_gpu_bytes = _parse_memory_per_gpu_bytes(d.pop("memory_per_gpu_bytes", UNSET))

        def _parse_gpus(data: object) -> Gpus | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                gpus_type_0 = Gpus.from_dict(data)

                return gpus_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Gpus | None | Unset, data)

        gpus = _parse_gpus(d.pop("gpus", UNSET))

        def _parse_gpus_per_node(data: object) -> Gpus | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                gpus_per_node_type_0 = Gpus.from_dict(data)

                return gpus_per_node_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Gpus | None | Unset, data)

        gpus_per_node = _parse_gpus_per_node(d.pop("gpus_per_node", UNSET))

        def _parse_gpus_per_task(data: object) -> Gpus | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                gpus_per_task_type_0 = Gpus.from_dict(data)

                return gpus_per_task_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Gpus | None | Unset, data)

        gpus_per_task = _parse_gpus_per_task(d.pop("gpus_per_task", UNSET))

        def _parse_gpu_share(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        gpu_share = _parse_gpu_share(d.pop("gpu_share", UNSET))

        exclusive = d.pop("exclusive", UNSET)

        exclusive_user = d.pop("exclusive_user", UNSET)

        def _parse_sockets_per_node(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        sockets_per_node = _parse_sockets_per_node(d.pop("sockets_per_node", UNSET))

        def _parse_cores_per_socket(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        cores_per_socket = _parse_cores_per_socket(d.pop("cores_per_socket", UNSET))

        def _parse_threads_per_core(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        threads_per_core = _parse_threads_per_core(d.pop("threads_per_core", UNSET))

        def _parse_tasks_per_core(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        tasks_per_core = _parse_tasks_per_core(d.pop("tasks_per_core", UNSET))

        resource_request = cls(
            nodes=nodes,
            max_nodes=max_nodes,
            tasks=tasks,
            tasks_per_node=tasks_per_node,
            cpus_per_task=cpus_per_task,
            memory_per_node_bytes=memory_per_node_bytes,
            memory_per_cpu_bytes=memory_per_cpu_bytes,
            memory_per_gpu_bytes=memory_per_gpu_bytes,
            gpus=gpus,
            gpus_per_node=gpus_per_node,
            gpus_per_task=gpus_per_task,
            gpu_share=gpu_share,
            exclusive=exclusive,
            exclusive_user=exclusive_user,
            sockets_per_node=sockets_per_node,
            cores_per_socket=cores_per_socket,
            threads_per_core=threads_per_core,
            tasks_per_core=tasks_per_core,
        )

        return resource_request
