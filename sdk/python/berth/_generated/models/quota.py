from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.quota_borrowing_limit import QuotaBorrowingLimit
    from ..models.quota_guaranteed import QuotaGuaranteed
    from ..models.quota_lending_limit import QuotaLendingLimit


T = TypeVar("T", bound="Quota")


@_attrs_define
class Quota:
    """What a tenant is guaranteed, and under which conditions it borrows and lends. Counts are held by running jobs at
    once.

        Attributes:
            guaranteed (QuotaGuaranteed | Unset): Up to here its jobs are never held by what others use. Of a resource that
                is not named nothing is guaranteed.
            cohort (None | str | Unset):
            borrowing_limit (QuotaBorrowingLimit | Unset): At most so much beyond `guaranteed`; absent: as much as the
                others lend.
            lending_limit (QuotaLendingLimit | Unset): At most so much of `guaranteed` is lent; absent: all of it.
    """

    guaranteed: QuotaGuaranteed | Unset = UNSET
    cohort: None | str | Unset = UNSET
    borrowing_limit: QuotaBorrowingLimit | Unset = UNSET
    lending_limit: QuotaLendingLimit | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        guaranteed: dict[str, Any] | Unset = UNSET
        if not isinstance(self.guaranteed, Unset):
            guaranteed = self.guaranteed.to_dict()

        cohort: None | str | Unset
        if isinstance(self.cohort, Unset):
            cohort = UNSET
        else:
            cohort = self.cohort

        borrowing_limit: dict[str, Any] | Unset = UNSET
        if not isinstance(self.borrowing_limit, Unset):
            borrowing_limit = self.borrowing_limit.to_dict()

        lending_limit: dict[str, Any] | Unset = UNSET
        if not isinstance(self.lending_limit, Unset):
            lending_limit = self.lending_limit.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if guaranteed is not UNSET:
            field_dict["guaranteed"] = guaranteed
        if cohort is not UNSET:
            field_dict["cohort"] = cohort
        if borrowing_limit is not UNSET:
            field_dict["borrowing_limit"] = borrowing_limit
        if lending_limit is not UNSET:
            field_dict["lending_limit"] = lending_limit

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.quota_borrowing_limit import QuotaBorrowingLimit  # noqa: PLC0415
        from ..models.quota_guaranteed import QuotaGuaranteed  # noqa: PLC0415
        from ..models.quota_lending_limit import QuotaLendingLimit  # noqa: PLC0415

        d = dict(src_dict)
        _guaranteed = d.pop("guaranteed", UNSET)
        guaranteed: QuotaGuaranteed | Unset
        if isinstance(_guaranteed, Unset):
            guaranteed = UNSET
        else:
            guaranteed = QuotaGuaranteed.from_dict(_guaranteed)

        def _parse_cohort(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        cohort = _parse_cohort(d.pop("cohort", UNSET))

        _borrowing_limit = d.pop("borrowing_limit", UNSET)
        borrowing_limit: QuotaBorrowingLimit | Unset
        if isinstance(_borrowing_limit, Unset):
            borrowing_limit = UNSET
        else:
            borrowing_limit = QuotaBorrowingLimit.from_dict(_borrowing_limit)

        _lending_limit = d.pop("lending_limit", UNSET)
        lending_limit: QuotaLendingLimit | Unset
        if isinstance(_lending_limit, Unset):
            lending_limit = UNSET
        else:
            lending_limit = QuotaLendingLimit.from_dict(_lending_limit)

        quota = cls(
            guaranteed=guaranteed,
            cohort=cohort,
            borrowing_limit=borrowing_limit,
            lending_limit=lending_limit,
        )

        return quota
