from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="RequeueJob")


@_attrs_define
class RequeueJob:
    """
    Attributes:
        hold (bool | Unset): Keep it held once it is back in the queue. Default: False.
    """

    hold: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        hold = self.hold

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if hold is not UNSET:
            field_dict["hold"] = hold

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        hold = d.pop("hold", UNSET)

        requeue_job = cls(
            hold=hold,
        )

        return requeue_job
