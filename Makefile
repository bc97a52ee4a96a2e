# All common tasks. `make` alone prints the help texts below.
SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
export PATH := $(CURDIR)/.tools/bin:$(CURDIR)/node_modules/.bin:$(PATH)

# Sources of the browser code and of the server.
front := Cargo.toml Cargo.lock .cargo/config.toml package-lock.json src/lib.rs src/islands.rs src/time.rs \
	$(shell find src/islands style public -type f 2>/dev/null)
# Tailwind reads class names from the pages.
pages := $(shell find src/ui/pages.rs src/ui/pages src/ui/components -type f 2>/dev/null)
back := Cargo.toml Cargo.lock .cargo/config.toml build.rs $(shell find src migrations benches/cost -type f 2>/dev/null)

# Copies, because the tests build other programs with the same names in target/serve.
server := target/server/switchyard
release := target/release/switchyard
site := target/site.stamp
# The platform of `make static`.
target := $(shell uname -m)-unknown-linux-musl

.PHONY: help setup serve dev watch build deb archive static test fmt lint rust wasm unit postgres compat debtest crate systemd containers browser clients size audit fuzz openapi cost stress chaos soak \
	bench reference book pictures clean

help: ## print this help
	@sed -n -e 's/^##@ \(.*\)/\n\1/p' -e 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | awk -F'\t' 'NF == 2 { printf "%-18s%s\n", $$1, $$2 } NF != 2'
	@printf '\nEach target installs the tools it needs; CONTRIBUTING.md lists the exceptions. ARGS="…" passes arguments.\n'

##@ Run

# Browser code and server compile in parallel, because each alone leaves a core idle at times.
serve: ## build and run the server on 127.0.0.1:3000, with its data in ./switchyard.db; ARGS="--listen …"
	@$(MAKE) --no-print-directory -j2 $(site) $(server)
	@exec $(server) serve $(ARGS)

dev: ## run the server on a temporary database with generated jobs; ARGS="--jobs 1000000"
	@$(MAKE) --no-print-directory -j2 $(site) $(server)
	@exec $(server) dev $(ARGS)

watch: setup ## rebuild and restart the server on every change, unoptimized
	@rm -f $(site)
	cargo leptos watch -- serve $(ARGS)

build: $(release) ## build the release binary, dashboard included: target/release/switchyard

deb: $(release) ## build the Debian package, in target/package
	@scripts/deb.sh $(CURDIR)/$(release) target/package

archive: $(release) ## create an archive of the release binary and documents, with its checksum, in target/package
	@scripts/package.sh

static: $(site) ## like archive, but statically linked (Linux, musl); starts the binary in an empty directory
	@scripts/static.sh $(target)
	@scripts/package.sh target/$(target)/release/switchyard $(target)

##@ Test

# The phases of `make test`. Some wait for the network, for time to pass or for one thread, while others use the CPU. Those
# that take long begin first; the fuzz targets are built beside the server, because they are independent of it.
phases := fuzz rust browser postgres unit compat audit cost wasm clients debtest size

test: ## run all checks in parallel, as CI does; the output is also in target/test
	@rm -rf target/test && mkdir -p target/test
	@$(MAKE) --no-print-directory --keep-going -j3 $(site) $(server) fmt $(phases:%=phase-%); \
		status=$$?; scripts/phase.sh summary; exit $$status
	@echo "All checks passed."

phase-%:
	@NEXTEST_TEST_THREADS=5 RUST_TEST_THREADS=5 scripts/phase.sh $*
phase-rust phase-browser phase-cost phase-clients phase-debtest: $(site) $(server)
phase-wasm phase-size: $(site)
phase-postgres phase-unit phase-compat: phase-rust

fmt: ## check the format of the Rust code
	cargo fmt --check

# One compilation serves the server, its tests and lints: Clippy's driver is a compiler that also lints.
clippy := CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/scripts/clippy.sh \
	CLIPPY_DRIVER=$(shell command -v rustup >/dev/null && rustup which clippy-driver || command -v clippy-driver)
features := --locked --features ssr,otlp
# The unit tests are a separate compilation. Optimized, it would take more than twice as long.
unoptimized := --config profile.serve.package.switchyard.opt-level=0
integration := --test '*'

lint: rust wasm ## run Clippy on everything, warnings are errors; the tests reuse this build

rust: $(server)
	$(clippy) cargo build $(features) --profile serve --bins --examples --bench '*' $(integration)
	$(clippy) cargo test $(features) --profile serve $(unoptimized) --lib --no-run

wasm:
	@scripts/wasm-target.sh
	$(clippy) cargo build --locked --lib --target wasm32-unknown-unknown --features hydrate --profile wasm-release --target-dir target/front

# Runs more tests in parallel than there are cores, because many tests wait for time to pass.
export NEXTEST_TEST_THREADS ?= 6
export RUST_TEST_THREADS ?= 6
nextest := $(shell cargo nextest --version >/dev/null 2>&1 && echo nextest run --no-tests pass || echo test)
# The tests that depend on the database: not those of connections, headers, addresses, roles, syntax and the command line,
# in these modules. And of these, the tests of claims, of waiting and of several servers.
with_database := --test http --test engine
without_database := auth::keys auth::matrix auth::reload auth::rows auth::sites auth::sources auth::start base_path bench cli \
	command config_file connections envelope jobq::grammar jobq::routes lmstfy::routes lmstfy::wire logs memory openapi proxies \
	redis::abuse redis::connections relay::routes request_id roles::pages roles::paths roles::start roles::table \
	roles::throttle tls work::each_line work::options work::outcomes work::stop
empty :=
of_database := $(if $(findstring run,$(nextest)),-E 'not test(/^($(subst $(empty) $(empty),|,$(strip $(without_database))))::/)', \
	-- $(without_database:%=--skip %::))
