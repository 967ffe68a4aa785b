"""What goes wrong: the service refuses (`ApiError`), or no server answers (`Unreachable`)."""

from typing import Any, TypeVar

import httpx

from ._generated.models import Problem

T = TypeVar("T")


class ApiError(Exception):
    """The service's answer to a request that it refused or could not do."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        #: Stable identifier, for programs.
        self.code: str = problem.get("code") or f"http_{status}"
        #: What was found.
        self.detail: str = problem.get("detail") or f"the service answered {status}"
        #: The field of the request that it concerns, if one does.
        self.field: str | None = problem.get("field")
        #: What would be right.
        self.help: str | None = problem.get("help")
        #: All faults, when there is more than one; each has `code`, `field`, `detail`, `help` and perhaps `line`.
        self.errors: list[dict[str, Any]] = problem.get("errors") or []
        self.request_id: str | None = problem.get("request_id")
        super().__init__(status, problem)

    def __str__(self) -> str:
        field = f" ({self.field})" if self.field else ""
        help = f"\n  {self.help}" if self.help else ""
        return f"{self.detail}{field}{help}"


class Unreachable(ConnectionError):
    """No server answered, or one fell silent before its answer was whole."""


def raise_problem(response: httpx.Response) -> None:
    """Raises `ApiError` for any answer that is not a success."""
    if response.is_success:
        return
    response.read()
    try:
        problem = response.json()
    except ValueError:  # not from Berth: a proxy's page, for example
        problem = None
    raise ApiError(response.status_code, problem if isinstance(problem, dict) else {})


def success(answer: T | Problem | None) -> T:
    """The answer of a generated operation. Problems have been raised before, by `raise_problem`."""
    if answer is None or isinstance(answer, Problem):
        raise AssertionError("a problem was answered with the status of a success")
    return answer
