#!/usr/bin/env bash
# Puts cargo-leptos and wasm-bindgen into .tools/bin, in the versions this checkout is built with.
# A copy of the right version that is already on the machine is linked; else it is compiled (some minutes, once).
set -euo pipefail
cd "$(dirname "$0")/.."
leptos=0.3.10 # the last version that this rustc compiles as its lock file stands
bindgen=$(sed -n '/^name = "wasm-bindgen"$/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)

# tool PROGRAM CRATE VERSION [cargo install's options]
tool() {
    local program=$1 crate=$2 version=$3 found
    shift 3
    [ "$(.tools/bin/"$program" --version 2>/dev/null)" != "$program $version" ] || return 0
    mkdir -p .tools/bin
    found=$(command -v "$program" || true)
    if [ -n "$found" ] && [ "$("$found" --version 2>/dev/null)" = "$program $version" ]; then
        ln -sf "$found" .tools/bin/
        return
    fi
    echo "tools: compiling $crate $version" >&2
    # Compile fast rather than well: they run for seconds.
    CARGO_PROFILE_RELEASE_OPT_LEVEL=$opt_level CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_DEBUG=false CARGO_TARGET_DIR=target/tools \
        cargo install $([ -t 2 ] || echo --quiet) --locked --force --root .tools "$crate" --version "=$version" "$@"
}

# cargo-leptos carries OpenSSL's source; the system's own library spares compiling it.
if pkg-config --exists openssl 2>/dev/null; then export OPENSSL_NO_VENDOR=1; fi

opt_level=1 tool wasm-bindgen wasm-bindgen-cli "$bindgen"
# no_downloads: take Tailwind and wasm-opt from node_modules instead of fetching other copies.
# Only its compressor does real work. Both measures together halve the processor time of this build.
opt_level=0 tool cargo-leptos cargo-leptos "$leptos" --no-default-features --features no_downloads \
    --config 'profile.release.package.brotli.opt-level=2'
rm -rf target/tools
