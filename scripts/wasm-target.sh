#!/usr/bin/env bash
# Enables the installed rustc to compile for wasm32-unknown-unknown. Does nothing if it already can.
#
# If rustup may download, it adds the target. Otherwise this script gets the source of the standard library, in exactly
# rustc's version, from Debian's archive, builds it once and installs it in the sysroot (half a minute).
set -euo pipefail
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown
say() { echo "wasm-target: $*" >&2; }
give_up() { say "rustc $version cannot compile for $target; run 'rustup target add $target'"; exit 1; }

# Compiles a test program, because libraries left by an older rustc look the same in a listing.
can_compile() {
    local dir status=0
    dir=$(mktemp -d)
    echo 'pub fn hello() -> String { String::from("hello") }' >"$dir/hello.rs"
    rustc --edition 2024 --target $target --crate-type cdylib -o "$dir/hello.wasm" "$dir/hello.rs" >/dev/null 2>&1 || status=1
    rm -rf "$dir"
    return $status
}

by_rustup() {
    command -v rustup >/dev/null || return 1
    [ "${RUSTUP_AUTO_INSTALL:-1}" != 0 ] || return 1 # this machine forbids rustup to download
    say "rustup target add $target"
    timeout 300 rustup target add $target >&2
}

# Runs apt with its own state, so that the system's sources stay unchanged; apt checks the signatures.
private_apt() {
    local tool=$1 state=$2
    shift 2
    "$tool" -qq -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Sandbox::User= \
        -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}

# Prints the path of a package with the standard library's source for rustc $version.
find_source_package() {
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg suite mirror state package found
    local mirrors
    mirrors=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sort -u)
    for suite in bookworm-security trixie-backports trixie-security sid; do
        for mirror in $mirrors; do
            # Security suites are on separate mirrors.
            case "$suite" in *-security) [[ $mirror == *-security* ]] ;; *) [[ $mirror != *-security* ]] ;; esac || continue
            state=$work/apt-$suite
            mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
            echo "deb [signed-by=$keyring] $mirror $suite main" >"$state/sources.list"
            private_apt apt-get "$state" update >/dev/null 2>&1 || continue
            for package in rust-src rust-web-src; do
                found=$(private_apt apt-cache "$state" madison $package | cut -d'|' -f2 | tr -d ' ' |
                    awk -v want="$version" '{ v = $0; sub(/[+-].*/, "", v); if (v == want) { print; exit } }')
                [ -n "$found" ] || continue
                say "using $package $found from $suite"
                (cd "$work" && private_apt apt-get "$state" download "$package=$found" >&2) || continue
                ls "$work/$package"_*.deb
                return
            done
        done
    done
    return 1
}

by_debian() {
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || give_up
    local deb lib
    deb=$(find_source_package) || give_up
    mkdir "$work/library"
    dpkg-deb --fsys-tarfile "$deb" |
        tar -x -C "$work/library" --wildcards --strip-components=5 './usr/src/rustc-*/library/*'
    # These are the flags of the official build; RUSTC_BOOTSTRAP lets std use unstable features.
    (cd "$work/library" && env -u RUSTC_WRAPPER RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$work/target" \
        RUSTFLAGS="-Zforce-unstable-if-unmarked -Cembed-bitcode=yes --remap-path-prefix=$work/library=/rustc/$commit/library" \
        cargo build -q --locked --manifest-path sysroot/Cargo.toml --release --target $target --features "backtrace panic-unwind")
    lib=$(rustc --print sysroot)/lib/rustlib/$target/lib
    rm -rf "$lib.new" "$lib"
    mkdir -p "$lib.new"
    cp "$work/target/$target/release/deps/"*.rlib "$lib.new/"
    mv "$lib.new" "$lib"
    # Output compiled against the old library cannot be linked with the new one.
    rm -rf target/front/$target target/$target
}

can_compile && exit 0
version=$(rustc -vV | sed -n 's/^release: //p')
commit=$(rustc -vV | sed -n 's/^commit-hash: //p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
by_rustup || true
can_compile || by_debian
can_compile || give_up
say "ready for rustc $version"
