from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.license_ import License
from ...models.license_state import LicenseState
from ...models.problem import Problem
from ...types import Response


def _get_kwargs(
    license_: str,
    *,
    body: License,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/v1/licenses/{license_}".format(
            license_=quote(str(license_), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> LicenseState | Problem:
    if response.status_code == 200:
        response_200 = LicenseState.from_dict(response.json())

        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[LicenseState | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    license_: str,
    *,
    client: AuthenticatedClient | Client,
    body: License,
) -> Response[LicenseState | Problem]:
    """Create or replace a licence.

    Args:
        license_ (str):
        body (License): A licence, and how many of it there are.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LicenseState | Problem]
    """

    kwargs = _get_kwargs(
        license_=license_,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    license_: str,
    *,
    client: AuthenticatedClient | Client,
    body: License,
) -> LicenseState | Problem | None:
    """Create or replace a licence.

    Args:
        license_ (str):
        body (License): A licence, and how many of it there are.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LicenseState | Problem
    """

    return sync_detailed(
        license_=license_,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    license_: str,
    *,
    client: AuthenticatedClient | Client,
    body: License,
) -> Response[LicenseState | Problem]:
    """Create or replace a licence.

    Args:
        license_ (str):
        body (License): A licence, and how many of it there are.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LicenseState | Problem]
    """

    kwargs = _get_kwargs(
        license_=license_,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    license_: str,
    *,
    client: AuthenticatedClient | Client,
    body: License,
) -> LicenseState | Problem | None:
    """Create or replace a licence.

    Args:
        license_ (str):
        body (License): A licence, and how many of it there are.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LicenseState | Problem
    """

    return (
        await asyncio_detailed(
            license_=license_,
            client=client,
            body=body,
        )
    ).parsed
