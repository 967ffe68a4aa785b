from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.create_simulation import CreateSimulation
from ...models.problem import Problem
from ...models.simulation import Simulation
from ...types import Response


def _get_kwargs(
    *,
    body: CreateSimulation,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/simulations",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | Simulation:
    if response.status_code == 201:
        response_201 = Simulation.from_dict(response.json())

        return response_201

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
    *,
    client: AuthenticatedClient | Client,
    body: CreateSimulation,
) -> Response[Problem | Simulation]:
    """Replay recorded history under other policies. Answers at once; the simulation goes on in the
    background, and GET tells how far it is.

    Args:
        body (CreateSimulation): Replay the jobs submitted within [`from`, `to`) that ran and have
            ended.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Simulation]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: CreateSimulation,
) -> Problem | Simulation | None:
    """Replay recorded history under other policies. Answers at once; the simulation goes on in the
    background, and GET tells how far it is.

    Args:
        body (CreateSimulation): Replay the jobs submitted within [`from`, `to`) that ran and have
            ended.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Simulation
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateSimulation,
) -> Response[Problem | Simulation]:
    """Replay recorded history under other policies. Answers at once; the simulation goes on in the
    background, and GET tells how far it is.

    Args:
        body (CreateSimulation): Replay the jobs submitted within [`from`, `to`) that ran and have
            ended.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Simulation]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CreateSimulation,
) -> Problem | Simulation | None:
    """Replay recorded history under other policies. Answers at once; the simulation goes on in the
    background, and GET tells how far it is.

    Args:
        body (CreateSimulation): Replay the jobs submitted within [`from`, `to`) that ran and have
            ended.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Simulation
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
