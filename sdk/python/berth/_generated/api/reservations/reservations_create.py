from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.reservation import Reservation
from ...models.reservation_spec import ReservationSpec
from ...types import Response


def _get_kwargs(
    *,
    body: ReservationSpec,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/reservations",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | Reservation:
    if response.status_code == 201:
        response_201 = Reservation.from_dict(response.json())

        return response_201

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | Reservation]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ReservationSpec,
) -> Response[Problem | Reservation]:
    """Make a reservation. Its nodes are chosen now: 409 `nodes_unavailable` tells what is in the way.

    Args:
        body (ReservationSpec): A reservation as an administrator asks for it. Nodes are named,
            counted, or come by resources; exactly one of `nodes`, `node_count`,
            counted `features` and `tres`, or the flag `part_nodes`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Reservation]
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
    body: ReservationSpec,
) -> Problem | Reservation | None:
    """Make a reservation. Its nodes are chosen now: 409 `nodes_unavailable` tells what is in the way.

    Args:
        body (ReservationSpec): A reservation as an administrator asks for it. Nodes are named,
            counted, or come by resources; exactly one of `nodes`, `node_count`,
            counted `features` and `tres`, or the flag `part_nodes`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Reservation
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ReservationSpec,
) -> Response[Problem | Reservation]:
    """Make a reservation. Its nodes are chosen now: 409 `nodes_unavailable` tells what is in the way.

    Args:
        body (ReservationSpec): A reservation as an administrator asks for it. Nodes are named,
            counted, or come by resources; exactly one of `nodes`, `node_count`,
            counted `features` and `tres`, or the flag `part_nodes`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Reservation]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: ReservationSpec,
) -> Problem | Reservation | None:
    """Make a reservation. Its nodes are chosen now: 409 `nodes_unavailable` tells what is in the way.

    Args:
        body (ReservationSpec): A reservation as an administrator asks for it. Nodes are named,
            counted, or come by resources; exactly one of `nodes`, `node_count`,
            counted `features` and `tres`, or the flag `part_nodes`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Reservation
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
