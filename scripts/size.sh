#!/usr/bin/env bash
# Fails when what a browser loads before the page lives has grown beyond its budget (kilobytes, brotli).
set -euo pipefail
budget_kb=${BUDGET_KB:-150}
cd "$(dirname "$0")/../target/site/ui/pkg"
total=0
for file in switchyard.wasm switchyard.js switchyard.css; do
    bytes=$(wc -c <"$file.br")
    total=$((total + bytes))
    printf '%8d bytes  %s.br\n' "$bytes" "$file"
done
printf '%8d bytes  together; the budget is %d kB\n' "$total" "$budget_kb"
[ "$total" -le $((budget_kb * 1000)) ]
