#!/usr/bin/env bash
# Builds the fuzz targets and runs each for a few seconds: fuzz.sh [TARGET [SECONDS]]. Fails on a crash, on an input that
# takes more than 10 s (FUZZ_TIMEOUT) or occupies more than 64 MiB (fuzz/memory.rs), and on 2 GiB in all. Leaves the input
# in fuzz/artifacts, as well as each input that takes more than 1 s (slow-unit-…).
# The target `requests` drives the whole server, so it runs only if named; a Rust test runs its seeds. The flags below
# replace cargo-fuzz and a nightly compiler: they instrument the code for libFuzzer. There is no address sanitizer, because
# the fuzzed code is safe Rust.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${2:-3}
coverage=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions --cfg fuzzing)
if [[ ${1:-} == requests ]]; then
    # Only the package itself is instrumented, so its dependencies are those of the server.
    FUZZ_FLAGS="${coverage[*]}" RUSTC_WORKSPACE_WRAPPER="$PWD/scripts/fuzz-rustc.sh" \
        cargo build --locked --features ssr,fuzz --profile serve --example requests
    programs=$PWD/target/serve/examples
else
    # With an explicit target, the flags do not apply to build scripts and macros.
    host=$(rustc -vV | sed -n 's/^host: //p')
    (cd fuzz && RUSTFLAGS="${coverage[*]}" CARGO_TARGET_DIR=../target/fuzz cargo build --locked --release --target "$host")
    programs=$PWD/target/fuzz/$host/release
fi
cd fuzz
for source in fuzz_targets/${1:-*}.rs; do
    target=$(basename "$source" .rs)
    [[ $target == requests && ${1:-} != requests ]] && continue
    mkdir -p "corpus/$target" "seeds/$target" "artifacts/$target"
    echo "fuzz: $target for $seconds s"
    "$programs/$target" -max_total_time="$seconds" -timeout="${FUZZ_TIMEOUT:-10}" -report_slow_units=1 -rss_limit_mb=2048 \
        -verbosity=0 -print_final_stats=1 -artifact_prefix="artifacts/$target/" "corpus/$target" "seeds/$target" 2>&1 |
        sed -e "/# Uses:/d" -e "/dictionary\./d"
done
