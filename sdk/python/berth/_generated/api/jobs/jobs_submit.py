from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.job_spec import JobSpec
from ...models.problem import Problem
from ...models.submitted_job import SubmittedJob
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    *,
    body: JobSpec | File | Unset = UNSET,
    tenant: str | Unset = UNSET,
    idempotency_key: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["tenant"] = tenant

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/jobs",
        "params": params,
    }

    if isinstance(body, JobSpec):
        _kwargs["json"] = body.to_dict()

        headers["Content-Type"] = "application/json"
    if isinstance(body, File):
        _kwargs["content"] = body.payload
        headers["Content-Type"] = "text/x-shellscript"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | SubmittedJob:
    if response.status_code == 201:
        response_201 = SubmittedJob.from_dict(response.json())

        return response_201

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | SubmittedJob]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: JobSpec | File | Unset = UNSET,
    tenant: str | Unset = UNSET,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[Problem | SubmittedJob]:
    """Submit a job, as JSON or as a batch script (`Content-Type: text/x-shellscript`). When this answers,
    the job is on disk.

     With a script, each further query parameter is an sbatch option that wins over the script's own:
    `?time=10&partition=h100`.

    Args:
        tenant (str | Unset):
        idempotency_key (None | str | Unset):
        body (JobSpec): A job to submit. It has either a `script`, run once on the first node (its
            `srun` lines open parallel steps), or a
            `command`, run once for each task on all nodes.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SubmittedJob]
    """

    kwargs = _get_kwargs(
        body=body,
        tenant=tenant,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: JobSpec | File | Unset = UNSET,
    tenant: str | Unset = UNSET,
    idempotency_key: None | str | Unset = UNSET,
) -> Problem | SubmittedJob | None:
    """Submit a job, as JSON or as a batch script (`Content-Type: text/x-shellscript`). When this answers,
    the job is on disk.

     With a script, each further query parameter is an sbatch option that wins over the script's own:
    `?time=10&partition=h100`.

    Args:
        tenant (str | Unset):
        idempotency_key (None | str | Unset):
        body (JobSpec): A job to submit. It has either a `script`, run once on the first node (its
            `srun` lines open parallel steps), or a
            `command`, run once for each task on all nodes.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SubmittedJob
    """

    return sync_detailed(
        client=client,
        body=body,
        tenant=tenant,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: JobSpec | File | Unset = UNSET,
    tenant: str | Unset = UNSET,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[Problem | SubmittedJob]:
    """Submit a job, as JSON or as a batch script (`Content-Type: text/x-shellscript`). When this answers,
    the job is on disk.

     With a script, each further query parameter is an sbatch option that wins over the script's own:
    `?time=10&partition=h100`.

    Args:
        tenant (str | Unset):
        idempotency_key (None | str | Unset):
        body (JobSpec): A job to submit. It has either a `script`, run once on the first node (its
            `srun` lines open parallel steps), or a
            `command`, run once for each task on all nodes.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SubmittedJob]
    """

    kwargs = _get_kwargs(
        body=body,
        tenant=tenant,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: JobSpec | File | Unset = UNSET,
    tenant: str | Unset = UNSET,
    idempotency_key: None | str | Unset = UNSET,
) -> Problem | SubmittedJob | None:
    """Submit a job, as JSON or as a batch script (`Content-Type: text/x-shellscript`). When this answers,
    the job is on disk.

     With a script, each further query parameter is an sbatch option that wins over the script's own:
    `?time=10&partition=h100`.

    Args:
        tenant (str | Unset):
        idempotency_key (None | str | Unset):
        body (JobSpec): A job to submit. It has either a `script`, run once on the first node (its
            `srun` lines open parallel steps), or a
            `command`, run once for each task on all nodes.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SubmittedJob
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            tenant=tenant,
            idempotency_key=idempotency_key,
        )
    ).parsed
