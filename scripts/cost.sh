#!/usr/bin/env bash
# Runs the cost gate (benches/cost). Its figures are valid on Linux x86-64 only. On Debian, installs Valgrind if missing.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "cost: skipped, because the figures are valid on Linux x86-64 only"
    exit
fi
if ! command -v valgrind >/dev/null && command -v apt-get >/dev/null; then
    scripts/apt-install.sh valgrind
fi
exec target/server/cost "$@"
