# `make up` runs a whole service on this machine; `make test` passes every test. Both install what Debian lacks first.

.DEFAULT_GOAL := help
.PHONY: help setup build up test lint fmt openapi sdk bench

help:
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: ## install what Debian lacks (needs root)
	./docker/setup.sh

build: setup ## build the release binary, target/release/berth
	cargo build --release --locked -p berth

up: build ## run a whole service here: Postgres, API, scheduler, one node
	./target/release/berth up

test: setup ## run every test
	cargo test --workspace --locked

lint: ## formatting, clippy with warnings as errors, the OpenAPI document, the SDKs
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo run --quiet --locked -p berth -- openapi | diff -u openapi/berth.openapi.json - || { echo "run make openapi and commit the result" >&2; exit 1; }
	./sdk/generate.sh >/dev/null && git diff --exit-code --stat -- sdk || { echo "run make sdk and commit the result" >&2; exit 1; }

openapi: ## write openapi/berth.openapi.json from the code
	cargo run --quiet --locked -p berth -- openapi > openapi/berth.openapi.json

bench: setup ## measure; docs/benchmarks.md says what and how
	cargo bench --locked -p berth-engine --bench plan
	cargo bench --locked -p berth --bench system

sdk: openapi ## regenerate the clients in sdk/
	./sdk/generate.sh

fmt: ## format the code
	cargo fmt --all
