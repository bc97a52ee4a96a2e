#!/usr/bin/env bash
# Runs the Rust tests repeatedly while two processes keep the CPU busy, to find tests that depend on a fast machine:
#
#     stress.sh [--count ROUNDS] [--database sqlite|postgres] [--continue] [NAME…] -- COMMAND [-- OPTION…]
#
# The default is 20 rounds on both databases. COMMAND runs the tests with cargo-nextest. NAMEs select tests. Without a
# NAME, all tests run on SQLite, and the tests that the OPTIONs select run on Postgres. `make test` does not run this script,
# because it takes hours. It can run in parts: the output of each completed round is in target/stress, and with
# --continue, only the missing rounds run; otherwise all rounds of these databases run again. At the end, the failed
# tests of all completed rounds are listed, with the number of their failures.
set -uo pipefail
cd "$(dirname "$0")/.."
count=20
databases=(sqlite postgres)
continued=
names=()
while [ $# -gt 0 ]; do
    case $1 in
    --count) count=$2 && shift ;;
    --database) databases=("$2") && shift ;;
    --continue) continued=1 ;;
    --) shift && break ;;
    *) names+=("$1") ;;
    esac
    shift
done
cargo nextest --version >/dev/null || { echo "stress: install cargo-nextest first" >&2; exit 1; }

folder=target/stress
mkdir -p "$folder"
hogs=()
trap 'kill "${hogs[@]}" 2>/dev/null' EXIT
for _ in 1 2; do
    (while :; do :; done) &
    hogs+=($!)
done

command=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    command+=("$1") && shift
done
on_postgres=()
[ ${#names[@]} -gt 0 ] || on_postgres=("${@:2}")
tests=("${command[@]}" --no-fail-fast --status-level fail ${names[@]+"${names[@]}"})
for database in "${databases[@]}"; do
    case $database in
    sqlite | postgres) [ -n "$continued" ] || rm -f "$folder/$database"-* ;;
    *) echo "stress: unknown database $database; known are sqlite and postgres" >&2 && exit 2 ;;
    esac
done
for ((round = 1; round <= count; round++)); do
    for database in "${databases[@]}"; do
        log=$folder/$database-$round.log
        [ -e "$log" ] && continue
        command=("${tests[@]}")
        [ "$database" = sqlite ] || command=(scripts/postgres.sh "${tests[@]}" ${on_postgres[@]+"${on_postgres[@]}"})
        echo "stress: round $round of $count on $database"
        "${command[@]}" 2>&1 | tee "$log.part" | grep -E '^ +(TRY [0-9]+ )?(FAIL|SIGABRT|SIGSEGV|SIGTERM|TIMEOUT) |Summary'
        grep -q Summary "$log.part" || { tail -20 "$log.part"; exit 1; }
        mv "$log.part" "$log"
    done
done

for database in sqlite postgres; do
    echo "stress: $(find "$folder" -name "$database-*.log" | wc -l) rounds completed on $database"
done
failed=$(sed -nE 's/^ +(FAIL|SIGABRT|SIGSEGV|SIGTERM|TIMEOUT) \[[^]]*\] +(\([^)]*\) +)?//p' "$folder"/*.log | sort | uniq -c | sort -rn)
[ -z "$failed" ] && { echo "stress: no test failed"; exit 0; }
printf 'stress: failed\n%s\n' "$failed"
exit 1
