from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.reservation import Reservation
from ...models.reservations_update_body import ReservationsUpdateBody
from ...types import Response


def _get_kwargs(
    reservation: str,
    *,
    body: ReservationsUpdateBody,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/v1/reservations/{reservation}".format(
            reservation=quote(str(reservation), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | Reservation:
    if response.status_code == 200:
        response_200 = Reservation.from_dict(response.json())

        return response_200

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
    reservation: str,
    *,
    client: AuthenticatedClient | Client,
    body: ReservationsUpdateBody,
) -> Response[Problem | Reservation]:
    """Change a reservation (a merge patch: `null` takes a field back to its default; of `end` and
    `duration_seconds`, and of `nodes`, `node_count` and
    `tres`, the one that is given replaces the others). Nodes that it has are kept as far as they fit.
    409 `reservation_in_use`: its jobs
    would be left outside.

    Args:
        reservation (str):
        body (ReservationsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Reservation]
    """

    kwargs = _get_kwargs(
        reservation=reservation,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    reservation: str,
    *,
    client: AuthenticatedClient | Client,
    body: ReservationsUpdateBody,
) -> Problem | Reservation | None:
    """Change a reservation (a merge patch: `null` takes a field back to its default; of `end` and
    `duration_seconds`, and of `nodes`, `node_count` and
    `tres`, the one that is given replaces the others). Nodes that it has are kept as far as they fit.
    409 `reservation_in_use`: its jobs
    would be left outside.

    Args:
        reservation (str):
        body (ReservationsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Reservation
    """

    return sync_detailed(
        reservation=reservation,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    reservation: str,
    *,
    client: AuthenticatedClient | Client,
    body: ReservationsUpdateBody,
) -> Response[Problem | Reservation]:
    """Change a reservation (a merge patch: `null` takes a field back to its default; of `end` and
    `duration_seconds`, and of `nodes`, `node_count` and
    `tres`, the one that is given replaces the others). Nodes that it has are kept as far as they fit.
    409 `reservation_in_use`: its jobs
    would be left outside.

    Args:
        reservation (str):
        body (ReservationsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Reservation]
    """

    kwargs = _get_kwargs(
        reservation=reservation,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    reservation: str,
    *,
    client: AuthenticatedClient | Client,
    body: ReservationsUpdateBody,
) -> Problem | Reservation | None:
    """Change a reservation (a merge patch: `null` takes a field back to its default; of `end` and
    `duration_seconds`, and of `nodes`, `node_count` and
    `tres`, the one that is given replaces the others). Nodes that it has are kept as far as they fit.
    409 `reservation_in_use`: its jobs
    would be left outside.

    Args:
        reservation (str):
        body (ReservationsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Reservation
    """

    return (
        await asyncio_detailed(
            reservation=reservation,
            client=client,
            body=body,
        )
    ).parsed
