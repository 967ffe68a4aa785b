from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.partition import Partition
from ...models.partitions_update_body import PartitionsUpdateBody
from ...models.problem import Problem
from ...types import Response


def _get_kwargs(
    partition: str,
    *,
    body: PartitionsUpdateBody,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/v1/partitions/{partition}".format(
            partition=quote(str(partition), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Partition | Problem:
    if response.status_code == 200:
        response_200 = Partition.from_dict(response.json())

        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Partition | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    partition: str,
    *,
    client: AuthenticatedClient | Client,
    body: PartitionsUpdateBody,
) -> Response[Partition | Problem]:
    """Change a partition (a merge patch: `null` takes a field back to its default).

    Args:
        partition (str):
        body (PartitionsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Partition | Problem]
    """

    kwargs = _get_kwargs(
        partition=partition,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    partition: str,
    *,
    client: AuthenticatedClient | Client,
    body: PartitionsUpdateBody,
) -> Partition | Problem | None:
    """Change a partition (a merge patch: `null` takes a field back to its default).

    Args:
        partition (str):
        body (PartitionsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Partition | Problem
    """

    return sync_detailed(
        partition=partition,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    partition: str,
    *,
    client: AuthenticatedClient | Client,
    body: PartitionsUpdateBody,
) -> Response[Partition | Problem]:
    """Change a partition (a merge patch: `null` takes a field back to its default).

    Args:
        partition (str):
        body (PartitionsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Partition | Problem]
    """

    kwargs = _get_kwargs(
        partition=partition,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    partition: str,
    *,
    client: AuthenticatedClient | Client,
    body: PartitionsUpdateBody,
) -> Partition | Problem | None:
    """Change a partition (a merge patch: `null` takes a field back to its default).

    Args:
        partition (str):
        body (PartitionsUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Partition | Problem
    """

    return (
        await asyncio_detailed(
            partition=partition,
            client=client,
            body=body,
        )
    ).parsed
