"""Prepare the OpenAPI document for the SDK generators.

Input: path of the checked-in document, path to write. The operations tagged `worker` are dropped with every schema that only they
use. Then the document is repaired where the generators need more than it says; each repair does nothing once the document is right.
A reference that leads nowhere after that is an error.
"""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

PRIVATE_TAG = "worker"
SCHEMAS = "#/components/schemas/"
# Schemas that operations refer to, for as long as the document does not define them.
MISSING_SCHEMAS = {"LogStream": {"type": "string", "enum": ["stdout", "stderr"]}}


def nodes(value: Any) -> Iterator[dict]:
    """Every object within `value`, itself included."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from nodes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from nodes(inner)


def references(value: Any) -> set[str]:
    """Names of the schemas that `value` refers to."""
    return {node["$ref"].removeprefix(SCHEMAS) for node in nodes(value) if isinstance(node.get("$ref"), str)}


def operations(document: dict) -> Iterator[dict]:
    for item in document["paths"].values():
        yield from (operation for operation in item.values() if isinstance(operation, dict) and "operationId" in operation)


def drop_private(document: dict) -> None:
    """Removes the operations that are kept out of SDKs, and paths that have none left."""
    for path, item in list(document["paths"].items()):
        for method, operation in list(item.items()):
            if PRIVATE_TAG in operation.get("tags", []):
                del item[method]
        if not item:
            del document["paths"][path]


def describe_responses(document: dict) -> None:
    """OpenAPI requires each response to have a description."""
    for operation in operations(document):
        for status, response in operation["responses"].items():
            response.setdefault("description", "A problem." if status == "default" else "Done.")


def name_values(schemas: dict) -> None:
    """States are snake_case on the wire: `OutOfMemory` in the document is `out_of_memory`."""
    for schema in schemas.values():
        if "enum" in schema:
            schema["enum"] = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value).lower() for value in schema["enum"]]


def share_items(schemas: dict) -> None:
    """A page's items are the named schema, not a copy of it."""
    for name, page in schemas.items():
        item = name.removeprefix("Page_")
        items = page.get("properties", {}).get("items", {})
        if item != name and items.get("items") == schemas.get(item):
            items["items"] = {"$ref": SCHEMAS + item}


def mark_scripts(document: dict) -> None:
    """A body that is not JSON is taken as it is, byte for byte."""
    for operation in operations(document):
        content = operation.get("requestBody", {}).get("content", {})
        # Lines of JSON are for programs without a client; the JSON form of the same request says all of it.
        content.pop("application/x-ndjson", None)
        for media, body in content.items():
            if media != "application/json":
                body["schema"] = {"type": "string", "format": "binary"}


def keep_reachable(document: dict) -> None:
    schemas = document["components"]["schemas"]
    reached: set[str] = set()
    wanted = references(document["paths"])
    while wanted:
        absent = wanted - schemas.keys()
        if absent:
            sys.exit(f"the document refers to schemas that it does not define: {', '.join(sorted(absent))}")
        reached |= wanted
        wanted = set().union(*(references(schemas[name]) for name in wanted)) - reached
    document["components"]["schemas"] = {name: schemas[name] for name in sorted(reached)}


def main() -> None:
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        document = json.load(file)
    schemas = document["components"]["schemas"]
    drop_private(document)
    for name, schema in MISSING_SCHEMAS.items():
        schemas.setdefault(name, schema)
    describe_responses(document)
    name_values(schemas)
    share_items(schemas)
    mark_scripts(document)
    keep_reachable(document)
    with open(target, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)


if __name__ == "__main__":
    main()
