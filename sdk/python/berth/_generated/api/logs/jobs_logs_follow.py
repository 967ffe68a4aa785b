from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    job_id: str,
    *,
    step: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(last_event_id, Unset):
        headers["Last-Event-ID"] = last_event_id

    params: dict[str, Any] = {}

    params["step"] = step

    params["cursor"] = cursor

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/jobs/{job_id}/logs/follow".format(
            job_id=quote(str(job_id), safe=""),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | str:
    if response.status_code == 200:
        response_200 = response.text
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
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    step: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> Response[Problem | str]:
    """Follow a job's output as server-sent events until it ends.

     Each event's data is JSON: `output` with task, stream, text and cursor, then `end`. Output that is
    not UTF-8 has its bytes in `base64`
    too, for which `text` is a substitute. An event's `id` is its cursor: after a break, send it as
    `Last-Event-ID` or `?cursor=` to any
    replica and the stream goes on where it broke. A stream that ends without `end` has broken.

    Args:
        job_id (str):
        step (str | Unset):
        cursor (str | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | str]
    """

    kwargs = _get_kwargs(
        job_id=job_id,
        step=step,
        cursor=cursor,
        last_event_id=last_event_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    step: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> Problem | str | None:
    """Follow a job's output as server-sent events until it ends.

     Each event's data is JSON: `output` with task, stream, text and cursor, then `end`. Output that is
    not UTF-8 has its bytes in `base64`
    too, for which `text` is a substitute. An event's `id` is its cursor: after a break, send it as
    `Last-Event-ID` or `?cursor=` to any
    replica and the stream goes on where it broke. A stream that ends without `end` has broken.

    Args:
        job_id (str):
        step (str | Unset):
        cursor (str | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | str
    """

    return sync_detailed(
        job_id=job_id,
        client=client,
        step=step,
        cursor=cursor,
        last_event_id=last_event_id,
    ).parsed


async def asyncio_detailed(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    step: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> Response[Problem | str]:
    """Follow a job's output as server-sent events until it ends.

     Each event's data is JSON: `output` with task, stream, text and cursor, then `end`. Output that is
    not UTF-8 has its bytes in `base64`
    too, for which `text` is a substitute. An event's `id` is its cursor: after a break, send it as
    `Last-Event-ID` or `?cursor=` to any
    replica and the stream goes on where it broke. A stream that ends without `end` has broken.

    Args:
        job_id (str):
        step (str | Unset):
        cursor (str | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | str]
    """

    kwargs = _get_kwargs(
        job_id=job_id,
        step=step,
        cursor=cursor,
        last_event_id=last_event_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    step: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> Problem | str | None:
    """Follow a job's output as server-sent events until it ends.

     Each event's data is JSON: `output` with task, stream, text and cursor, then `end`. Output that is
    not UTF-8 has its bytes in `base64`
    too, for which `text` is a substitute. An event's `id` is its cursor: after a break, send it as
    `Last-Event-ID` or `?cursor=` to any
    replica and the stream goes on where it broke. A stream that ends without `end` has broken.

    Args:
        job_id (str):
        step (str | Unset):
        cursor (str | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | str
    """

    return (
        await asyncio_detailed(
            job_id=job_id,
            client=client,
            step=step,
            cursor=cursor,
            last_event_id=last_event_id,
        )
    ).parsed
