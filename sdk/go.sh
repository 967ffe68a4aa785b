#!/bin/sh
# Runs go, with a toolchain from the Go module proxy where the machine has none or too old a one.
set -eu

version=go1.25.4

sdk=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
own=$sdk/../target/sdk-tools/go
has_go() {
    minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
    [ "${minor:-0}" -ge 25 ]
}
if ! has_go; then
    PATH=$own/bin:$PATH
    export PATH
    has_go || python3 "$sdk/fetch_go.py" "$version" "$own"
fi
exec go "$@"
