from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.requeue_mode import RequeueMode
from ..types import UNSET, Unset

T = TypeVar("T", bound="RequeueSpec")


@_attrs_define
class RequeueSpec:
    """Whether the job runs again after a failure that is not its own.

    Attributes:
        mode (RequeueMode | Unset):
        max_restarts (int | Unset): Requeues allowed in all. Default: 5.
    """

    mode: RequeueMode | Unset = UNSET
    max_restarts: int | Unset = 5

    def to_dict(self) -> dict[str, Any]:
        mode: str | Unset = UNSET
        if not isinstance(self.mode, Unset):
            mode = self.mode.value

        max_restarts = self.max_restarts

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if mode is not UNSET:
            field_dict["mode"] = mode
        if max_restarts is not UNSET:
            field_dict["max_restarts"] = max_restarts

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _mode = d.pop("mode", UNSET)
        mode: RequeueMode | Unset
        if isinstance(_mode, Unset):
            mode = UNSET
        else:
            mode = RequeueMode(_mode)

        max_restarts = d.pop("max_restarts", UNSET)

        requeue_spec = cls(
            mode=mode,
            max_restarts=max_restarts,
        )

        return requeue_spec
