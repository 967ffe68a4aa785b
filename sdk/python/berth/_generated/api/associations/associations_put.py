from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.association import Association
from ...models.problem import Problem
from ...models.put_association import PutAssociation
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: PutAssociation,
    tenant: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["tenant"] = tenant

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/v1/associations",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Association | Problem:
    if response.status_code == 200:
        response_200 = Association.from_dict(response.json())

        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Association | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: PutAssociation,
    tenant: str | Unset = UNSET,
) -> Response[Association | Problem]:
    """Let a user charge an account, with a share and limits. Tenant admins, and managers for their
    accounts.

    Args:
        tenant (str | Unset):
        body (PutAssociation):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Association | Problem]
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
    body: PutAssociation,
    tenant: str | Unset = UNSET,
) -> Association | Problem | None:
    """Let a user charge an account, with a share and limits. Tenant admins, and managers for their
    accounts.

    Args:
        tenant (str | Unset):
        body (PutAssociation):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Association | Problem
    """

    return sync_detailed(
        client=client,
        body=body,
        tenant=tenant,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: PutAssociation,
    tenant: str | Unset = UNSET,
) -> Response[Association | Problem]:
    """Let a user charge an account, with a share and limits. Tenant admins, and managers for their
    accounts.

    Args:
        tenant (str | Unset):
        body (PutAssociation):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Association | Problem]
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
    body: PutAssociation,
    tenant: str | Unset = UNSET,
) -> Association | Problem | None:
    """Let a user charge an account, with a share and limits. Tenant admins, and managers for their
    accounts.

    Args:
        tenant (str | Unset):
        body (PutAssociation):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Association | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            tenant=tenant,
        )
    ).parsed
