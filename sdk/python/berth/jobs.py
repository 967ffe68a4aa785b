"""Jobs: submit, watch, read their output, and act on them.

A job is named by its number, or by text such as `"1234_7"` for a task of an array.
"""

import builtins
import datetime
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import httpx

from ._generated.api.jobs import jobs_cancel, jobs_explain, jobs_get, jobs_hold, jobs_list, jobs_release, jobs_requeue
from ._generated.api.logs import jobs_logs
from ._generated.client import Client as Generated
from ._generated.models import (
    CancelJob,
    Explanation,
    Job,
    JobDetail,
    JobSpec,
    JobState,
    LogStream,
    RequeueJob,
    SubmittedJob,
)
from ._generated.types import UNSET, Unset
from .errors import Unreachable, success

JobRef = int | str
OneOrMore = str | Iterable[str]

LIVE = frozenset({JobState.PENDING, JobState.ALLOCATED, JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING})
#: States in which a job stays for good.
ENDED = frozenset(JobState) - LIVE

FIRST_POLL_SECONDS = 0.1
LAST_POLL_SECONDS = 2.0


class Jobs:
    def __init__(self, generated: Generated) -> None:
        self._generated = generated
        self._http = generated.get_httpx_client()

    def submit(self, job: JobSpec | Mapping[str, Any] | str, *, idempotency_key: str | None = None) -> SubmittedJob:
        """Submits a job: a spec, or the text of a batch script. When this returns, the job is on disk.

        A dict is sent as it is and the service checks it, so its short forms work too: `{"resources": {"gpus": "h100:8"}}`.
        The request is repeated if need be, and yet makes one job. Give an `idempotency_key` of your own to make that hold across
        calls.
        """
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        if isinstance(job, str):
            headers["Content-Type"] = "text/x-shellscript"
            response = self._http.post("/v1/jobs", content=job.encode(), headers=headers)
        else:
            spec = job.to_dict() if isinstance(job, JobSpec) else dict(job)
            response = self._http.post("/v1/jobs", json=spec, headers=headers)
        return SubmittedJob.from_dict(response.json())

    def get(self, job_id: JobRef) -> JobDetail:
        return success(jobs_get.sync(str(job_id), client=self._generated))

    def list(
        self,
        *,
        state: OneOrMore | None = None,
        account: OneOrMore | None = None,
        partition: OneOrMore | None = None,
        qos: OneOrMore | None = None,
        user: OneOrMore | None = None,
        name: OneOrMore | None = None,
        label: OneOrMore | None = None,
        node: str | None = None,
        array_job_id: int | None = None,
        submitted_after: datetime.datetime | None = None,
        submitted_before: datetime.datetime | None = None,
        order_by: str | None = None,
        page_size: int | None = None,
        tenant: str | None = None,
    ) -> Iterator[Job]:
        """The jobs that match, read page by page; the newest first unless `order_by` says otherwise."""
        states = many(state)
        token: str | None = None
        while True:
            answer = jobs_list.sync(
                client=self._generated,
                state=states if isinstance(states, Unset) else [JobState(one) for one in states],
                account=many(account),
                partition=many(partition),
                qos=many(qos),
                user=many(user),
                name=many(name),
                label=many(label),
                node=given(node),
                array_job_id=given(array_job_id),
                submitted_after=given(submitted_after),
                submitted_before=given(submitted_before),
                order_by=given(order_by),
                page_size=given(page_size),
                page_token=given(token),
                tenant=given(tenant),
            )
            page = success(answer)
            yield from page.items
            token = page.next_page_token or None
            if token is None:
                return

    def wait(self, job_id: JobRef, timeout: float | None = None) -> JobDetail:
        """Waits until the job has ended, however it did; a requeued job has not. `TimeoutError` after `timeout` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_POLL_SECONDS
        while True:
            job = self.get(job_id)
            if job.state in ENDED:
                return job
            if until is not None:
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"job {job_id} is still {job.state} after {timeout} seconds")
                pause = min(pause, left)
            time.sleep(pause)
            pause = min(pause * 1.5, LAST_POLL_SECONDS)

    def logs(
        self,
        job_id: JobRef,
        *,
        stream: str = "stdout",
        step: int | str | None = None,
        task: int | None = None,
        attempt: int | None = None,
        tail: int | None = None,
    ) -> str:
        """What a task has written so far, all of it or the last `tail` bytes. Bytes that are not UTF-8 are replaced.

        `step` is a number or `"batch"`; without it the job's main step is read, without `task` task 0, without `attempt` the last.
        """
        pieces: builtins.list[bytes] = []
        offset = 0
        while True:
            answer = jobs_logs.sync_detailed(
                str(job_id),
                client=self._generated,
                stream=LogStream(stream),
                step=given(None if step is None else str(step)),
                task=given(task),
                attempt=given(attempt),
                offset=UNSET if tail is not None else offset,
                tail=given(tail),
            )
            pieces.append(answer.content)
            if tail is not None or not answer.content:
                return b"".join(pieces).decode(errors="replace")
            offset = int(answer.headers["X-Next-Offset"])

    def follow(self, job_id: JobRef, *, step: int | str | None = None) -> Iterator[dict[str, Any]]:
        """The job's output as it is written, from the start to the job's end.

        Each event is a dict with a `type`: `output` has `task`, `stream` and `text`, `exit` tells of a task's end, and `end`, which
        comes last, has the job's `state` and `exit_code`. A requeued job is followed no further. `Unreachable` if the connection
        breaks.
        """
        params = {} if step is None else {"step": str(step)}
        try:
            with self._http.stream("GET", f"/v1/jobs/{job_id}/logs/follow", params=params) as response:
                for data in server_sent(response.iter_lines()):
                    event = json.loads(data)
                    yield event
                    if event["type"] == "end":
                        return
        except httpx.TransportError as error:
            raise Unreachable(f"the connection broke while job {job_id} was followed: {error}") from error
        raise Unreachable(f"the service ended the stream before job {job_id} did")

    def cancel(self, job_id: JobRef, *, grace_seconds: int | None = None) -> Job:
        """Cancels the job: a pending one ends at once, a running one after its grace time. One that has ended stays as it is."""
        return success(jobs_cancel.sync(str(job_id), client=self._generated, body=CancelJob(grace_seconds=given(grace_seconds))))

    def hold(self, job_id: JobRef) -> Job:
        """Keeps a pending job from starting until it is released."""
        return success(jobs_hold.sync(str(job_id), client=self._generated))

    def release(self, job_id: JobRef) -> Job:
        return success(jobs_release.sync(str(job_id), client=self._generated))

    def requeue(self, job_id: JobRef, *, hold: bool = False) -> Job:
        """Stops a running job and puts it back into the queue, held if `hold`."""
        return success(jobs_requeue.sync(str(job_id), client=self._generated, body=RequeueJob(hold=hold)))

    def explain(self, job_id: JobRef) -> Explanation:
        """Why the job is where it is: all that holds it, the binding reason first, and when it is planned to start."""
        return success(jobs_explain.sync(str(job_id), client=self._generated))


def given(value: Any) -> Any:
    """A parameter for a generated operation, which leaves out what is `UNSET`."""
    return UNSET if value is None else value


def many(value: OneOrMore | None) -> builtins.list[str] | Unset:
    if value is None:
        return UNSET
    return [value] if isinstance(value, str) else [str(one) for one in value]


def server_sent(lines: Iterable[str]) -> Iterator[str]:
    """The data of each server-sent event. Comments keep the connection alive; the service uses no other fields."""
    data: builtins.list[str] = []
    for line in lines:
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data.clear()
