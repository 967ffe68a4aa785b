from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.shares import Shares
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    account: str | Unset = UNSET,
    user: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["account"] = account

    params["user"] = user

    params["tenant"] = tenant

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/shares",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | Shares:
    if response.status_code == 200:
        response_200 = Shares.from_dict(response.json())

        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | Shares]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    account: str | Unset = UNSET,
    user: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> Response[Problem | Shares]:
    """The tree of shares with usage and fair-share factors; of the caller's tenant, or of all for
    administrators of the platform.

    Args:
        account (str | Unset):
        user (str | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Shares]
    """

    kwargs = _get_kwargs(
        account=account,
        user=user,
        tenant=tenant,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    account: str | Unset = UNSET,
    user: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> Problem | Shares | None:
    """The tree of shares with usage and fair-share factors; of the caller's tenant, or of all for
    administrators of the platform.

    Args:
        account (str | Unset):
        user (str | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Shares
    """

    return sync_detailed(
        client=client,
        account=account,
        user=user,
        tenant=tenant,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    account: str | Unset = UNSET,
    user: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> Response[Problem | Shares]:
    """The tree of shares with usage and fair-share factors; of the caller's tenant, or of all for
    administrators of the platform.

    Args:
        account (str | Unset):
        user (str | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Shares]
    """

    kwargs = _get_kwargs(
        account=account,
        user=user,
        tenant=tenant,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    account: str | Unset = UNSET,
    user: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> Problem | Shares | None:
    """The tree of shares with usage and fair-share factors; of the caller's tenant, or of all for
    administrators of the platform.

    Args:
        account (str | Unset):
        user (str | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Shares
    """

    return (
        await asyncio_detailed(
            client=client,
            account=account,
            user=user,
            tenant=tenant,
        )
    ).parsed
