"""Nodes: what the fleet has and what of it is in use."""

from collections.abc import Iterator

from ._generated.api.nodes import nodes_list
from ._generated.client import Client as Generated
from ._generated.models import Node
from ._generated.types import UNSET
from .errors import success


class Nodes:
    def __init__(self, generated: Generated) -> None:
        self._generated = generated

    def list(self, *, page_size: int | None = None) -> Iterator[Node]:
        """All nodes, read page by page."""
        token: str | None = None
        while True:
            answer = nodes_list.sync(client=self._generated, page_size=page_size or UNSET, page_token=token or UNSET)
            page = success(answer)
            yield from page.items
            token = page.next_page_token or None
            if token is None:
                return
