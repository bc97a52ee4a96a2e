#!/usr/bin/env bash
# Checks the dependencies: licenses, sources, wildcards and known vulnerabilities (deny.toml), and that each is used.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh audit
checks=(bans licenses sources)
if timeout 60 cargo deny fetch db >/dev/null 2>&1; then
    checks+=(advisories)
else
    echo "audit: the advisory database is out of reach; vulnerabilities are not checked"
fi
cargo deny --log-level error check --hide-inclusion-graph "${checks[@]}"
cargo shear --locked --deny-warnings
