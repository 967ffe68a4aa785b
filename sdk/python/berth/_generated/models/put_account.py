from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.terms import Terms


T = TypeVar("T", bound="PutAccount")


@_attrs_define
class PutAccount:
    """
    Attributes:
        parent (None | str | Unset):
        description (None | str | Unset):
        terms (Terms | Unset): What an association is given: its share, its part in priorities, its limits.
    """

    parent: None | str | Unset = UNSET
    description: None | str | Unset = UNSET
    terms: Terms | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        parent: None | str | Unset
        if isinstance(self.parent, Unset):
            parent = UNSET
        else:
            parent = self.parent

        description: None | str | Unset
        if isinstance(self.description, Unset):
            description = UNSET
        else:
            description = self.description

        terms: dict[str, Any] | Unset = UNSET
        if not isinstance(self.terms, Unset):
            terms = self.terms.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if parent is not UNSET:
            field_dict["parent"] = parent
        if description is not UNSET:
            field_dict["description"] = description
        if terms is not UNSET:
            field_dict["terms"] = terms

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.terms import Terms  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_parent(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        parent = _parse_parent(d.pop("parent", UNSET))

        def _parse_description(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        description = _parse_description(d.pop("description", UNSET))

        _terms = d.pop("terms", UNSET)
        terms: Terms | Unset
        if isinstance(_terms, Unset):
            terms = UNSET
        else:
            terms = Terms.from_dict(_terms)

        put_account = cls(
            parent=parent,
            description=description,
            terms=terms,
        )

        return put_account
