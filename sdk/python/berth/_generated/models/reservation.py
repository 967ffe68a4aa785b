from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.reservation_flag import ReservationFlag
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reservation_spec_tres import ReservationSpecTres
    from ..models.reserved_part import ReservedPart
    from ..models.window import Window


T = TypeVar("T", bound="Reservation")


@_attrs_define
class Reservation:
    """A reservation with what has been chosen for it.

    Attributes:
        name (str):
        is_active (bool): It lasts.
        window (Window): A time, half-open.
        node_list (str): Its nodes, folded.
        reserved_nodes (int):
        parts (list[ReservedPart]): What of which nodes.
        running_jobs (int): Jobs that run in it.
        created_by (str):
        created_at (datetime.datetime):
        start (datetime.datetime | None | Unset): When it begins; of one that repeats, when it began or begins next.
            Absent: now, or with `float_seconds` always so far ahead.
        end (datetime.datetime | None | Unset): When it ends; either this or `duration_seconds`.
        duration_seconds (int | None | Unset):
        nodes (None | str | Unset): Host-list of nodes (`n[1-4]`), or `ALL`.
        node_count (int | None | Unset): So many nodes, idle ones first.
        features (None | str | Unset): What nodes must have: `h100&nvlink`; with counts, so many of each:
            `h100*2,fat*1`.
        partition (None | str | Unset):
        tres (ReservationSpecTres | Unset): Resources in place of whole nodes: `{"cpu": 64}`, `{"gres/gpu:h100": 8}`.
            They come from as few nodes as possible, and the rest of
            these nodes is free for others. What is not named follows in proportion.
        users (list[str] | Unset): Users as `tenant/user`, or with a minus before it all but these. Of several lists all
            must match.
        accounts (list[str] | Unset): Accounts as `tenant/account`, or with a minus before it all but these.
        tenants (list[str] | Unset): Tenants, or with a minus before it all but these.
        comment (None | str | Unset):
        flags (list[ReservationFlag] | Unset):
        purge_after_seconds (int | None | Unset):
        float_seconds (int | None | Unset):
        time_zone (None | str | Unset): IANA name of the zone in which it repeats (`Europe/Berlin`); UTC if absent.
    """

    name: str
    is_active: bool
    window: Window
    node_list: str
    reserved_nodes: int
    parts: list[ReservedPart]
    running_jobs: int
    created_by: str
    created_at: datetime.datetime
    start: datetime.datetime | None | Unset = UNSET
    end: datetime.datetime | None | Unset = UNSET
    duration_seconds: int | None | Unset = UNSET
    nodes: None | str | Unset = UNSET
    node_count: int | None | Unset = UNSET
    features: None | str | Unset = UNSET
    partition: None | str | Unset = UNSET
    tres: ReservationSpecTres | Unset = UNSET
    users: list[str] | Unset = UNSET
    accounts: list[str] | Unset = UNSET
    tenants: list[str] | Unset = UNSET
    comment: None | str | Unset = UNSET
    flags: list[ReservationFlag] | Unset = UNSET
    purge_after_seconds: int | None | Unset = UNSET
    float_seconds: int | None | Unset = UNSET
    time_zone: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        is_active = self.is_active

        window = self.window.to_dict()

        node_list = self.node_list

        reserved_nodes = self.reserved_nodes

        parts = []
        for parts_item_data in self.parts:
            parts_item = parts_item_data.to_dict()
            parts.append(parts_item)

        running_jobs = self.running_jobs

        created_by = self.created_by

        created_at = self.created_at.isoformat()

        start: None | str | Unset
        if isinstance(self.start, Unset):
            start = UNSET
        elif isinstance(self.start, datetime.datetime):
            start = self.start.isoformat()
        else:
            start = self.start

        end: None | str | Unset
        if isinstance(self.end, Unset):
            end = UNSET
        elif isinstance(self.end, datetime.datetime):
            end = self.end.isoformat()
        else:
            end = self.end

        duration_seconds: int | None | Unset
        if isinstance(self.duration_seconds, Unset):
            duration_seconds = UNSET
        else:
            duration_seconds = self.duration_seconds

        nodes: None | str | Unset
        if isinstance(self.nodes, Unset):
            nodes = UNSET
        else:
            nodes = self.nodes

        node_count: int | None | Unset
        if isinstance(self.node_count, Unset):
            node_count = UNSET
        else:
            node_count = self.node_count

        features: None | str | Unset
        if isinstance(self.features, Unset):
            features = UNSET
        else:
            features = self.features

        partition: None | str | Unset
        if isinstance(self.partition, Unset):
            partition = UNSET
        else:
            partition = self.partition

        tres: dict[str, Any] | Unset = UNSET
        if not isinstance(self.tres, Unset):
            tres = self.tres.to_dict()

        users: list[str] | Unset = UNSET
        if not isinstance(self.users, Unset):
            users = self.users

        accounts: list[str] | Unset = UNSET
        if not isinstance(self.accounts, Unset):
            accounts = self.accounts

        tenants: list[str] | Unset = UNSET
        if not isinstance(self.tenants, Unset):
            tenants = self.tenants

        comment: None | str | Unset
        if isinstance(self.comment, Unset):
            comment = UNSET
        else:
            comment = self.comment

        flags: list[str] | Unset = UNSET
        if not isinstance(self.flags, Unset):
            flags = []
            for flags_item_data in self.flags:
                flags_item = flags_item_data.value
                flags.append(flags_item)

        purge_after_seconds: int | None | Unset
        if isinstance(self.purge_after_seconds, Unset):
            purge_after_seconds = UNSET
        else:
            purge_after_seconds = self.purge_after_seconds

        float_seconds: int | None | Unset
        if isinstance(self.float_seconds, Unset):
            float_seconds = UNSET
        else:
            float_seconds = self.float_seconds

        time_zone: None | str | Unset
        if isinstance(self.time_zone, Unset):
            time_zone = UNSET
        else:
            time_zone = self.time_zone

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "is_active": is_active,
                "window": window,
                "node_list": node_list,
                "reserved_nodes": reserved_nodes,
                "parts": parts,
                "running_jobs": running_jobs,
                "created_by": created_by,
                "created_at": created_at,
            }
        )
        if start is not UNSET:
            field_dict["start"] = start
        if end is not UNSET:
            field_dict["end"] = end
        if duration_seconds is not UNSET:
            field_dict["duration_seconds"] = duration_seconds
        if nodes is not UNSET:
            field_dict["nodes"] = nodes
        if node_count is not UNSET:
            field_dict["node_count"] = node_count
        if features is not UNSET:
            field_dict["features"] = features
        if partition is not UNSET:
            field_dict["partition"] = partition
        if tres is not UNSET:
            field_dict["tres"] = tres
        if users is not UNSET:
            field_dict["users"] = users
        if accounts is not UNSET:
            field_dict["accounts"] = accounts
        if tenants is not UNSET:
            field_dict["tenants"] = tenants
        if comment is not UNSET:
            field_dict["comment"] = comment
        if flags is not UNSET:
            field_dict["flags"] = flags
        if purge_after_seconds is not UNSET:
            field_dict["purge_after_seconds"] = purge_after_seconds
        if float_seconds is not UNSET:
            field_dict["float_seconds"] = float_seconds
        if time_zone is not UNSET:
            field_dict["time_zone"] = time_zone

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reservation_spec_tres import ReservationSpecTres  # noqa: PLC0415
        from ..models.reserved_part import ReservedPart  # noqa: PLC0415
        from ..models.window import Window  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        is_active = d.pop("is_active")

        window = Window.from_dict(d.pop("window"))

        node_list = d.pop("node_list")

        reserved_nodes = d.pop("reserved_nodes")

        parts = []
        _parts = d.pop("parts")
        for parts_item_data in _parts:
            parts_item = ReservedPart.from_dict(parts_item_data)

            parts.append(parts_item)

        running_jobs = d.pop("running_jobs")

        created_by = d.pop("created_by")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_start(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                start_type_0 = datetime.datetime.fromisoformat(data)

                return start_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        start = _parse_start(d.pop("start", UNSET))

        def _parse_end(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                end_type_0 = datetime.datetime.fromisoformat(data)

                return end_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        end = _parse_end(d.pop("end", UNSET))

        def _parse_duration_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        duration_seconds = _parse_duration_seconds(d.pop("duration_seconds", UNSET))

        def _parse_nodes(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        nodes = _parse_nodes(d.pop("nodes", UNSET))

        def _parse_node_count(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        node_count = _parse_node_count(d.pop("node_count", UNSET))

        def _parse_features(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        features = _parse_features(d.pop("features", UNSET))

        def _parse_partition(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        partition = _parse_partition(d.pop("partition", UNSET))

        _tres = d.pop("tres", UNSET)
        tres: ReservationSpecTres | Unset
        if isinstance(_tres, Unset):
            tres = UNSET
        else:
            tres = ReservationSpecTres.from_dict(_tres)

        users = cast(list[str], d.pop("users", UNSET))

        accounts = cast(list[str], d.pop("accounts", UNSET))

        tenants = cast(list[str], d.pop("tenants", UNSET))

        def _parse_comment(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        comment = _parse_comment(d.pop("comment", UNSET))

        _flags = d.pop("flags", UNSET)
        flags: list[ReservationFlag] | Unset = UNSET
        if _flags is not UNSET:
            flags = []
            for flags_item_data in _flags:
                flags_item = ReservationFlag(flags_item_data)

                flags.append(flags_item)

        def _parse_purge_after_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        purge_after_seconds = _parse_purge_after_seconds(d.pop("purge_after_seconds", UNSET))

        def _parse_float_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        float_seconds = _parse_float_seconds(d.pop("float_seconds", UNSET))

        def _parse_time_zone(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        time_zone = _parse_time_zone(d.pop("time_zone", UNSET))

        reservation = cls(
            name=name,
            is_active=is_active,
            window=window,
            node_list=node_list,
            reserved_nodes=reserved_nodes,
            parts=parts,
            running_jobs=running_jobs,
            created_by=created_by,
            created_at=created_at,
            start=start,
            end=end,
            duration_seconds=duration_seconds,
            nodes=nodes,
            node_count=node_count,
            features=features,
            partition=partition,
            tres=tres,
            users=users,
            accounts=accounts,
            tenants=tenants,
            comment=comment,
            flags=flags,
            purge_after_seconds=purge_after_seconds,
            float_seconds=float_seconds,
            time_zone=time_zone,
        )

        reservation.additional_properties = d
        return reservation

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
