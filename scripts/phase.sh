#!/usr/bin/env bash
# Runs `make NAME` as a phase of `make test`: phase.sh NAME. Phases run side by side, so the output goes to
# target/test/NAME.log, and is printed as a whole when the phase ends. `phase.sh summary` prints how each phase ended, and
# which tests failed: the last lines of a long output are what a CI shows.
set -uo pipefail
cd "$(dirname "$0")/.."
name=$1
folder=target/test

plain() {
    sed -E 's/\x1b\[[0-9;]*m//g' "$1"
}

# The names of failed tests with their first message, values and place, or the last lines of the log.
failures() {
    local found
    found=$(plain "$1" | sed -nE -e 's/^ +(FAIL|TIMEOUT|SIG[A-Z]+|LEAK-FAIL) \[[^]]*\] (\([^)]*\) )?/  /p' \
        -e 's/^(thread .* panicked at .*)/  \1/p' -e 's/^✖ (.*)/  \1/p' -e 's/^ +((Assertion|Timeout)?Error.*)/    \1/p' \
        -e 's/^ +((actual|expected): .*)/    \1/p' -e 's|^ +at .*/(end2end/[a-z_]*\.test\.js:[0-9]*).*|    at \1|p' |
        awk '!seen[$0]++' | cut -c1-150 | head -20)
    printf '%s\n' "${found:-$(plain "$1" | grep -v '^ *$' | tail -4 | cut -c1-150)}"
}

if [ "$name" = summary ]; then
    printf '\n%-10s %-7s %7s %8s\n' phase result time CPU
    sort -k3 -n "$folder"/*.result
    for phase in $(awk '$2 == "FAILED" { print $1 }' "$folder"/*.result); do
        printf '\nfailed in %s:\n' "$phase"
        failures "$folder/$phase.log"
    done
    exit
fi

# The last lines of test programs.
counts() {
    plain "$folder/$name.log" |
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
