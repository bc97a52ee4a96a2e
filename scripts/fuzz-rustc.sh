#!/usr/bin/env bash
# The compiler for scripts/fuzz.sh: instruments the crates of the package, but not its build script.
compiler=$1
shift
[[ " $* " == *" build_script_build "* || " $* " == *" --print"* ]] && exec "$compiler" "$@"
# The lints of the package forbid unsafe code, which fuzz/memory.rs needs to count memory.
# shellcheck disable=SC2086
exec "$compiler" "$@" $FUZZ_FLAGS --cap-lints=warn
