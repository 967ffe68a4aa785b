from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.log_stream import LogStream
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    job_id: str,
    *,
    stream: LogStream | Unset = UNSET,
    step: str | Unset = UNSET,
    task: int | Unset = UNSET,
    attempt: int | Unset = UNSET,
    offset: int | Unset = UNSET,
    tail: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_stream: str | Unset = UNSET
    if not isinstance(stream, Unset):
        json_stream = stream.value

    params["stream"] = json_stream

    params["step"] = step

    params["task"] = task

    params["attempt"] = attempt

    params["offset"] = offset

    params["tail"] = tail

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/jobs/{job_id}/logs".format(
            job_id=quote(str(job_id), safe=""),
        ),
        "params": params,
    }

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
    stream: LogStream | Unset = UNSET,
    step: str | Unset = UNSET,
    task: int | Unset = UNSET,
    attempt: int | Unset = UNSET,
    offset: int | Unset = UNSET,
    tail: int | Unset = UNSET,
) -> Response[Problem | str]:
    """Read a task's output. Empty if it has written nothing (yet); 404 for a step, attempt or task that is
    not there.

    Args:
        job_id (str):
        stream (LogStream | Unset): Which of a task's two outputs; or the input that was passed on
            to a whole step, kept under task 0.
        step (str | Unset):
        task (int | Unset):
        attempt (int | Unset):
        offset (int | Unset):
        tail (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | str]
    """

    kwargs = _get_kwargs(
        job_id=job_id,
        stream=stream,
        step=step,
        task=task,
        attempt=attempt,
        offset=offset,
        tail=tail,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    stream: LogStream | Unset = UNSET,
    step: str | Unset = UNSET,
    task: int | Unset = UNSET,
    attempt: int | Unset = UNSET,
    offset: int | Unset = UNSET,
    tail: int | Unset = UNSET,
) -> Problem | str | None:
    """Read a task's output. Empty if it has written nothing (yet); 404 for a step, attempt or task that is
    not there.

    Args:
        job_id (str):
        stream (LogStream | Unset): Which of a task's two outputs; or the input that was passed on
            to a whole step, kept under task 0.
        step (str | Unset):
        task (int | Unset):
        attempt (int | Unset):
        offset (int | Unset):
        tail (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | str
    """

    return sync_detailed(
        job_id=job_id,
        client=client,
        stream=stream,
        step=step,
        task=task,
        attempt=attempt,
        offset=offset,
        tail=tail,
    ).parsed


async def asyncio_detailed(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    stream: LogStream | Unset = UNSET,
    step: str | Unset = UNSET,
    task: int | Unset = UNSET,
    attempt: int | Unset = UNSET,
    offset: int | Unset = UNSET,
    tail: int | Unset = UNSET,
) -> Response[Problem | str]:
    """Read a task's output. Empty if it has written nothing (yet); 404 for a step, attempt or task that is
    not there.

    Args:
        job_id (str):
        stream (LogStream | Unset): Which of a task's two outputs; or the input that was passed on
            to a whole step, kept under task 0.
        step (str | Unset):
        task (int | Unset):
        attempt (int | Unset):
        offset (int | Unset):
        tail (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | str]
    """

    kwargs = _get_kwargs(
        job_id=job_id,
        stream=stream,
        step=step,
        task=task,
        attempt=attempt,
        offset=offset,
        tail=tail,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    stream: LogStream | Unset = UNSET,
    step: str | Unset = UNSET,
    task: int | Unset = UNSET,
    attempt: int | Unset = UNSET,
    offset: int | Unset = UNSET,
    tail: int | Unset = UNSET,
) -> Problem | str | None:
    """Read a task's output. Empty if it has written nothing (yet); 404 for a step, attempt or task that is
    not there.

    Args:
        job_id (str):
        stream (LogStream | Unset): Which of a task's two outputs; or the input that was passed on
            to a whole step, kept under task 0.
        step (str | Unset):
        task (int | Unset):
        attempt (int | Unset):
        offset (int | Unset):
        tail (int | Unset):

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
            stream=stream,
            step=step,
            task=task,
            attempt=attempt,
            offset=offset,
            tail=tail,
        )
    ).parsed
