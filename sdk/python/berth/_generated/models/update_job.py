from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="UpdateJob")


@_attrs_define
class UpdateJob:
    """A merge patch.

    Attributes:
        name (None | str | Unset):
        time_limit_seconds (int | None | Unset):
        nice (int | None | Unset):
        site_factor (int | None | Unset): Added to the priority as it is; set by administrators of the platform.
        partition (None | str | Unset):
        qos (None | str | Unset):
        comment (None | str | Unset):
        begin (datetime.datetime | None | Unset):
    """

    name: None | str | Unset = UNSET
    time_limit_seconds: int | None | Unset = UNSET
    nice: int | None | Unset = UNSET
    site_factor: int | None | Unset = UNSET
    partition: None | str | Unset = UNSET
    qos: None | str | Unset = UNSET
    comment: None | str | Unset = UNSET
    begin: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        time_limit_seconds: int | None | Unset
        if isinstance(self.time_limit_seconds, Unset):
            time_limit_seconds = UNSET
        else:
            time_limit_seconds = self.time_limit_seconds

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

        comment: None | str | Unset
        if isinstance(self.comment, Unset):
            comment = UNSET
        else:
            comment = self.comment

        begin: None | str | Unset
        if isinstance(self.begin, Unset):
            begin = UNSET
        elif isinstance(self.begin, datetime.datetime):
            begin = self.begin.isoformat()
        else:
            begin = self.begin

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if name is not UNSET:
            field_dict["name"] = name
        if time_limit_seconds is not UNSET:
            field_dict["time_limit_seconds"] = time_limit_seconds
        if nice is not UNSET:
            field_dict["nice"] = nice
        if site_factor is not UNSET:
            field_dict["site_factor"] = site_factor
        if partition is not UNSET:
            field_dict["partition"] = partition
        if qos is not UNSET:
            field_dict["qos"] = qos
        if comment is not UNSET:
            field_dict["comment"] = comment
        if begin is not UNSET:
            field_dict["begin"] = begin

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_time_limit_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        time_limit_seconds = _parse_time_limit_seconds(d.pop("time_limit_seconds", UNSET))

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

        def _parse_comment(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        comment = _parse_comment(d.pop("comment", UNSET))

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

        update_job = cls(
            name=name,
            time_limit_seconds=time_limit_seconds,
            nice=nice,
            site_factor=site_factor,
            partition=partition,
            qos=qos,
            comment=comment,
            begin=begin,
        )

        return update_job
