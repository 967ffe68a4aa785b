# `make test` proves what is here. See README.md for what is not here yet.

.DEFAULT_GOAL := help
.PHONY: help setup test lint fmt

help:
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: ## install what Debian lacks (needs root)
	./docker/setup.sh

test: setup ## run every test
	cargo test --workspace --locked

lint: ## formatting, clippy with warnings as errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

fmt: ## format the code
	cargo fmt --all
