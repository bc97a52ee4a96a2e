#!/usr/bin/env bash
# Writes switchyard.example.toml, and the reference of the options in docs/configuration.md, from the definitions of the
# flags. The argument is the program.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1
env -u SWITCHYARD_CONFIG "$program" config example >switchyard.example.toml
reference=$(mktemp)
trap 'rm -f "$reference" "$reference.md"' EXIT
env -u SWITCHYARD_CONFIG "$program" config reference >"$reference"
awk -v file="$reference" '
    /^<!-- Written by/ { while ((getline line < file) > 0) print line; skip = 1 }
    !skip { print }
    /^<!-- End of the generated part/ { skip = 0 }
' docs/configuration.md >"$reference.md"
cat "$reference.md" >docs/configuration.md
