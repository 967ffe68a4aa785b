from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="RebootNode")


@_attrs_define
class RebootNode:
    """
    Attributes:
        reason (str): Shown to users whose jobs wait for the node.
        asap (bool | Unset): Let nothing new start there until then. Otherwise it reboots when it happens to be idle.
        stays_down (bool | Unset): Leave it down afterwards.
    """

    reason: str
    asap: bool | Unset = UNSET
    stays_down: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        reason = self.reason

        asap = self.asap

        stays_down = self.stays_down

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "reason": reason,
            }
        )
        if asap is not UNSET:
            field_dict["asap"] = asap
        if stays_down is not UNSET:
            field_dict["stays_down"] = stays_down

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        reason = d.pop("reason")

        asap = d.pop("asap", UNSET)

        stays_down = d.pop("stays_down", UNSET)

        reboot_node = cls(
            reason=reason,
            asap=asap,
            stays_down=stays_down,
        )

        return reboot_node
