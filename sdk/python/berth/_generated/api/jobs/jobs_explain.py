from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.explanation import Explanation
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    job_id: str,
    *,
    advice: bool | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["advice"] = advice

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/jobs/{job_id}/explain".format(
            job_id=quote(str(job_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Explanation | Problem:
    if response.status_code == 200:
        response_200 = Explanation.from_dict(response.json())

        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Explanation | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    advice: bool | Unset = UNSET,
) -> Response[Explanation | Problem]:
    """Why is it pending? When will it start, and what would make it start sooner? Of a job that has
    started: why then, and why there?

    Args:
        job_id (str):
        advice (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Explanation | Problem]
    """

    kwargs = _get_kwargs(
        job_id=job_id,
        advice=advice,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    advice: bool | Unset = UNSET,
) -> Explanation | Problem | None:
    """Why is it pending? When will it start, and what would make it start sooner? Of a job that has
    started: why then, and why there?

    Args:
        job_id (str):
        advice (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Explanation | Problem
    """

    return sync_detailed(
        job_id=job_id,
        client=client,
        advice=advice,
    ).parsed


async def asyncio_detailed(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    advice: bool | Unset = UNSET,
) -> Response[Explanation | Problem]:
    """Why is it pending? When will it start, and what would make it start sooner? Of a job that has
    started: why then, and why there?

    Args:
        job_id (str):
        advice (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Explanation | Problem]
    """

    kwargs = _get_kwargs(
        job_id=job_id,
        advice=advice,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    advice: bool | Unset = UNSET,
) -> Explanation | Problem | None:
    """Why is it pending? When will it start, and what would make it start sooner? Of a job that has
    started: why then, and why there?

    Args:
        job_id (str):
        advice (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Explanation | Problem
    """

    return (
        await asyncio_detailed(
            job_id=job_id,
            client=client,
            advice=advice,
        )
    ).parsed
