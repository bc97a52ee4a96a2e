# Everything one does with this checkout; `make` alone prints the documentation below.
SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
export PATH := $(CURDIR)/.tools/bin:$(CURDIR)/node_modules/.bin:$(PATH)

# What the browser half is made from, and what the server is made from.
front := Cargo.toml Cargo.lock .cargo/config.toml package-lock.json src/lib.rs src/islands.rs src/time.rs \
	$(shell find src/islands style public -type f 2>/dev/null)
# Tailwind looks for class names in the pages.
pages := $(shell find src/app -type f 2>/dev/null)
back := Cargo.toml Cargo.lock .cargo/config.toml build.rs $(shell find src migrations benches/cost -type f 2>/dev/null)

server := target/serve/switchyard
release := target/release/switchyard
site := target/site.stamp

.PHONY: help setup serve dev watch build package test check fmt lint unit postgres browser size audit fuzz cost stress \
	bench pictures clean

help: ## print this
	@sed -n -e 's/^##@ \(.*\)/\n\1/p' -e 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | awk -F'\t' 'NF == 2 { printf "%-16s%s\n", $$1, $$2 } NF != 2'
	@printf '\nEvery target installs what it needs. ARGS="…" hands arguments on; CONTRIBUTING.md says more.\n'

##@ Run

# The browser half and the server are compiled side by side: each of them alone leaves a core idle for a while.
serve: ## build and serve on 127.0.0.1:3000 with the data in ./switchyard.db; ARGS="--listen …"
	@$(MAKE) --no-print-directory -j2 $(site) $(server)
	@exec $(server) serve $(ARGS)

dev: ## serve a temporary database on which made-up jobs keep moving; ARGS="--jobs 1000000"
	@$(MAKE) --no-print-directory -j2 $(site) $(server)
	@exec $(server) dev $(ARGS)

watch: setup ## rebuild and restart at every change, unoptimized
	@rm -f $(site)
	cargo leptos watch -- serve $(ARGS)

build: $(release) ## build the program for packages, with the dashboard inside, at target/release/switchyard

package: $(release) ## put the program with its documents into an archive with a checksum, in target/package
	@scripts/package.sh

##@ Test

test: ## everything that CI does
	@$(MAKE) --no-print-directory -j2 $(site) $(server) fmt
	@$(MAKE) --no-print-directory audit lint unit postgres size browser cost fuzz
	@echo "All checks passed."

check: test ## the same

fmt: ## the format of the Rust code
	cargo fmt --check

# One compilation serves the lints and the tests: Clippy's driver is a compiler that also lints.
clippy := CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ \
	RUSTC_WORKSPACE_WRAPPER=$(shell command -v rustup >/dev/null && rustup which clippy-driver || command -v clippy-driver)
features := --locked --features ssr

lint: ## Clippy on everything; each warning is an error. What it compiles the tests use
	@scripts/wasm-target.sh
	$(clippy) cargo build $(features) --all-targets
	$(clippy) cargo build --locked --lib --target wasm32-unknown-unknown --features hydrate --profile wasm-release --target-dir target/front

# nextest runs the tests side by side. Many of them wait for time to pass, so more run than there are cores.
export NEXTEST_TEST_THREADS ?= 6
export RUST_TEST_THREADS ?= 6
nextest := $(shell cargo nextest --version >/dev/null 2>&1 && echo nextest run || echo test)
tests := $(clippy) cargo $(nextest) $(features)

unit: lint ## all Rust tests on SQLite; ARGS=name runs those whose name holds it
	$(tests) $(ARGS)

# What the second run does without concerns claims, waiting, and several servers.
# Each test has a database of its own, of which there are a thousand in the end: too many to look after.
postgres: export POSTGRES_OPTIONS ?= -c autovacuum=off -c checkpoint_timeout=1h -c max_wal_size=8GB -c full_page_writes=off
postgres: lint ## all Rust tests on a throw-away Postgres, and some without SKIP LOCKED and NOTIFY
	$(clippy) scripts/postgres.sh cargo $(nextest) $(features) $(ARGS)
	$(clippy) SWITCHYARD_TEST_OPTIONS="--no-skip-locked --no-notify" scripts/postgres.sh cargo $(nextest) $(features) \
		-- claim wait cluster crowd storm

browser: $(site) $(server) ## the pages in headless Chromium, with and without JavaScript; ARGS=end2end/put.test.js
	SWITCHYARD=$(CURDIR)/$(server) CHROMIUM="$$(scripts/chromium.sh)" \
		node --test --test-concurrency=2 --test-reporter=spec $(or $(ARGS),end2end/*.test.js)

size: $(site) ## what a browser loads for a page, against its budget
	@scripts/size.sh

cost: $(server) ## instructions per request, against benches/cost/figures.tsv; ARGS=--accept writes that file
	@scripts/cost.sh $(ARGS)

audit: ## licenses, advisories and duplicates of dependencies, and dependencies that nothing uses
	@scripts/audit.sh

fuzz: ## each fuzz target for a few seconds; ARGS="query 600" runs one for ten minutes
	@scripts/fuzz.sh $(ARGS)

stress: lint ## the tests 20 times on both databases while the machine is busy; ARGS="--count 5 name"
	$(clippy) scripts/stress.sh $(ARGS)

##@ More

setup: node_modules/.package-lock.json ## install the tools: WebAssembly target, npm packages, cargo-leptos
	@scripts/wasm-target.sh
	@scripts/tools.sh build

bench: $(release) ## jobs per second, latency and server time per job, on SQLite and Postgres; ARGS="--help"
	POSTGRES_OPTIONS="-c fsync=on" scripts/postgres.sh cargo bench --locked --features ssr,embed-site --bench load -- --postgres 1,2 $(ARGS)

pictures: $(site) $(server) ## take the pictures of the documents again, docs/images
	SWITCHYARD=$(CURDIR)/$(server) CHROMIUM="$$(scripts/chromium.sh)" node end2end/pictures.js

clean: ## remove what was built; the tools stay
	rm -rf target end2end/screenshots

# ---- files ----

node_modules/.package-lock.json: package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(site): $(front) $(pages) | setup
	RUST_BACKTRACE=0 cargo leptos build --release --precompress --frontend-only --cargo-locked
	@touch $@

$(server): $(back)
	cargo build --locked --features ssr --profile serve --bin switchyard --bin cost
	@touch $@

$(release): $(back) $(site)
	cargo build --locked --features ssr,embed-site --release --bin switchyard
	@touch $@
