#!/bin/sh
# Regenerates both SDKs from openapi/berth.openapi.json. The result depends on that document and on the versions pinned here and in
# python-generator.txt alone. Needs Python 3.11 or later with venv, and the
# package indexes of Python and Go.
set -eu

oapi_codegen=github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2

sdk=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tools=$sdk/../target/sdk-tools
mkdir -p "$tools"
tools=$(CDPATH='' cd -- "$tools" && pwd)
document=$tools/berth.openapi.json

# The Python generator, in an environment of its own; made anew when its pins change.
if ! cmp -s "$sdk/python-generator.txt" "$tools/generator/pins.txt"; then
    rm -rf "$tools/generator"
    python3 -m venv "$tools/generator"
    "$tools/generator/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$sdk/python-generator.txt"
    cp "$sdk/python-generator.txt" "$tools/generator/pins.txt"
fi

"$tools/generator/bin/python" "$sdk/prepare.py" "$sdk/../openapi/berth.openapi.json" "$document"

# Each client is written beside the old one and takes its place only when it is whole.
rm -rf "$tools/_generated"
PATH=$tools/generator/bin:$PATH openapi-python-client generate --path "$document" --meta none --fail-on-warning \
    --config "$sdk/python-generator.yaml" --output-path "$tools/_generated"

(cd "$tools" && "$sdk/go.sh" run "$oapi_codegen" -config "$sdk/go/oapi-codegen.yaml" -o "$tools/api.gen.go" "$document")

rm -rf "$sdk/python/berth/_generated"
mv "$tools/_generated" "$sdk/python/berth/_generated"
mv "$tools/api.gen.go" "$sdk/go/api/api.gen.go"
