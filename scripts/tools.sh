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
    # They run for seconds: compile them fast rather than well. They share what they compile.
    CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_DEBUG=false CARGO_TARGET_DIR=target/tools \
        cargo install --quiet --locked --force --root .tools "$crate" --version "=$version" "$@"
}

tool wasm-bindgen wasm-bindgen-cli "$bindgen"
# no_downloads: take Tailwind and wasm-opt from node_modules instead of fetching other copies.
tool cargo-leptos cargo-leptos "$leptos" --no-default-features --features no_downloads
rm -rf target/tools
