from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.simulation import Simulation
from ...types import Response


def _get_kwargs(
    simulation_id: int,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/simulations/{simulation_id}".format(
            simulation_id=quote(str(simulation_id), safe=""),
        ),
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | Simulation:
    if response.status_code == 200:
        response_200 = Simulation.from_dict(response.json())

        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | Simulation]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    simulation_id: int,
    *,
    client: AuthenticatedClient | Client,
) -> Response[Problem | Simulation]:
    """Get a simulation: how far it is, and what came of it.

    Args:
        simulation_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Simulation]
    """

    kwargs = _get_kwargs(
        simulation_id=simulation_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    simulation_id: int,
    *,
    client: AuthenticatedClient | Client,
) -> Problem | Simulation | None:
    """Get a simulation: how far it is, and what came of it.

    Args:
        simulation_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Simulation
    """

    return sync_detailed(
        simulation_id=simulation_id,
        client=client,
    ).parsed


async def asyncio_detailed(
    simulation_id: int,
    *,
    client: AuthenticatedClient | Client,
) -> Response[Problem | Simulation]:
    """Get a simulation: how far it is, and what came of it.

    Args:
        simulation_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Simulation]
    """

    kwargs = _get_kwargs(
        simulation_id=simulation_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    simulation_id: int,
    *,
    client: AuthenticatedClient | Client,
) -> Problem | Simulation | None:
    """Get a simulation: how far it is, and what came of it.

    Args:
        simulation_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Simulation
    """

    return (
        await asyncio_detailed(
            simulation_id=simulation_id,
            client=client,
        )
    ).parsed
