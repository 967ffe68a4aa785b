#!/bin/sh
# Runs both SDKs' tests and examples against the service that BERTH_SERVER and BERTH_TOKEN name. Needs Python 3.11 with venv; a Go that
# is missing or too old is taken from the Go module proxy.
set -eu

go_version=go1.24.4

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

has_go() {
    minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
    [ "${minor:-0}" -ge 24 ]
}
if ! has_go; then
    PATH=$tools/go/bin:$PATH
    if ! has_go; then
        "$tools/test/bin/python" "$sdk/fetch_go.py" "$go_version" "$tools/go"
    fi
fi
(cd "$sdk/go" && go vet ./... && go test -count=1 ./...)
