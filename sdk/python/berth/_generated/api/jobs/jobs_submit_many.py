from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.submit_many import SubmitMany
from ...models.submitted_jobs import SubmittedJobs
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: SubmitMany,
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
        "url": "/v1/jobs:submitMany",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | SubmittedJobs:
    if response.status_code == 201:
        response_201 = SubmittedJobs.from_dict(response.json())

        return response_201

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | SubmittedJobs]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: SubmitMany,
    tenant: str | Unset = UNSET,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[Problem | SubmittedJobs]:
    """Submit many jobs in one call: JSON `{"jobs": […]}`, or one spec a line (`application/x-ndjson`). All
    are taken or none.

    Args:
        tenant (str | Unset):
        idempotency_key (None | str | Unset):
        body (SubmitMany):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SubmittedJobs]
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
    body: SubmitMany,
    tenant: str | Unset = UNSET,
    idempotency_key: None | str | Unset = UNSET,
) -> Problem | SubmittedJobs | None:
    """Submit many jobs in one call: JSON `{"jobs": […]}`, or one spec a line (`application/x-ndjson`). All
    are taken or none.

    Args:
        tenant (str | Unset):
        idempotency_key (None | str | Unset):
        body (SubmitMany):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SubmittedJobs
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
    body: SubmitMany,
    tenant: str | Unset = UNSET,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[Problem | SubmittedJobs]:
    """Submit many jobs in one call: JSON `{"jobs": […]}`, or one spec a line (`application/x-ndjson`). All
    are taken or none.

    Args:
        tenant (str | Unset):
        idempotency_key (None | str | Unset):
        body (SubmitMany):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SubmittedJobs]
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
    body: SubmitMany,
    tenant: str | Unset = UNSET,
    idempotency_key: None | str | Unset = UNSET,
) -> Problem | SubmittedJobs | None:
    """Submit many jobs in one call: JSON `{"jobs": […]}`, or one spec a line (`application/x-ndjson`). All
    are taken or none.

    Args:
        tenant (str | Unset):
        idempotency_key (None | str | Unset):
        body (SubmitMany):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SubmittedJobs
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            tenant=tenant,
            idempotency_key=idempotency_key,
        )
    ).parsed
