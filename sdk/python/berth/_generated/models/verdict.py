from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="Verdict")


@_attrs_define
class Verdict:
    """One thing that holds a job, with the object it concerns.

    Attributes:
        code (str): Stable identifier: `resources`, `priority`, `begin_time`, …
        rule (str): The rule that was applied, in words.
        object_ (str): What it concerns: `partition/h100`, `job/1198`, `node/n3`.
        component (int | None | Unset): Of a heterogeneous job: the component that it holds.
        have (None | str | Unset):
        need (None | str | Unset):
        holders (list[str] | Unset): Who has what is missing: `job/1198`, at most a few.
        clears_at (datetime.datetime | None | Unset): When this may clear, as far as time limits tell.
        advice (None | str | Unset): What the user can do, if anything.
    """

    code: str
    rule: str
    object_: str
    component: int | None | Unset = UNSET
    have: None | str | Unset = UNSET
    need: None | str | Unset = UNSET
    holders: list[str] | Unset = UNSET
    clears_at: datetime.datetime | None | Unset = UNSET
    advice: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        code = self.code

        rule = self.rule

        object_ = self.object_

        component: int | None | Unset
        if isinstance(self.component, Unset):
            component = UNSET
        else:
            component = self.component

        have: None | str | Unset
        if isinstance(self.have, Unset):
            have = UNSET
        else:
            have = self.have

        need: None | str | Unset
        if isinstance(self.need, Unset):
            need = UNSET
        else:
            need = self.need

        holders: list[str] | Unset = UNSET
        if not isinstance(self.holders, Unset):
            holders = self.holders

        clears_at: None | str | Unset
        if isinstance(self.clears_at, Unset):
            clears_at = UNSET
        elif isinstance(self.clears_at, datetime.datetime):
            clears_at = self.clears_at.isoformat()
        else:
            clears_at = self.clears_at

        advice: None | str | Unset
        if isinstance(self.advice, Unset):
            advice = UNSET
        else:
            advice = self.advice

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "code": code,
                "rule": rule,
                "object": object_,
            }
        )
        if component is not UNSET:
            field_dict["component"] = component
        if have is not UNSET:
            field_dict["have"] = have
        if need is not UNSET:
            field_dict["need"] = need
        if holders is not UNSET:
            field_dict["holders"] = holders
        if clears_at is not UNSET:
            field_dict["clears_at"] = clears_at
        if advice is not UNSET:
            field_dict["advice"] = advice

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        code = d.pop("code")

        rule = d.pop("rule")

        object_ = d.pop("object")

        def _parse_component(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        component = _parse_component(d.pop("component", UNSET))

        def _parse_have(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        have = _parse_have(d.pop("have", UNSET))

        def _parse_need(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        need = _parse_need(d.pop("need", UNSET))

        holders = cast(list[str], d.pop("holders", UNSET))

        def _parse_clears_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                clears_at_type_0 = datetime.datetime.fromisoformat(data)

                return clears_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        clears_at = _parse_clears_at(d.pop("clears_at", UNSET))

        def _parse_advice(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        advice = _parse_advice(d.pop("advice", UNSET))

        verdict = cls(
            code=code,
            rule=rule,
            object_=object_,
            component=component,
            have=have,
            need=need,
            holders=holders,
            clears_at=clears_at,
            advice=advice,
        )

        verdict.additional_properties = d
        return verdict

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
