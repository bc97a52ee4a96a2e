#!/usr/bin/env bash
# Sends generated requests to a new server, as the OpenAPI descriptions allow and forbid them, alone and in sequences, and
# checks whether the server accepts and rejects them, and the status, headers, content type and schema of every response.
# The argument is the program. Installs schemathesis (https://schemathesis.io) in .tools unless it is on the PATH.
# APIS="relay jobq" runs only these; DESCRIPTIONS=FOLDER takes the descriptions from there instead of from the server.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:$PWD/.tools/schemathesis/bin
# Other scripts that install tools wait.
mkdir -p .tools && exec 9>.tools/lock
! command -v flock >/dev/null || flock 9
command -v st >/dev/null || {
    echo "openapi: installing schemathesis" >&2
    python3 -m venv .tools/schemathesis
    .tools/schemathesis/bin/pip install --quiet --disable-pip-version-check schemathesis==4.32.5
}
exec 9>&-
export NO_PROXY='*' PYTHONPATH=$PWD/scripts/openapi PYTHONDONTWRITEBYTECODE=1 SCHEMATHESIS_HOOKS=switchyard_hooks
settings=$PWD/scripts/openapi/schemathesis.toml
work=$(mktemp -d)
server=
stop() { [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true; server=; }
trap 'stop; rm -rf "$work"' EXIT
failed=
for api in ${APIS:-admin relay lmstfy jobq qless}; do
    echo "openapi: $api"
    LEPTOS_SITE_ROOT=$PWD/public "$1" serve --listen 127.0.0.1:0 --database sqlite::memory: >"$work/banner" &
    server=$!
    for _ in $(seq 200); do grep -q 'listening on' "$work/banner" && break; sleep 0.05; done
    address=$(sed -n 's/^listening on //p' "$work/banner")
    # The hooks send all requests of lmstfy to this namespace. The token is a header of these requests; schemathesis also
    # repeats them without it, and checks that they are refused.
    token=$(curl -sSf --noproxy '*' "$address/token/test" -d description=test | sed 's/.*"token":"\([^"]*\)".*/\1/')
    headers=()
    [ "$api" != lmstfy ] || headers=(--header "X-Token: $token")
    description=$address/openapi/$api.json
    [ -z "${DESCRIPTIONS:-}" ] || { cp "$DESCRIPTIONS/$api.json" "$work"; description=$work/$api.json; }
    # Payloads may be any JSON, but without U+0000, which Postgres cannot store and a schema cannot exclude.
    (cd "$work" && st --config-file "$settings" run "$description" --url "$address" --max-examples "${EXAMPLES:-10}" --checks all \
        --phases examples,coverage,fuzzing,stateful --generation-allow-x00 false --request-timeout 20 \
        --continue-on-failure --seed "${SEED:-1}" --no-color "${headers[@]}") || failed="$failed $api"
    stop
done
[ -z "$failed" ] || { echo "openapi: failed:$failed" >&2; exit 1; }
