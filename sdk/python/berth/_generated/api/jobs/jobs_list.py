import datetime
from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.job_state import JobState
from ...models.page_job import PageJob
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    state: list[JobState] | Unset = UNSET,
    account: list[str] | Unset = UNSET,
    partition: list[str] | Unset = UNSET,
    qos: list[str] | Unset = UNSET,
    user: list[str] | Unset = UNSET,
    name: list[str] | Unset = UNSET,
    label: list[str] | Unset = UNSET,
    node: str | Unset = UNSET,
    array_job_id: int | Unset = UNSET,
    het_job_id: int | Unset = UNSET,
    submitted_after: datetime.datetime | Unset = UNSET,
    submitted_before: datetime.datetime | Unset = UNSET,
    order_by: str | Unset = UNSET,
    page_size: int | Unset = UNSET,
    page_token: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_state: list[str] | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = []
        for state_item_data in state:
            state_item = state_item_data.value
            json_state.append(state_item)

    params["state"] = json_state

    json_account: list[str] | Unset = UNSET
    if not isinstance(account, Unset):
        json_account = account

    params["account"] = json_account

    json_partition: list[str] | Unset = UNSET
    if not isinstance(partition, Unset):
        json_partition = partition

    params["partition"] = json_partition

    json_qos: list[str] | Unset = UNSET
    if not isinstance(qos, Unset):
        json_qos = qos

    params["qos"] = json_qos

    json_user: list[str] | Unset = UNSET
    if not isinstance(user, Unset):
        json_user = user

    params["user"] = json_user

    json_name: list[str] | Unset = UNSET
    if not isinstance(name, Unset):
        json_name = name

    params["name"] = json_name

    json_label: list[str] | Unset = UNSET
    if not isinstance(label, Unset):
        json_label = label

    params["label"] = json_label

    params["node"] = node

    params["array_job_id"] = array_job_id

    params["het_job_id"] = het_job_id

    json_submitted_after: str | Unset = UNSET
    if not isinstance(submitted_after, Unset):
        json_submitted_after = submitted_after.isoformat()
    params["submitted_after"] = json_submitted_after

    json_submitted_before: str | Unset = UNSET
    if not isinstance(submitted_before, Unset):
        json_submitted_before = submitted_before.isoformat()
    params["submitted_before"] = json_submitted_before

    params["order_by"] = order_by

    params["page_size"] = page_size

    params["page_token"] = page_token

    params["tenant"] = tenant

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/jobs",
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> PageJob | Problem:
    if response.status_code == 200:
        response_200 = PageJob.from_dict(response.json())

        return response_200

    response_default = Problem.from_dict(response.json())

    return response_default


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[PageJob | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    state: list[JobState] | Unset = UNSET,
    account: list[str] | Unset = UNSET,
    partition: list[str] | Unset = UNSET,
    qos: list[str] | Unset = UNSET,
    user: list[str] | Unset = UNSET,
    name: list[str] | Unset = UNSET,
    label: list[str] | Unset = UNSET,
    node: str | Unset = UNSET,
    array_job_id: int | Unset = UNSET,
    het_job_id: int | Unset = UNSET,
    submitted_after: datetime.datetime | Unset = UNSET,
    submitted_before: datetime.datetime | Unset = UNSET,
    order_by: str | Unset = UNSET,
    page_size: int | Unset = UNSET,
    page_token: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> Response[PageJob | Problem]:
    """List jobs.

    Args:
        state (list[JobState] | Unset):
        account (list[str] | Unset):
        partition (list[str] | Unset):
        qos (list[str] | Unset):
        user (list[str] | Unset):
        name (list[str] | Unset):
        label (list[str] | Unset):
        node (str | Unset):
        array_job_id (int | Unset):
        het_job_id (int | Unset):
        submitted_after (datetime.datetime | Unset):
        submitted_before (datetime.datetime | Unset):
        order_by (str | Unset):
        page_size (int | Unset):
        page_token (str | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PageJob | Problem]
    """

    kwargs = _get_kwargs(
        state=state,
        account=account,
        partition=partition,
        qos=qos,
        user=user,
        name=name,
        label=label,
        node=node,
        array_job_id=array_job_id,
        het_job_id=het_job_id,
        submitted_after=submitted_after,
        submitted_before=submitted_before,
        order_by=order_by,
        page_size=page_size,
        page_token=page_token,
        tenant=tenant,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    state: list[JobState] | Unset = UNSET,
    account: list[str] | Unset = UNSET,
    partition: list[str] | Unset = UNSET,
    qos: list[str] | Unset = UNSET,
    user: list[str] | Unset = UNSET,
    name: list[str] | Unset = UNSET,
    label: list[str] | Unset = UNSET,
    node: str | Unset = UNSET,
    array_job_id: int | Unset = UNSET,
    het_job_id: int | Unset = UNSET,
    submitted_after: datetime.datetime | Unset = UNSET,
    submitted_before: datetime.datetime | Unset = UNSET,
    order_by: str | Unset = UNSET,
    page_size: int | Unset = UNSET,
    page_token: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> PageJob | Problem | None:
    """List jobs.

    Args:
        state (list[JobState] | Unset):
        account (list[str] | Unset):
        partition (list[str] | Unset):
        qos (list[str] | Unset):
        user (list[str] | Unset):
        name (list[str] | Unset):
        label (list[str] | Unset):
        node (str | Unset):
        array_job_id (int | Unset):
        het_job_id (int | Unset):
        submitted_after (datetime.datetime | Unset):
        submitted_before (datetime.datetime | Unset):
        order_by (str | Unset):
        page_size (int | Unset):
        page_token (str | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PageJob | Problem
    """

    return sync_detailed(
        client=client,
        state=state,
        account=account,
        partition=partition,
        qos=qos,
        user=user,
        name=name,
        label=label,
        node=node,
        array_job_id=array_job_id,
        het_job_id=het_job_id,
        submitted_after=submitted_after,
        submitted_before=submitted_before,
        order_by=order_by,
        page_size=page_size,
        page_token=page_token,
        tenant=tenant,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    state: list[JobState] | Unset = UNSET,
    account: list[str] | Unset = UNSET,
    partition: list[str] | Unset = UNSET,
    qos: list[str] | Unset = UNSET,
    user: list[str] | Unset = UNSET,
    name: list[str] | Unset = UNSET,
    label: list[str] | Unset = UNSET,
    node: str | Unset = UNSET,
    array_job_id: int | Unset = UNSET,
    het_job_id: int | Unset = UNSET,
    submitted_after: datetime.datetime | Unset = UNSET,
    submitted_before: datetime.datetime | Unset = UNSET,
    order_by: str | Unset = UNSET,
    page_size: int | Unset = UNSET,
    page_token: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> Response[PageJob | Problem]:
    """List jobs.

    Args:
        state (list[JobState] | Unset):
        account (list[str] | Unset):
        partition (list[str] | Unset):
        qos (list[str] | Unset):
        user (list[str] | Unset):
        name (list[str] | Unset):
        label (list[str] | Unset):
        node (str | Unset):
        array_job_id (int | Unset):
        het_job_id (int | Unset):
        submitted_after (datetime.datetime | Unset):
        submitted_before (datetime.datetime | Unset):
        order_by (str | Unset):
        page_size (int | Unset):
        page_token (str | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PageJob | Problem]
    """

    kwargs = _get_kwargs(
        state=state,
        account=account,
        partition=partition,
        qos=qos,
        user=user,
        name=name,
        label=label,
        node=node,
        array_job_id=array_job_id,
        het_job_id=het_job_id,
        submitted_after=submitted_after,
        submitted_before=submitted_before,
        order_by=order_by,
        page_size=page_size,
        page_token=page_token,
        tenant=tenant,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    state: list[JobState] | Unset = UNSET,
    account: list[str] | Unset = UNSET,
    partition: list[str] | Unset = UNSET,
    qos: list[str] | Unset = UNSET,
    user: list[str] | Unset = UNSET,
    name: list[str] | Unset = UNSET,
    label: list[str] | Unset = UNSET,
    node: str | Unset = UNSET,
    array_job_id: int | Unset = UNSET,
    het_job_id: int | Unset = UNSET,
    submitted_after: datetime.datetime | Unset = UNSET,
    submitted_before: datetime.datetime | Unset = UNSET,
    order_by: str | Unset = UNSET,
    page_size: int | Unset = UNSET,
    page_token: str | Unset = UNSET,
    tenant: str | Unset = UNSET,
) -> PageJob | Problem | None:
    """List jobs.

    Args:
        state (list[JobState] | Unset):
        account (list[str] | Unset):
        partition (list[str] | Unset):
        qos (list[str] | Unset):
        user (list[str] | Unset):
        name (list[str] | Unset):
        label (list[str] | Unset):
        node (str | Unset):
        array_job_id (int | Unset):
        het_job_id (int | Unset):
        submitted_after (datetime.datetime | Unset):
        submitted_before (datetime.datetime | Unset):
        order_by (str | Unset):
        page_size (int | Unset):
        page_token (str | Unset):
        tenant (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PageJob | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            state=state,
            account=account,
            partition=partition,
            qos=qos,
            user=user,
            name=name,
            label=label,
            node=node,
            array_job_id=array_job_id,
            het_job_id=het_job_id,
            submitted_after=submitted_after,
            submitted_before=submitted_before,
            order_by=order_by,
            page_size=page_size,
            page_token=page_token,
            tenant=tenant,
        )
    ).parsed
