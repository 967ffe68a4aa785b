from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.update_tenant_terms_type_0 import UpdateTenantTermsType0


T = TypeVar("T", bound="UpdateTenant")


@_attrs_define
class UpdateTenant:
    """
    Attributes:
        display_name (None | str | Unset):
        is_suspended (bool | None | Unset):
        terms (None | Unset | UpdateTenantTermsType0): A merge patch of the tenant's share and limits.
    """

    display_name: None | str | Unset = UNSET
    is_suspended: bool | None | Unset = UNSET
    terms: None | Unset | UpdateTenantTermsType0 = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.update_tenant_terms_type_0 import UpdateTenantTermsType0  # noqa: PLC0415

        display_name: None | str | Unset
        if isinstance(self.display_name, Unset):
            display_name = UNSET
        else:
            display_name = self.display_name

        is_suspended: bool | None | Unset
        if isinstance(self.is_suspended, Unset):
            is_suspended = UNSET
        else:
            is_suspended = self.is_suspended

        terms: dict[str, Any] | None | Unset
        if isinstance(self.terms, Unset):
            terms = UNSET
        elif isinstance(self.terms, UpdateTenantTermsType0):
            terms = self.terms.to_dict()
        else:
            terms = self.terms

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if display_name is not UNSET:
            field_dict["display_name"] = display_name
        if is_suspended is not UNSET:
            field_dict["is_suspended"] = is_suspended
        if terms is not UNSET:
            field_dict["terms"] = terms

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.update_tenant_terms_type_0 import UpdateTenantTermsType0  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_display_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        display_name = _parse_display_name(d.pop("display_name", UNSET))

        def _parse_is_suspended(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        is_suspended = _parse_is_suspended(d.pop("is_suspended", UNSET))

        def _parse_terms(data: object) -> None | Unset | UpdateTenantTermsType0:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                terms_type_0 = UpdateTenantTermsType0.from_dict(data)

                return terms_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | UpdateTenantTermsType0, data)

        terms = _parse_terms(d.pop("terms", UNSET))

        update_tenant = cls(
            display_name=display_name,
            is_suspended=is_suspended,
            terms=terms,
        )

        return update_tenant
