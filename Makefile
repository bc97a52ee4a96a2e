# Everything one does with this checkout; `make` alone lists it. It needs cargo, node with npm, and make.
SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
export PATH := $(CURDIR)/.tools/bin:$(CURDIR)/node_modules/.bin:$(PATH)

# What the browser half is made from, and what the server is made from besides.
front := Cargo.toml Cargo.lock .cargo/config.toml package-lock.json src/lib.rs $(wildcard src/app.rs src/api.rs) \
	$(shell find src/app src/api style public -type f 2>/dev/null)
back := build.rs $(shell find src migrations -type f 2>/dev/null)

server := target/release/switchyard
site := target/site.stamp

.PHONY: help setup build serve dev watch test check fmt lint unit postgres size browser pictures bench clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name text; do printf '  make %-9s %s\n' "$$name" "$$text"; done

setup: node_modules/.package-lock.json ## install what is missing: WebAssembly target, npm packages, cargo-leptos
	@scripts/wasm-target.sh
	@scripts/tools.sh

node_modules/.package-lock.json: package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(site): $(front) | setup
	RUST_BACKTRACE=0 cargo leptos build --release --precompress --frontend-only --cargo-locked
	@touch $@

$(server): $(back) $(site)
	cargo build --locked --release --features ssr --bin switchyard
	@touch $@

build: $(server) ## build the server, dashboard included, at target/release/switchyard

serve: $(server) ## build and serve on 127.0.0.1:3000, data in ./switchyard.db (more: ARGS="--listen …")
	@exec $(server) serve $(ARGS)

dev: $(server) ## serve a temporary database on which made-up jobs keep moving
	@exec $(server) dev $(ARGS)

watch: setup ## rebuild and restart at every change, unoptimised
	@rm -f $(site)
	cargo leptos watch -- serve $(ARGS)

test: fmt lint unit postgres size browser ## everything that CI does: format, lints, tests, page size, browser tests
	@echo "All checks passed."

check: test ## the same as test

fmt: ## check the format
	cargo fmt --check

lint: setup ## clippy for both halves, warnings are errors
	cargo clippy --locked --all-targets --features ssr -- -D warnings
	cargo clippy --locked --lib --target wasm32-unknown-unknown --features hydrate -- -D warnings

# All Rust tests; nextest runs them side by side. Many of them wait for time to pass, so more run than there are cores.
export NEXTEST_TEST_THREADS ?= 6
export RUST_TEST_THREADS ?= 6
tests := $(shell cargo nextest --version >/dev/null 2>&1 && echo nextest run || echo test)

unit: ## all Rust tests, on SQLite
	cargo $(tests) --locked --features ssr

postgres: ## all Rust tests, on a throw-away Postgres, and again without what others lack
	scripts/postgres.sh cargo $(tests) --locked --features ssr
	SWITCHYARD_TEST_OPTIONS="--no-skip-locked --no-notify" scripts/postgres.sh cargo $(tests) --locked --features ssr

size: $(site) ## hold the page to its budget
	@scripts/size.sh

browser: $(site) ## tests in headless Chromium, against the unoptimised server and the shipped page
	cargo build --locked --features ssr --bin switchyard
	CHROMIUM="$$(scripts/chromium.sh)" node --test --test-concurrency=2 --test-reporter=spec end2end/*.test.js

pictures: $(site) ## take the pictures of the documents again, docs/images
	cargo build --locked --features ssr --bin switchyard
	CHROMIUM="$$(scripts/chromium.sh)" node end2end/pictures.js

bench: $(server) ## jobs per second, latency, server time per job, cost of waiting, on SQLite and Postgres (more: ARGS="…")
	POSTGRES_OPTIONS="-c fsync=on" scripts/postgres.sh cargo bench --locked --features ssr --bench load -- --postgres 1,2 $(ARGS)

clean: ## remove what was built; the tools stay
	rm -rf target end2end/screenshots
