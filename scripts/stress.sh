#!/usr/bin/env bash
# Runs the Rust tests repeatedly on both databases while two processes keep the CPU busy, to find tests that depend on
# a fast machine. stress.sh [--count ROUNDS] [NAME…]: by default 20 rounds of all tests; names select tests.
# Runs all rounds, then lists the failed tests and how often each failed. Not part of `make test`: it takes hours.
set -uo pipefail
cd "$(dirname "$0")/.."
count=20
if [ "${1:-}" = --count ]; then
    count=$2
    shift 2
fi
cargo nextest --version >/dev/null || { echo "stress: install cargo-nextest first" >&2; exit 1; }

hogs=()
log=$(mktemp)
stop() {
    kill "${hogs[@]}" 2>/dev/null
    rm -f "$log"
}
trap stop EXIT
for _ in 1 2; do
    (while :; do :; done) &
    hogs+=($!)
done

run() { # DATABASE COMMAND…
    local database=$1 round
    shift
    for ((round = 1; round <= count; round++)); do
        echo "stress: round $round of $count on $database"
        "$@" 2>&1 | tee -a "$log" | grep -E '^ +(TRY [0-9]+ )?(FAIL|SIGABRT|SIGSEGV|SIGTERM|TIMEOUT) |Summary'
    done
}
tests=(cargo nextest run --locked --features ssr --no-fail-fast --status-level fail "$@")
run SQLite "${tests[@]}"
run Postgres scripts/postgres.sh "${tests[@]}"

grep -q Summary "$log" || { tail -20 "$log"; exit 1; }
failed=$(sed -nE 's/^ +(FAIL|SIGABRT|SIGSEGV|SIGTERM|TIMEOUT) \[[^]]*\] +(\([^)]*\) +)?//p' "$log" | sort | uniq -c | sort -rn)
[ -z "$failed" ] && { echo "stress: no test failed in $count rounds on each database"; exit 0; }
printf 'stress: failed\n%s\n' "$failed"
exit 1
