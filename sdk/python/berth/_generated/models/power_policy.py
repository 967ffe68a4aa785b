from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PowerPolicy")


@_attrs_define
class PowerPolicy:
    """Which idle nodes are powered down, and when (Slurm's power saving).

    Attributes:
        idle_seconds (int | Unset):
        exclude_nodes (None | str | Unset): Nodes that are never powered down, in host-list form.
        exclude_partitions (list[str] | Unset): Nodes of these partitions are never powered down.
        keep_idle (int | Unset): So many idle nodes stay up. Default: 0.
        suspend_per_minute (int | Unset): Nodes powered down in a minute, at most. Default: 60.
        resume_per_minute (int | Unset): Nodes powered up in a minute, at most. Default: 300.
    """

    idle_seconds: int | Unset = UNSET
    exclude_nodes: None | str | Unset = UNSET
    exclude_partitions: list[str] | Unset = UNSET
    keep_idle: int | Unset = 0
    suspend_per_minute: int | Unset = 60
    resume_per_minute: int | Unset = 300

    def to_dict(self) -> dict[str, Any]:
        idle_seconds = self.idle_seconds

        exclude_nodes: None | str | Unset
        if isinstance(self.exclude_nodes, Unset):
            exclude_nodes = UNSET
        else:
            exclude_nodes = self.exclude_nodes

        exclude_partitions: list[str] | Unset = UNSET
        if not isinstance(self.exclude_partitions, Unset):
            exclude_partitions = self.exclude_partitions

        keep_idle = self.keep_idle

        suspend_per_minute = self.suspend_per_minute

        resume_per_minute = self.resume_per_minute

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if idle_seconds is not UNSET:
            field_dict["idle_seconds"] = idle_seconds
        if exclude_nodes is not UNSET:
            field_dict["exclude_nodes"] = exclude_nodes
        if exclude_partitions is not UNSET:
            field_dict["exclude_partitions"] = exclude_partitions
        if keep_idle is not UNSET:
            field_dict["keep_idle"] = keep_idle
        if suspend_per_minute is not UNSET:
            field_dict["suspend_per_minute"] = suspend_per_minute
        if resume_per_minute is not UNSET:
            field_dict["resume_per_minute"] = resume_per_minute

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        idle_seconds = d.pop("idle_seconds", UNSET)

        def _parse_exclude_nodes(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        exclude_nodes = _parse_exclude_nodes(d.pop("exclude_nodes", UNSET))

        exclude_partitions = cast(list[str], d.pop("exclude_partitions", UNSET))

        keep_idle = d.pop("keep_idle", UNSET)

        suspend_per_minute = d.pop("suspend_per_minute", UNSET)

        resume_per_minute = d.pop("resume_per_minute", UNSET)

        power_policy = cls(
            idle_seconds=idle_seconds,
            exclude_nodes=exclude_nodes,
            exclude_partitions=exclude_partitions,
            keep_idle=keep_idle,
            suspend_per_minute=suspend_per_minute,
            resume_per_minute=resume_per_minute,
        )

        return power_policy
