from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.requeue_spec import RequeueSpec
    from ..models.resource_request import ResourceRequest
    from ..models.update_job_labels_type_0 import UpdateJobLabelsType0


T = TypeVar("T", bound="UpdateJob")


@_attrs_define
class UpdateJob:
    """A merge patch of the job's spec: a field that is absent stays, `null` takes it back to its default. While it runs a
    job changes only
    in its name, comment, labels, nice, requeue and time limit, which its user may only lower; and by `resources.nodes`
    or `nodelist` one
    with a script gives back all nodes but so many, or but those.

        Attributes:
            name (None | str | Unset):
            comment (None | str | Unset):
            labels (None | Unset | UpdateJobLabelsType0):
            wckey (None | str | Unset):
            nice (int | None | Unset):
            site_factor (int | None | Unset): Added to the priority as it is; set by administrators of the platform.
            time_limit_seconds (int | None | Unset):
            time_min_seconds (int | None | Unset):
            account (None | str | Unset):
            partition (None | str | Unset):
            qos (None | str | Unset):
            begin (datetime.datetime | None | Unset):
            deadline (datetime.datetime | None | Unset):
            array_throttle (int | None | Unset): Most tasks of an array at once, 0 for as many as there are.
            resources (None | ResourceRequest | Unset):
            constraint (None | str | Unset):
            prefer (None | str | Unset):
            nodelist (None | str | Unset):
            exclude (None | str | Unset):
            licenses (None | str | Unset):
            reservation (None | str | Unset):
            dependencies (list[str] | None | Unset): In place of those it has.
            dependency_any (bool | None | Unset):
            requeue (None | RequeueSpec | Unset):
    """

    name: None | str | Unset = UNSET
    comment: None | str | Unset = UNSET
    labels: None | Unset | UpdateJobLabelsType0 = UNSET
    wckey: None | str | Unset = UNSET
    nice: int | None | Unset = UNSET
    site_factor: int | None | Unset = UNSET
    time_limit_seconds: int | None | Unset = UNSET
    time_min_seconds: int | None | Unset = UNSET
    account: None | str | Unset = UNSET
    partition: None | str | Unset = UNSET
    qos: None | str | Unset = UNSET
    begin: datetime.datetime | None | Unset = UNSET
    deadline: datetime.datetime | None | Unset = UNSET
    array_throttle: int | None | Unset = UNSET
    resources: None | ResourceRequest | Unset = UNSET
    constraint: None | str | Unset = UNSET
    prefer: None | str | Unset = UNSET
    nodelist: None | str | Unset = UNSET
    exclude: None | str | Unset = UNSET
    licenses: None | str | Unset = UNSET
    reservation: None | str | Unset = UNSET
    dependencies: list[str] | None | Unset = UNSET
    dependency_any: bool | None | Unset = UNSET
    requeue: None | RequeueSpec | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.requeue_spec import RequeueSpec  # noqa: PLC0415
        from ..models.resource_request import ResourceRequest  # noqa: PLC0415
        from ..models.update_job_labels_type_0 import UpdateJobLabelsType0  # noqa: PLC0415

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        comment: None | str | Unset
        if isinstance(self.comment, Unset):
            comment = UNSET
        else:
            comment = self.comment

        labels: dict[str, Any] | None | Unset
        if isinstance(self.labels, Unset):
            labels = UNSET
        elif isinstance(self.labels, UpdateJobLabelsType0):
            labels = self.labels.to_dict()
        else:
            labels = self.labels

        wckey: None | str | Unset
        if isinstance(self.wckey, Unset):
            wckey = UNSET
        else:
            wckey = self.wckey

        nice: int | None | Unset
        if isinstance(self.nice, Unset):
            nice = UNSET
        else:
            nice = self.nice

        site_factor: int | None | Unset
        if isinstance(self.site_factor, Unset):
            site_factor = UNSET
        else:
            site_factor = self.site_factor

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

        account: None | str | Unset
        if isinstance(self.account, Unset):
            account = UNSET
        else:
            account = self.account

        partition: None | str | Unset
        if isinstance(self.partition, Unset):
            partition = UNSET
        else:
            partition = self.partition

        qos: None | str | Unset
        if isinstance(self.qos, Unset):
            qos = UNSET
        else:
            qos = self.qos

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

        array_throttle: int | None | Unset
        if isinstance(self.array_throttle, Unset):
            array_throttle = UNSET
        else:
            array_throttle = self.array_throttle

        resources: dict[str, Any] | None | Unset
        if isinstance(self.resources, Unset):
            resources = UNSET
        elif isinstance(self.resources, ResourceRequest):
            resources = self.resources.to_dict()
        else:
            resources = self.resources

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

        exclude: None | str | Unset
        if isinstance(self.exclude, Unset):
            exclude = UNSET
        else:
            exclude = self.exclude

        licenses: None | str | Unset
        if isinstance(self.licenses, Unset):
            licenses = UNSET
        else:
            licenses = self.licenses

        reservation: None | str | Unset
        if isinstance(self.reservation, Unset):
            reservation = UNSET
        else:
            reservation = self.reservation

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

        requeue: dict[str, Any] | None | Unset
        if isinstance(self.requeue, Unset):
            requeue = UNSET
        elif isinstance(self.requeue, RequeueSpec):
            requeue = self.requeue.to_dict()
        else:
            requeue = self.requeue

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if name is not UNSET:
            field_dict["name"] = name
        if comment is not UNSET:
            field_dict["comment"] = comment
        if labels is not UNSET:
            field_dict["labels"] = labels
        if wckey is not UNSET:
            field_dict["wckey"] = wckey
        if nice is not UNSET:
            field_dict["nice"] = nice
        if site_factor is not UNSET:
            field_dict["site_factor"] = site_factor
        if time_limit_seconds is not UNSET:
            field_dict["time_limit_seconds"] = time_limit_seconds
        if time_min_seconds is not UNSET:
            field_dict["time_min_seconds"] = time_min_seconds
        if account is not UNSET:
            field_dict["account"] = account
        if partition is not UNSET:
            field_dict["partition"] = partition
        if qos is not UNSET:
            field_dict["qos"] = qos
        if begin is not UNSET:
            field_dict["begin"] = begin
        if deadline is not UNSET:
            field_dict["deadline"] = deadline
        if array_throttle is not UNSET:
            field_dict["array_throttle"] = array_throttle
        if resources is not UNSET:
            field_dict["resources"] = resources
        if constraint is not UNSET:
            field_dict["constraint"] = constraint
        if prefer is not UNSET:
            field_dict["prefer"] = prefer
        if nodelist is not UNSET:
            field_dict["nodelist"] = nodelist
        if exclude is not UNSET:
            field_dict["exclude"] = exclude
        if licenses is not UNSET:
            field_dict["licenses"] = licenses
        if reservation is not UNSET:
            field_dict["reservation"] = reservation
        if dependencies is not UNSET:
            field_dict["dependencies"] = dependencies
        if dependency_any is not UNSET:
            field_dict["dependency_any"] = dependency_any
        if requeue is not UNSET:
            field_dict["requeue"] = requeue

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.requeue_spec import RequeueSpec  # noqa: PLC0415
        from ..models.resource_request import ResourceRequest  # noqa: PLC0415
        from ..models.update_job_labels_type_0 import UpdateJobLabelsType0  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_comment(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        comment = _parse_comment(d.pop("comment", UNSET))

        def _parse_labels(data: object) -> None | Unset | UpdateJobLabelsType0:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                labels_type_0 = UpdateJobLabelsType0.from_dict(data)

                return labels_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | UpdateJobLabelsType0, data)

        labels = _parse_labels(d.pop("labels", UNSET))

        def _parse_wckey(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        wckey = _parse_wckey(d.pop("wckey", UNSET))

        def _parse_nice(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        nice = _parse_nice(d.pop("nice", UNSET))

        def _parse_site_factor(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        site_factor = _parse_site_factor(d.pop("site_factor", UNSET))

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

        def _parse_account(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        account = _parse_account(d.pop("account", UNSET))

        def _parse_partition(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        partition = _parse_partition(d.pop("partition", UNSET))

        def _parse_qos(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        qos = _parse_qos(d.pop("qos", UNSET))

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

        def _parse_array_throttle(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        array_throttle = _parse_array_throttle(d.pop("array_throttle", UNSET))

        def _parse_resources(data: object) -> None | ResourceRequest | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                resources_type_0 = ResourceRequest.from_dict(data)

                return resources_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ResourceRequest | Unset, data)

        resources = _parse_resources(d.pop("resources", UNSET))

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

        def _parse_exclude(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        exclude = _parse_exclude(d.pop("exclude", UNSET))

        def _parse_licenses(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        licenses = _parse_licenses(d.pop("licenses", UNSET))

        def _parse_reservation(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reservation = _parse_reservation(d.pop("reservation", UNSET))

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

        def _parse_requeue(data: object) -> None | RequeueSpec | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                requeue_type_0 = RequeueSpec.from_dict(data)

                return requeue_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RequeueSpec | Unset, data)

        requeue = _parse_requeue(d.pop("requeue", UNSET))

        update_job = cls(
            name=name,
            comment=comment,
            labels=labels,
            wckey=wckey,
            nice=nice,
            site_factor=site_factor,
            time_limit_seconds=time_limit_seconds,
            time_min_seconds=time_min_seconds,
            account=account,
            partition=partition,
            qos=qos,
            begin=begin,
            deadline=deadline,
            array_throttle=array_throttle,
            resources=resources,
            constraint=constraint,
            prefer=prefer,
            nodelist=nodelist,
            exclude=exclude,
            licenses=licenses,
            reservation=reservation,
            dependencies=dependencies,
            dependency_any=dependency_any,
            requeue=requeue,
        )

        return update_job
