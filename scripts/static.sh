#!/usr/bin/env bash
# Builds the release binary for Linux with musl, which needs no library of the system: static.sh TARGET. Checks that it
# is static, and that it serves from a directory that contains nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$1
program=target/$target/release/switchyard
command -v musl-gcc >/dev/null || scripts/apt-install.sh musl-tools
libraries=$(rustc --print target-libdir --target "$target")
compgen -G "$libraries/libstd-*.rlib" >/dev/null || rustup target add "$target" ||
    { echo "static: this rustc has no standard library for $target" >&2; exit 1; }
# For the C code: SQLite, ring and the allocator.
export "CC_${target//-/_}=musl-gcc"
cargo build --locked --features ssr,embed-site,otlp --release --target "$target" --bin switchyard

headers=$(readelf --program-headers --dynamic "$program")
if grep -E 'INTERP|\(NEEDED\)' <<<"$headers"; then echo "static: $program is not static" >&2; exit 1; fi
# As root, serves in an empty root directory.
[ "$(id -u)" = 0 ] || { echo "static: $program is static; not root, so it was not started in an empty directory"; exit 0; }
root=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$root"' EXIT
cp "$program" "$root/switchyard"
mkdir -m 700 "$root/data"
chroot "$root" /switchyard serve --listen 127.0.0.1:0 --database sqlite:///data/jobs.db >"$root/banner" &
server=$!
for _ in $(seq 200); do grep -q 'listening on' "$root/banner" && break; sleep 0.05; done
address=$(sed -n 's/^listening on //p' "$root/banner")
fail() { echo "static: $1" >&2; exit 1; }
ask() { curl -sSf --max-time 10 --noproxy '*' "$address$1" "${@:2}"; }
ask /add/work -d '{"data": {"id": "kept", "meta": 1}}' >/dev/null
ask '/get/work?host=tester' | grep -q '"id":"kept"' || fail "the job is missing"
ask /complete/work -d '{"host": "tester", "data": {"id": "kept", "meta": 1}}' | grep -q kept || fail "the job is not completed"
files=$(ask /ui | grep -o '/ui/pkg/[0-9a-f]*/switchyard\.[a-z]*' | sort -u)
for kind in css js wasm; do grep -q "\.$kind\$" <<<"$files" || fail "the page has no $kind"; done
for file in $files; do ask "$file" --output /dev/null; done
kill "$server"
wait "$server" || fail "the server does not stop"
server=
echo "static: $program ($(du -h "$program" | cut -f1)) is static and serves in an empty directory"
