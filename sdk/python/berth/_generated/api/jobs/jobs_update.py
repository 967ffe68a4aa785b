from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.job import Job
from ...models.problem import Problem
from ...models.update_job import UpdateJob
from ...types import Response


def _get_kwargs(
    job_id: str,
    *,
    body: UpdateJob,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/v1/jobs/{job_id}".format(
            job_id=quote(str(job_id), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Job | Problem:
    if response.status_code == 200:
        response_200 = Job.from_dict(response.json())

        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Job | Problem]:
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
    body: UpdateJob,
) -> Response[Job | Problem]:
    """Change a job: nearly all of it while it is pending; name, comment, labels, nice, requeue, fewer
    nodes and a lower time limit while it runs.

    Args:
        job_id (str):
        body (UpdateJob): A merge patch of the job's spec: a field that is absent stays, `null`
            takes it back to its default. While it runs a job changes only
            in its name, comment, labels, nice, requeue and time limit, which its user may only lower;
            and by `resources.nodes` or `nodelist` one
            with a script gives back all nodes but so many, or but those.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Job | Problem]
    """

    kwargs = _get_kwargs(
        job_id=job_id,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: UpdateJob,
) -> Job | Problem | None:
    """Change a job: nearly all of it while it is pending; name, comment, labels, nice, requeue, fewer
    nodes and a lower time limit while it runs.

    Args:
        job_id (str):
        body (UpdateJob): A merge patch of the job's spec: a field that is absent stays, `null`
            takes it back to its default. While it runs a job changes only
            in its name, comment, labels, nice, requeue and time limit, which its user may only lower;
            and by `resources.nodes` or `nodelist` one
            with a script gives back all nodes but so many, or but those.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Job | Problem
    """

    return sync_detailed(
        job_id=job_id,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: UpdateJob,
) -> Response[Job | Problem]:
    """Change a job: nearly all of it while it is pending; name, comment, labels, nice, requeue, fewer
    nodes and a lower time limit while it runs.

    Args:
        job_id (str):
        body (UpdateJob): A merge patch of the job's spec: a field that is absent stays, `null`
            takes it back to its default. While it runs a job changes only
            in its name, comment, labels, nice, requeue and time limit, which its user may only lower;
            and by `resources.nodes` or `nodelist` one
            with a script gives back all nodes but so many, or but those.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Job | Problem]
    """

    kwargs = _get_kwargs(
        job_id=job_id,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    job_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: UpdateJob,
) -> Job | Problem | None:
    """Change a job: nearly all of it while it is pending; name, comment, labels, nice, requeue, fewer
    nodes and a lower time limit while it runs.

    Args:
        job_id (str):
        body (UpdateJob): A merge patch of the job's spec: a field that is absent stays, `null`
            takes it back to its default. While it runs a job changes only
            in its name, comment, labels, nice, requeue and time limit, which its user may only lower;
            and by `resources.nodes` or `nodelist` one
            with a script gives back all nodes but so many, or but those.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Job | Problem
    """

    return (
        await asyncio_detailed(
            job_id=job_id,
            client=client,
            body=body,
        )
    ).parsed
