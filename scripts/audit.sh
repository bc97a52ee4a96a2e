#!/usr/bin/env bash
# Checks dependencies: licenses, sources, wildcards, known vulnerabilities (deny.toml) and unused dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh audit
checks=(bans licenses sources)
if timeout 60 cargo deny fetch db >/dev/null 2>&1; then
    checks+=(advisories)
else
    echo "audit: cannot download the advisory database; skipping the check for vulnerabilities"
fi
cargo deny --log-level error check --hide-inclusion-graph "${checks[@]}"
cargo shear --locked --deny-warnings
