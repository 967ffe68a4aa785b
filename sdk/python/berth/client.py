"""The way in: which service, as whom, and the resources it has."""

import os
from pathlib import Path

import httpx

from ._generated.client import Client as Generated
from .errors import raise_problem
from .jobs import Jobs
from .nodes import Nodes
from .transport import PLACEHOLDER, Replicas

DEFAULT_SERVER = "http://127.0.0.1:6780"


class Client:
    """A client of one Berth service; safe to share between threads.

    `server` is the service's address, or those of several replicas with commas between; without it `BERTH_SERVER` holds, then
    http://127.0.0.1:6780. `token` is the bearer token; without it `BERTH_TOKEN` holds, then the content of the file that
    `BERTH_TOKEN_FILE` names.
    """

    def __init__(self, server: str | None = None, token: str | None = None) -> None:
        servers = [part.strip() for part in (server or os.environ.get("BERTH_SERVER") or DEFAULT_SERVER).split(",") if part.strip()]
        if not servers:
            raise ValueError("no server is named; give server or set BERTH_SERVER")
        token = token or token_of_environment()
        http = httpx.Client(
            base_url=PLACEHOLDER,
            transport=Replicas(servers),
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(60, connect=3),
            event_hooks={"response": [raise_problem]},
        )
        #: For the operations in `berth._generated.api` that have no method here.
        self.generated = Generated(base_url=PLACEHOLDER).set_httpx_client(http)
        self.jobs = Jobs(self.generated)
        self.nodes = Nodes(self.generated)

    def close(self) -> None:
        self.generated.get_httpx_client().close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def token_of_environment() -> str | None:
    if token := os.environ.get("BERTH_TOKEN", "").strip():
        return token
    if path := os.environ.get("BERTH_TOKEN_FILE"):
        return Path(path).read_text(encoding="utf-8").strip()
    return None
