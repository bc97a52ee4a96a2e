#!/usr/bin/env bash
# Runs `make NAME` as a phase of `make test`: phase.sh NAME. Phases run side by side, so the output goes to
# target/test/NAME.log, and is printed as a whole when the phase ends. `phase.sh summary` prints how each phase ended.
set -uo pipefail
cd "$(dirname "$0")/.."
name=$1
folder=target/test

if [ "$name" = summary ]; then
    printf '\n%-10s %-7s %7s %8s\n' phase result time CPU
    sort -k3 -n "$folder"/*.result
    exit
fi

# The last lines of test programs, without colors.
counts() {
    sed -E 's/\x1b\[[0-9;]*m//g' "$folder/$name.log" |
        sed -nE -e 's/^ +Summary \[[^]]*\] *//p' -e 's/^ℹ ((pass|fail|cancelled) [0-9]+)$/\1/p' -e 's/^(Ran [0-9]+ tests?) .*/\1/p' |
        paste -sd ';' | sed 's/;/; /g'
}

echo "test: $name began"
# The phase is independent of this make's jobs and flags.
TIMEFORMAT='%R %U %S'
{ time env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make --no-print-directory "$name" >"$folder/$name.log" 2>&1; } 2>"$folder/$name.time"
status=$?
read -r real user kernel <"$folder/$name.time"
rm "$folder/$name.time"
result=ok
[ "$status" = 0 ] || result=FAILED
awk -v name="$name" -v result="$result" -v real="$real" -v cpu="$user $kernel" -v counts="$(counts)" \
    'BEGIN { split(cpu, part, " "); printf "%-10s %-7s %5.0f s %6.0f s  %s\n", name, result, real, part[1] + part[2], counts }' \
    >"$folder/$name.result"

# One phase prints at a time.
until mkdir "$folder/printing" 2>/dev/null; do sleep 0.1; done
printf '\n======== %s ========\n' "$name"
cat "$folder/$name.log"
cat "$folder/$name.result"
rmdir "$folder/printing"
exit "$status"
