"""Sends requests to whichever replica of the service answers, and repeats those that may be repeated.

A request may be repeated if it reads or carries an idempotency key. One that no server has received may be repeated always.
"""

import time

import httpx

from .errors import Unreachable

#: Base address of requests; the transport puts a server's in its place.
PLACEHOLDER = "http://berth"
#: Times that all servers are tried, and the wait after the first.
ROUNDS = 4
FIRST_WAIT_SECONDS = 0.2


class Replicas(httpx.BaseTransport):
    def __init__(self, servers: list[str]) -> None:
        self._servers = [httpx.URL(server) for server in servers]
        self._inner = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        is_repeatable = request.method in ("GET", "HEAD") or "Idempotency-Key" in request.headers
        unavailable: httpx.Response | None = None
        cause: Exception | None = None
        for attempt in range(ROUNDS):
            if attempt > 0:
                time.sleep(FIRST_WAIT_SECONDS * 2 ** (attempt - 1))
            for server in self._servers:
                try:
                    response = self._inner.handle_request(at(server, request))
                    if response.status_code != 503 or not is_repeatable:
                        return response
                    response.read()
                    response.close()
                    unavailable = response
                except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                    cause = error
                except (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError) as error:
                    if not is_repeatable:
                        raise Unreachable(f"{server}: {error or type(error).__name__}; whether it was done is not known") from error
                    cause = error
        if unavailable is not None:
            return unavailable
        names = ", ".join(str(server) for server in self._servers)
        raise Unreachable(f"the service cannot be reached at {names}: {cause or type(cause).__name__}") from cause

    def close(self) -> None:
        self._inner.close()


def at(server: httpx.URL, request: httpx.Request) -> httpx.Request:
    """The same request, addressed to `server`."""
    path = server.raw_path.rstrip(b"/") + request.url.raw_path
    headers = httpx.Headers(request.headers)
    headers["Host"] = server.netloc.decode("ascii")
    return httpx.Request(
        request.method, server.copy_with(raw_path=path), headers=headers, stream=request.stream, extensions=request.extensions
    )
