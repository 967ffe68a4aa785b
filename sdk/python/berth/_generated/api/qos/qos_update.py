from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.qos import Qos
from ...models.qos_update_body import QosUpdateBody
from ...types import Response


def _get_kwargs(
    qos: str,
    *,
    body: QosUpdateBody,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/v1/qos/{qos}".format(
            qos=quote(str(qos), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | Qos:
    if response.status_code == 200:
        response_200 = Qos.from_dict(response.json())

        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | Qos]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    qos: str,
    *,
    client: AuthenticatedClient | Client,
    body: QosUpdateBody,
) -> Response[Problem | Qos]:
    """Change a qos (a merge patch: `null` takes a field back to its default).

    Args:
        qos (str):
        body (QosUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Qos]
    """

    kwargs = _get_kwargs(
        qos=qos,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    qos: str,
    *,
    client: AuthenticatedClient | Client,
    body: QosUpdateBody,
) -> Problem | Qos | None:
    """Change a qos (a merge patch: `null` takes a field back to its default).

    Args:
        qos (str):
        body (QosUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Qos
    """

    return sync_detailed(
        qos=qos,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    qos: str,
    *,
    client: AuthenticatedClient | Client,
    body: QosUpdateBody,
) -> Response[Problem | Qos]:
    """Change a qos (a merge patch: `null` takes a field back to its default).

    Args:
        qos (str):
        body (QosUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | Qos]
    """

    kwargs = _get_kwargs(
        qos=qos,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    qos: str,
    *,
    client: AuthenticatedClient | Client,
    body: QosUpdateBody,
) -> Problem | Qos | None:
    """Change a qos (a merge patch: `null` takes a field back to its default).

    Args:
        qos (str):
        body (QosUpdateBody):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | Qos
    """

    return (
        await asyncio_detailed(
            qos=qos,
            client=client,
            body=body,
        )
    ).parsed
