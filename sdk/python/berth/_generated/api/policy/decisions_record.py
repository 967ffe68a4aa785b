import datetime
from http import HTTPStatus
from typing import Any, cast

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    at: datetime.datetime | Unset = UNSET,
    job: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_at: str | Unset = UNSET
    if not isinstance(at, Unset):
        json_at = at.isoformat()
    params["at"] = json_at

    params["job"] = job

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/decisions/record",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | str:
    if response.status_code == 200:
        response_200 = cast(str, response.content)
        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | str]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    at: datetime.datetime | Unset = UNSET,
    job: str | Unset = UNSET,
) -> Response[Problem | str]:
    """Get the record of decisions: zstd of JSON lines, from the checkpoint before the decision asked for.
    `berth replay` reads it.

    Args:
        at (datetime.datetime | Unset):
        job (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | str]
    """

    kwargs = _get_kwargs(
        at=at,
        job=job,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    at: datetime.datetime | Unset = UNSET,
    job: str | Unset = UNSET,
) -> Problem | str | None:
    """Get the record of decisions: zstd of JSON lines, from the checkpoint before the decision asked for.
    `berth replay` reads it.

    Args:
        at (datetime.datetime | Unset):
        job (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | str
    """

    return sync_detailed(
        client=client,
        at=at,
        job=job,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    at: datetime.datetime | Unset = UNSET,
    job: str | Unset = UNSET,
) -> Response[Problem | str]:
    """Get the record of decisions: zstd of JSON lines, from the checkpoint before the decision asked for.
    `berth replay` reads it.

    Args:
        at (datetime.datetime | Unset):
        job (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | str]
    """

    kwargs = _get_kwargs(
        at=at,
        job=job,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    at: datetime.datetime | Unset = UNSET,
    job: str | Unset = UNSET,
) -> Problem | str | None:
    """Get the record of decisions: zstd of JSON lines, from the checkpoint before the decision asked for.
    `berth replay` reads it.

    Args:
        at (datetime.datetime | Unset):
        job (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | str
    """

    return (
        await asyncio_detailed(
            client=client,
            at=at,
            job=job,
        )
    ).parsed
