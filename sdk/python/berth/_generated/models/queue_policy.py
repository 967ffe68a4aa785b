from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.queue_order import QueueOrder
from ..types import UNSET, Unset

T = TypeVar("T", bound="QueuePolicy")


@_attrs_define
class QueuePolicy:
    """How the queue is walked.

    Attributes:
        order (QueueOrder | Unset): Who goes first among jobs of equal priority.
        patience_seconds (int | Unset):
        depth (int | None | Unset): Jobs, from the head of the queue on, that hold a planned start which nobody may
            delay; the others start where they delay none.
            Absent: all. 1 is EASY backfill.
    """

    order: QueueOrder | Unset = UNSET
    patience_seconds: int | Unset = UNSET
    depth: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        order: str | Unset = UNSET
        if not isinstance(self.order, Unset):
            order = self.order.value

        patience_seconds = self.patience_seconds

        depth: int | None | Unset
        if isinstance(self.depth, Unset):
            depth = UNSET
        else:
            depth = self.depth

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if order is not UNSET:
            field_dict["order"] = order
        if patience_seconds is not UNSET:
            field_dict["patience_seconds"] = patience_seconds
        if depth is not UNSET:
            field_dict["depth"] = depth

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _order = d.pop("order", UNSET)
        order: QueueOrder | Unset
        if isinstance(_order, Unset):
            order = UNSET
        else:
            order = QueueOrder(_order)

        patience_seconds = d.pop("patience_seconds", UNSET)

        def _parse_depth(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        depth = _parse_depth(d.pop("depth", UNSET))

        queue_policy = cls(
            order=order,
            patience_seconds=patience_seconds,
            depth=depth,
        )

        return queue_policy
