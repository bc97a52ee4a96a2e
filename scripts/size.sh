#!/usr/bin/env bash
# Fails when what a browser loads for a page has grown beyond its budget (bytes, compressed with brotli): the style
# sheet before the page is seen, the script and its WebAssembly before it lives. end2end/budget.test.js weighs a page.
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