of_claims := $(if $(findstring run,$(nextest)),-E 'test(/(^|::)(claims?|waits?|cluster|concurrency|storm|pair)::/)',-- claim wait cluster concurrency storm pair)
profile := $(if $(findstring run,$(nextest)),--cargo-profile,--profile) serve
tests := cargo $(nextest) $(features) $(profile)

unit: rust ## run all Rust tests on SQLite; ARGS=name runs those whose name contains it
	@scripts/unpack.sh prometheus
	$(clippy) $(tests) $(unoptimized) --lib $(ARGS)
	$(clippy) $(tests) $(integration) $(ARGS)

# Tests create many databases. Autovacuum is off because it would have to visit them all.
postgres compat stress: export POSTGRES_OPTIONS ?= -c autovacuum=off -c checkpoint_timeout=1h -c max_wal_size=8GB -c full_page_writes=off
postgres: rust ## run the Rust tests on a temporary Postgres; ARGS=name as above
	@scripts/unpack.sh prometheus
	$(clippy) scripts/postgres.sh $(tests) $(with_database) $(or $(ARGS),$(of_database))

# SKIP LOCKED and NOTIFY matter only to these tests.
compat: rust ## run the tests of claims, waits and several servers on Postgres without SKIP LOCKED and NOTIFY
	$(clippy) SWITCHYARD_TEST_OPTIONS="--no-skip-locked --no-notify" scripts/postgres.sh $(tests) $(with_database) $(of_claims)

browser: $(site) $(server) ## run the browser tests in headless Chromium; ARGS=end2end/put.test.js
	@scripts/unpack.sh proxies
	SWITCHYARD=$(CURDIR)/$(server) CHROMIUM="$$(scripts/chromium.sh)" \
		node --test --test-concurrency=2 --test-reporter=spec $(or $(ARGS),end2end/*.test.js)

clients: $(server) ## test the clients of all languages, and imports from Redis; ARGS="--jobs 10000" runs only the crash test
	@scripts/clients.sh $(CURDIR)/$(server) $(ARGS)

debtest: $(server) ## build the Debian package and test it; as root, also install, upgrade and remove it in a copy of the system
	@scripts/deb-test.sh $(CURDIR)/$(server)

crate: setup $(site) ## make the package for a registry of crates, and install it with cargo
	@scripts/crate.sh

systemd: $(server) ## as root, install the Debian package under a real systemd, in namespaces of its own
	@scripts/systemd-test.sh $(CURDIR)/$(server)

size: $(site) ## check the size of styles, script and WebAssembly against their budgets
	@scripts/size.sh

containers: $(server) ## check the Dockerfile, the compose file and the Kubernetes manifests
	@scripts/containers.sh $(CURDIR)/$(server)

openapi: $(server) ## send generated requests to every described operation; APIS="relay jobq" EXAMPLES=100
	@scripts/openapi.sh $(CURDIR)/$(server)

cost: $(server) ## compare instructions per request with benches/cost/figures.tsv; ARGS=--accept updates it
	@scripts/cost.sh $(ARGS)

audit: ## check dependencies: licenses, advisories, duplicates, unused ones
	@scripts/audit.sh

fuzz: ## run each fuzz target for a few seconds; ARGS="query 600" runs one for ten minutes
	@scripts/fuzz.sh $(ARGS)

stress: rust ## run the tests 20 times on both databases on a busy machine; ARGS="--count 5 name"
	@scripts/unpack.sh prometheus
	$(clippy) scripts/stress.sh $(ARGS) -- $(tests) -- $(with_database) $(of_database)

soak: rust ## run half of the maximum load for an hour; ARGS="--database postgres", SECONDS=600 for another duration
	$(clippy) SWITCHYARD_SOAK_S=$(or $(SECONDS),3600) scripts/chaos.sh --database sqlite $(ARGS) soak -- $(tests) $(integration)

chaos: rust ## run the tests of reliability for a long time, on both databases; ARGS=kills runs one of them
	$(clippy) scripts/chaos.sh $(ARGS) -- $(tests) $(integration)

##@ More

setup: node_modules/.package-lock.json ## install the tools: WebAssembly target, npm packages, cargo-leptos
	@scripts/wasm-target.sh
	@scripts/tools.sh build

bench: $(release) ## measure throughput, latency and CPU time per job, on SQLite and Postgres; ARGS="--help"
	POSTGRES_OPTIONS="-c fsync=on" scripts/postgres.sh cargo bench --locked --features ssr,embed-site,otlp --bench load -- --postgres 1,2 $(ARGS)

reference: $(server) ## regenerate switchyard.example.toml and the reference in docs/configuration.md
	@scripts/reference.sh $(CURDIR)/$(server)

pictures: $(site) $(server) ## retake the screenshots of the documentation, in docs/images
	SWITCHYARD=$(CURDIR)/$(server) CHROMIUM="$$(scripts/chromium.sh)" node end2end/pictures.js

book: ## build the documentation as a site, in target/book/html, and check its links
	@scripts/book.sh

clean: ## remove build output, but not the tools
	rm -rf target end2end/screenshots

# ---- generated files ----

node_modules/.package-lock.json: package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(site): $(front) $(pages) | setup
	RUST_BACKTRACE=0 cargo leptos build --release --precompress --frontend-only --cargo-locked
	@touch $@

# The example uses dev-dependencies, so this build and the tests share the package and all dependencies.
$(server): $(back)
	$(clippy) cargo build $(features) --profile serve --bin switchyard --example cost
	@mkdir -p $(@D)
	@cp -f target/serve/examples/cost target/serve/switchyard $(@D)/

$(release): $(back) $(site)
	cargo build --locked --features ssr,embed-site,otlp --release --bin switchyard
	@touch $@
