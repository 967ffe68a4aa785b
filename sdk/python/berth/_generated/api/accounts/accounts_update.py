from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.account import Account
from ...models.accounts_update_body import AccountsUpdateBody
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    account: str,
    *,
    body: AccountsUpdateBody,
    tenant: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["tenant"] = tenant

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/v1/accounts/{account}".format(
            account=quote(str(account), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Account | Problem:
    if response.status_code == 200:
        response_200 = Account.from_dict(response.json())

        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Account | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    account: str,
    *,
    client: AuthenticatedClient | Client,
    body: AccountsUpdateBody,
    tenant: str | Unset = UNSET,
) -> Response[Account | Problem]:
    """Change an account: its parent, its description, its share, its limits (a merge patch: `null` takes
    back).

    Args:
        account (str):
        tenant (str | Unset):
        body (AccountsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Account | Problem]
    """

    kwargs = _get_kwargs(
        account=account,
        body=body,
        tenant=tenant,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    account: str,
    *,
    client: AuthenticatedClient | Client,
    body: AccountsUpdateBody,
    tenant: str | Unset = UNSET,
) -> Account | Problem | None:
    """Change an account: its parent, its description, its share, its limits (a merge patch: `null` takes
    back).

    Args:
        account (str):
        tenant (str | Unset):
        body (AccountsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Account | Problem
    """

    return sync_detailed(
        account=account,
        client=client,
        body=body,
        tenant=tenant,
    ).parsed


async def asyncio_detailed(
    account: str,
    *,
    client: AuthenticatedClient | Client,
    body: AccountsUpdateBody,
    tenant: str | Unset = UNSET,
) -> Response[Account | Problem]:
    """Change an account: its parent, its description, its share, its limits (a merge patch: `null` takes
    back).

    Args:
        account (str):
        tenant (str | Unset):
        body (AccountsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Account | Problem]
    """

    kwargs = _get_kwargs(
        account=account,
        body=body,
        tenant=tenant,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    account: str,
    *,
    client: AuthenticatedClient | Client,
    body: AccountsUpdateBody,
    tenant: str | Unset = UNSET,
) -> Account | Problem | None:
    """Change an account: its parent, its description, its share, its limits (a merge patch: `null` takes
    back).

    Args:
        account (str):
        tenant (str | Unset):
        body (AccountsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Account | Problem
    """

    return (
        await asyncio_detailed(
            account=account,
            client=client,
            body=body,
            tenant=tenant,
        )
    ).parsed
