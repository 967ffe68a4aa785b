#!/bin/sh
# Throws generated requests, good and bad, at the service that BERTH_SERVER and BERTH_TOKEN name, and checks each answer against its own
# OpenAPI document: no 5xx, and nothing that the document does not describe. Needs Python 3.11 with venv and its package index.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tools=$root/target/fuzz-tools
if ! "$tools/bin/schemathesis" --version 2>/dev/null | grep -q '4\.32\.5'; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check schemathesis==4.32.5
fi
# Away from the checkout: it keeps a database of examples where it runs.
cd "$(mktemp -d)"
# The workers' protocol wants nodes' tokens, and a stream of events does not end.
exec "$tools/bin/schemathesis" run "$BERTH_SERVER/openapi.json" --header "Authorization: Bearer $BERTH_TOKEN" \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance \
    --exclude-tag worker --exclude-operation-id jobs_logs_follow \
    --phases examples,coverage,fuzzing --max-examples "${MAX_EXAMPLES:-15}" --seed 1 --workers 2 --request-timeout 10 --no-color
