from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.declare_node import DeclareNode
from ...models.node import Node
from ...models.problem import Problem
from ...types import Response


def _get_kwargs(
    *,
    body: DeclareNode,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/nodes",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Node | Problem:
    if response.status_code == 201:
        response_201 = Node.from_dict(response.json())

        return response_201

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Node | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: DeclareNode,
) -> Response[Node | Problem]:
    """Declare a node that does not exist yet, for an autoscaler to make.

    Args:
        body (DeclareNode): A node that does not exist yet. It is powered down, and powered up
            when a job needs it; what its worker then finds holds.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Node | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: DeclareNode,
) -> Node | Problem | None:
    """Declare a node that does not exist yet, for an autoscaler to make.

    Args:
        body (DeclareNode): A node that does not exist yet. It is powered down, and powered up
            when a job needs it; what its worker then finds holds.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Node | Problem
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: DeclareNode,
) -> Response[Node | Problem]:
    """Declare a node that does not exist yet, for an autoscaler to make.

    Args:
        body (DeclareNode): A node that does not exist yet. It is powered down, and powered up
            when a job needs it; what its worker then finds holds.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Node | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: DeclareNode,
) -> Node | Problem | None:
    """Declare a node that does not exist yet, for an autoscaler to make.

    Args:
        body (DeclareNode): A node that does not exist yet. It is powered down, and powered up
            when a job needs it; what its worker then finds holds.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Node | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
