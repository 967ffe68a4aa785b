from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="SignalSpec")


@_attrs_define
class SignalSpec:
    """Slurm's `--signal=[B:]sig[@seconds]`: sent `seconds_before` the time limit.

    Attributes:
        signal (str): Name (`SIGUSR1`, `USR1`) or number.
        seconds_before (int | Unset):
        batch_only (bool | Unset): Only the batch shell gets it; otherwise all steps but the batch shell.
    """

    signal: str
    seconds_before: int | Unset = UNSET
    batch_only: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        signal = self.signal

        seconds_before = self.seconds_before

        batch_only = self.batch_only

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "signal": signal,
            }
        )
        if seconds_before is not UNSET:
            field_dict["seconds_before"] = seconds_before
        if batch_only is not UNSET:
            field_dict["batch_only"] = batch_only

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        signal = d.pop("signal")

        seconds_before = d.pop("seconds_before", UNSET)

        batch_only = d.pop("batch_only", UNSET)

        signal_spec = cls(
            signal=signal,
            seconds_before=seconds_before,
            batch_only=batch_only,
        )

        return signal_spec
