from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.fault import Fault
    from ..models.job_spec import JobSpec


T = TypeVar("T", bound="ParsedJob")


@_attrs_define
class ParsedJob:
    """A script read into a job, nothing submitted.

    Attributes:
        spec (JobSpec): A job to submit. It has either a `script`, run once on the first node (its `srun` lines open
            parallel steps), or a
            `command`, run once for each task on all nodes.
        warnings (list[Fault]):
    """

    spec: JobSpec
    warnings: list[Fault]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        spec = self.spec.to_dict()

        warnings = []
        for warnings_item_data in self.warnings:
            warnings_item = warnings_item_data.to_dict()
            warnings.append(warnings_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "spec": spec,
                "warnings": warnings,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.fault import Fault  # noqa: PLC0415
        from ..models.job_spec import JobSpec  # noqa: PLC0415

        d = dict(src_dict)
        spec = JobSpec.from_dict(d.pop("spec"))

        warnings = []
        _warnings = d.pop("warnings")
        for warnings_item_data in _warnings:
            warnings_item = Fault.from_dict(warnings_item_data)

            warnings.append(warnings_item)

        parsed_job = cls(
            spec=spec,
            warnings=warnings,
        )

        parsed_job.additional_properties = d
        return parsed_job

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
