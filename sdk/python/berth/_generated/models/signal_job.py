from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="SignalJob")


@_attrs_define
class SignalJob:
    """
    Attributes:
        signal (str): Name (`SIGUSR1`) or number.
        step (None | str | Unset):
        full (bool | Unset): The batch shell too.
    """

    signal: str
    step: None | str | Unset = UNSET
    full: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        signal = self.signal

        step: None | str | Unset
        if isinstance(self.step, Unset):
            step = UNSET
        else:
            step = self.step

        full = self.full

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "signal": signal,
            }
        )
        if step is not UNSET:
            field_dict["step"] = step
        if full is not UNSET:
            field_dict["full"] = full

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        signal = d.pop("signal")

        def _parse_step(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        step = _parse_step(d.pop("step", UNSET))

        full = d.pop("full", UNSET)

        signal_job = cls(
            signal=signal,
            step=step,
            full=full,
        )

        return signal_job
