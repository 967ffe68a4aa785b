from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.create_simulation import CreateSimulation
    from ..models.simulation_result import SimulationResult


T = TypeVar("T", bound="Simulation")


@_attrs_define
class Simulation:
    """
    Attributes:
        simulation_id (int):
        state (str): `running`, `done` or `failed`.
        requested_by (str):
        request (CreateSimulation): Replay the jobs submitted within [`from`, `to`) that ran and have ended.
        done_jobs (int): Jobs replayed so far, under all policies together, and how many there are to be.
        total_jobs (int):
        created_at (datetime.datetime):
        result (None | SimulationResult | Unset):
        failure (None | str | Unset): Why it failed.
        ended_at (datetime.datetime | None | Unset):
    """

    simulation_id: int
    state: str
    requested_by: str
    request: CreateSimulation
    done_jobs: int
    total_jobs: int
    created_at: datetime.datetime
    result: None | SimulationResult | Unset = UNSET
    failure: None | str | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.simulation_result import SimulationResult  # noqa: PLC0415

        simulation_id = self.simulation_id

        state = self.state

        requested_by = self.requested_by

        request = self.request.to_dict()

        done_jobs = self.done_jobs

        total_jobs = self.total_jobs

        created_at = self.created_at.isoformat()

        result: dict[str, Any] | None | Unset
        if isinstance(self.result, Unset):
            result = UNSET
        elif isinstance(self.result, SimulationResult):
            result = self.result.to_dict()
        else:
            result = self.result

        failure: None | str | Unset
        if isinstance(self.failure, Unset):
            failure = UNSET
        else:
            failure = self.failure

        ended_at: None | str | Unset
        if isinstance(self.ended_at, Unset):
            ended_at = UNSET
        elif isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "simulation_id": simulation_id,
                "state": state,
                "requested_by": requested_by,
                "request": request,
                "done_jobs": done_jobs,
                "total_jobs": total_jobs,
                "created_at": created_at,
            }
        )
        if result is not UNSET:
            field_dict["result"] = result
        if failure is not UNSET:
            field_dict["failure"] = failure
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.create_simulation import CreateSimulation  # noqa: PLC0415
        from ..models.simulation_result import SimulationResult  # noqa: PLC0415

        d = dict(src_dict)
        simulation_id = d.pop("simulation_id")

        state = d.pop("state")

        requested_by = d.pop("requested_by")

        request = CreateSimulation.from_dict(d.pop("request"))

        done_jobs = d.pop("done_jobs")

        total_jobs = d.pop("total_jobs")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_result(data: object) -> None | SimulationResult | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                result_type_0 = SimulationResult.from_dict(data)

                return result_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SimulationResult | Unset, data)

        result = _parse_result(d.pop("result", UNSET))

        def _parse_failure(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        failure = _parse_failure(d.pop("failure", UNSET))

        def _parse_ended_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        ended_at = _parse_ended_at(d.pop("ended_at", UNSET))

        simulation = cls(
            simulation_id=simulation_id,
            state=state,
            requested_by=requested_by,
            request=request,
            done_jobs=done_jobs,
            total_jobs=total_jobs,
            created_at=created_at,
            result=result,
            failure=failure,
            ended_at=ended_at,
        )

        simulation.additional_properties = d
        return simulation

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
