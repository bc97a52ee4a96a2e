#!/usr/bin/env bash
# Runs the cost gate (benches/cost). Its figures are valid on Linux x86-64 only. On Debian, installs Valgrind if missing.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "cost: skipped, because the figures are valid on Linux x86-64 only"
    exit
fi
if ! command -v valgrind >/dev/null && command -v apt-get >/dev/null; then
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    echo "cost: installing Debian's valgrind" >&2
    { $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends valgrind; } >&2
fi
exec target/serve/cost "$@"
