#!/bin/sh
# Runs both SDKs' tests and examples against the service that BERTH_SERVER and BERTH_TOKEN name. Needs Python 3.11 with venv; a Go that
# is missing or too old is taken from the Go module proxy.
set -eu

sdk=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tools=$sdk/../target/sdk-tools
mkdir -p "$tools"
tools=$(CDPATH='' cd -- "$tools" && pwd)

if ! "$tools/test/bin/python" -c 'import attrs, httpx' 2>/dev/null; then
    rm -rf "$tools/test"
    python3 -m venv "$tools/test"
    "$tools/test/bin/pip" install --quiet --disable-pip-version-check 'httpx==0.28.1' 'attrs==26.1.0'
fi
(cd "$sdk/python" && "$tools/test/bin/python" -m unittest)

(cd "$sdk/go" && "$sdk/go.sh" vet ./... && "$sdk/go.sh" test -count=1 ./...)
