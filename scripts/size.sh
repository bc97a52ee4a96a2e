#!/usr/bin/env bash
# Fails if a file that every page loads exceeds its budget (bytes, compressed with brotli): the style sheet, which blocks
# rendering, and the script with its WebAssembly, which live updates need. end2end/budget.test.js checks the page itself.
set -euo pipefail
cd "$(dirname "$0")/../target/site/ui/pkg"
failed=0
within() { # name budget file…
    local name=$1 budget=$2 total
    shift 2
    total=$(cat "$@" | wc -c)
    printf '%8d bytes of %6d  %s\n' "$total" "$budget" "$name"
    [ "$total" -le "$budget" ] || failed=1
}
within 'styles' 9000 switchyard.css.br
within 'WebAssembly with its script' 130000 switchyard.wasm.br switchyard.js.br
exit "$failed"
