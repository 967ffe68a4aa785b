from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.dry_run_answer import DryRunAnswer
from ...models.job_spec import JobSpec
from ...models.problem import Problem
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    *,
    body: JobSpec | File | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["tenant"] = tenant

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/jobs:dryRun",
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


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> DryRunAnswer | Problem:
    if response.status_code == 200:
        response_200 = DryRunAnswer.from_dict(response.json())

        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[DryRunAnswer | Problem]:
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
) -> Response[DryRunAnswer | Problem]:
    """When and where would it start? Takes what a submission takes and refuses what a submission refuses,
    but submits nothing.

    Args:
        tenant (str | Unset):
        body (JobSpec): A job to submit. It has either a `script`, run once on the first node (its
            `srun` lines open parallel steps), or a
            `command`, run once for each task on all nodes.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DryRunAnswer | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
        tenant=tenant,
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
) -> DryRunAnswer | Problem | None:
    """When and where would it start? Takes what a submission takes and refuses what a submission refuses,
    but submits nothing.

    Args:
        tenant (str | Unset):
        body (JobSpec): A job to submit. It has either a `script`, run once on the first node (its
            `srun` lines open parallel steps), or a
            `command`, run once for each task on all nodes.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DryRunAnswer | Problem
    """

    return sync_detailed(
        client=client,
        body=body,
        tenant=tenant,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: JobSpec | File | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> Response[DryRunAnswer | Problem]:
    """When and where would it start? Takes what a submission takes and refuses what a submission refuses,
    but submits nothing.

    Args:
        tenant (str | Unset):
        body (JobSpec): A job to submit. It has either a `script`, run once on the first node (its
            `srun` lines open parallel steps), or a
            `command`, run once for each task on all nodes.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DryRunAnswer | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
        tenant=tenant,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: JobSpec | File | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> DryRunAnswer | Problem | None:
    """When and where would it start? Takes what a submission takes and refuses what a submission refuses,
    but submits nothing.

    Args:
        tenant (str | Unset):
        body (JobSpec): A job to submit. It has either a `script`, run once on the first node (its
            `srun` lines open parallel steps), or a
            `command`, run once for each task on all nodes.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DryRunAnswer | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            tenant=tenant,
        )
    ).parsed
