from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.resource_request import ResourceRequest


T = TypeVar("T", bound="ComponentSpec")


@_attrs_define
class ComponentSpec:
    """A component behind the leader. What is absent it has from the leader, except for what it asks of nodes (`resources`,
    `partition`,
    `constraint`, `prefer`, `nodelist`, `licenses`).

        Attributes:
            resources (ResourceRequest | Unset): What a job asks for. All of it is optional: one task of one CPU on one node
                is the default.

                `nodes` × `tasks_per_node` and `tasks` follow Slurm's `-N`, `--ntasks-per-node` and `-n`. At most one of the
                three memory
                fields may be given; without any the partition's default applies.
            partition (None | str | Unset):
            constraint (None | str | Unset):
            prefer (None | str | Unset):
            nodelist (None | str | Unset):
            licenses (None | str | Unset):
            account (None | str | Unset):
            qos (None | str | Unset):
            time_limit_seconds (int | None | Unset):
            time_min_seconds (int | None | Unset):
            begin (datetime.datetime | None | Unset):
            deadline (datetime.datetime | None | Unset):
            exclude (None | str | Unset):
            dependencies (list[str] | None | Unset):
            dependency_any (bool | None | Unset):
            hold (bool | None | Unset):
            nice (int | None | Unset):
            comment (None | str | Unset):
            reservation (None | str | Unset):
    """

    resources: ResourceRequest | Unset = UNSET
    partition: None | str | Unset = UNSET
    constraint: None | str | Unset = UNSET
    prefer: None | str | Unset = UNSET
    nodelist: None | str | Unset = UNSET
    licenses: None | str | Unset = UNSET
    account: None | str | Unset = UNSET
    qos: None | str | Unset = UNSET
    time_limit_seconds: int | None | Unset = UNSET
    time_min_seconds: int | None | Unset = UNSET
    begin: datetime.datetime | None | Unset = UNSET
    deadline: datetime.datetime | None | Unset = UNSET
    exclude: None | str | Unset = UNSET
    dependencies: list[str] | None | Unset = UNSET
    dependency_any: bool | None | Unset = UNSET
    hold: bool | None | Unset = UNSET
    nice: int | None | Unset = UNSET
    comment: None | str | Unset = UNSET
    reservation: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        resources: dict[str, Any] | Unset = UNSET
        if not isinstance(self.resources, Unset):
            resources = self.resources.to_dict()

        partition: None | str | Unset
        if isinstance(self.partition, Unset):
            partition = UNSET
        else:
            partition = self.partition

        constraint: None | str | Unset
        if isinstance(self.constraint, Unset):
            constraint = UNSET
        else:
            constraint = self.constraint

        prefer: None | str | Unset
        if isinstance(self.prefer, Unset):
            prefer = UNSET
        else:
            prefer = self.prefer

        nodelist: None | str | Unset
        if isinstance(self.nodelist, Unset):
            nodelist = UNSET
        else:
            nodelist = self.nodelist

        licenses: None | str | Unset
        if isinstance(self.licenses, Unset):
            licenses = UNSET
        else:
            licenses = self.licenses

        account: None | str | Unset
        if isinstance(self.account, Unset):
            account = UNSET
        else:
            account = self.account

        qos: None | str | Unset
        if isinstance(self.qos, Unset):
            qos = UNSET
        else:
            qos = self.qos

        time_limit_seconds: int | None | Unset
        if isinstance(self.time_limit_seconds, Unset):
            time_limit_seconds = UNSET
        else:
            time_limit_seconds = self.time_limit_seconds

        time_min_seconds: int | None | Unset
        if isinstance(self.time_min_seconds, Unset):
            time_min_seconds = UNSET
        else:
            time_min_seconds = self.time_min_seconds

        begin: None | str | Unset
        if isinstance(self.begin, Unset):
            begin = UNSET
        elif isinstance(self.begin, datetime.datetime):
            begin = self.begin.isoformat()
        else:
            begin = self.begin

        deadline: None | str | Unset
        if isinstance(self.deadline, Unset):
            deadline = UNSET
        elif isinstance(self.deadline, datetime.datetime):
            deadline = self.deadline.isoformat()
        else:
            deadline = self.deadline

        exclude: None | str | Unset
        if isinstance(self.exclude, Unset):
            exclude = UNSET
        else:
            exclude = self.exclude

        dependencies: list[str] | None | Unset
        if isinstance(self.dependencies, Unset):
            dependencies = UNSET
        elif isinstance(self.dependencies, list):
            dependencies = self.dependencies

        else:
            dependencies = self.dependencies

        dependency_any: bool | None | Unset
        if isinstance(self.dependency_any, Unset):
            dependency_any = UNSET
        else:
            dependency_any = self.dependency_any

        hold: bool | None | Unset
        if isinstance(self.hold, Unset):
            hold = UNSET
        else:
            hold = self.hold

        nice: int | None | Unset
        if isinstance(self.nice, Unset):
            nice = UNSET
        else:
            nice = self.nice

        comment: None | str | Unset
        if isinstance(self.comment, Unset):
            comment = UNSET
        else:
            comment = self.comment

        reservation: None | str | Unset
        if isinstance(self.reservation, Unset):
            reservation = UNSET
        else:
            reservation = self.reservation

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if resources is not UNSET:
            field_dict["resources"] = resources
        if partition is not UNSET:
            field_dict["partition"] = partition
        if constraint is not UNSET:
            field_dict["constraint"] = constraint
        if prefer is not UNSET:
            field_dict["prefer"] = prefer
        if nodelist is not UNSET:
            field_dict["nodelist"] = nodelist
        if licenses is not UNSET:
            field_dict["licenses"] = licenses
        if account is not UNSET:
            field_dict["account"] = account
        if qos is not UNSET:
            field_dict["qos"] = qos
        if time_limit_seconds is not UNSET:
            field_dict["time_limit_seconds"] = time_limit_seconds
        if time_min_seconds is not UNSET:
            field_dict["time_min_seconds"] = time_min_seconds
        if begin is not UNSET:
            field_dict["begin"] = begin
        if deadline is not UNSET:
            field_dict["deadline"] = deadline
        if exclude is not UNSET:
            field_dict["exclude"] = exclude
        if dependencies is not UNSET:
            field_dict["dependencies"] = dependencies
        if dependency_any is not UNSET:
            field_dict["dependency_any"] = dependency_any
        if hold is not UNSET:
            field_dict["hold"] = hold
        if nice is not UNSET:
            field_dict["nice"] = nice
        if comment is not UNSET:
            field_dict["comment"] = comment
        if reservation is not UNSET:
            field_dict["reservation"] = reservation

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.resource_request import ResourceRequest  # noqa: PLC0415

        d = dict(src_dict)
        _resources = d.pop("resources", UNSET)
        resources: ResourceRequest | Unset
        if isinstance(_resources, Unset):
            resources = UNSET
        else:
            resources = ResourceRequest.from_dict(_resources)

        def _parse_partition(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        partition = _parse_partition(d.pop("partition", UNSET))

        def _parse_constraint(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        constraint = _parse_constraint(d.pop("constraint", UNSET))

        def _parse_prefer(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        prefer = _parse_prefer(d.pop("prefer", UNSET))

        def _parse_nodelist(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        nodelist = _parse_nodelist(d.pop("nodelist", UNSET))

        def _parse_licenses(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        licenses = _parse_licenses(d.pop("licenses", UNSET))

        def _parse_account(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        account = _parse_account(d.pop("account", UNSET))

        def _parse_qos(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        qos = _parse_qos(d.pop("qos", UNSET))

        def _parse_time_limit_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        time_limit_seconds = _parse_time_limit_seconds(d.pop("time_limit_seconds", UNSET))

        def _parse_time_min_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        time_min_seconds = _parse_time_min_seconds(d.pop("time_min_seconds", UNSET))

        def _parse_begin(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                begin_type_0 = datetime.datetime.fromisoformat(data)

                return begin_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        begin = _parse_begin(d.pop("begin", UNSET))

        def _parse_deadline(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                deadline_type_0 = datetime.datetime.fromisoformat(data)

                return deadline_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        deadline = _parse_deadline(d.pop("deadline", UNSET))

        def _parse_exclude(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        exclude = _parse_exclude(d.pop("exclude", UNSET))

        def _parse_dependencies(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                dependencies_type_0 = cast(list[str], data)

                return dependencies_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        dependencies = _parse_dependencies(d.pop("dependencies", UNSET))

        def _parse_dependency_any(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        dependency_any = _parse_dependency_any(d.pop("dependency_any", UNSET))

        def _parse_hold(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        hold = _parse_hold(d.pop("hold", UNSET))

        def _parse_nice(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        nice = _parse_nice(d.pop("nice", UNSET))

        def _parse_comment(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        comment = _parse_comment(d.pop("comment", UNSET))

        def _parse_reservation(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reservation = _parse_reservation(d.pop("reservation", UNSET))

        component_spec = cls(
            resources=resources,
            partition=partition,
            constraint=constraint,
            prefer=prefer,
            nodelist=nodelist,
            licenses=licenses,
            account=account,
            qos=qos,
            time_limit_seconds=time_limit_seconds,
            time_min_seconds=time_min_seconds,
            begin=begin,
            deadline=deadline,
            exclude=exclude,
            dependencies=dependencies,
            dependency_any=dependency_any,
            hold=hold,
            nice=nice,
            comment=comment,
            reservation=reservation,
        )

        return component_spec
