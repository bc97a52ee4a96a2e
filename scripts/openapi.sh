#!/usr/bin/env bash
# Sends generated requests to a new server, as the OpenAPI descriptions allow them, and checks status, content type and
# schema of every response. The argument is the program. Needs schemathesis (https://schemathesis.io) on the PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v st >/dev/null || { echo "openapi: install schemathesis" >&2; exit 1; }
work=$(mktemp -d)
LEPTOS_SITE_ROOT=$PWD/public "$1" serve --listen 127.0.0.1:0 --database sqlite::memory: --no-auth >"$work/banner" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 200); do grep -q 'listening on' "$work/banner" && break; sleep 0.05; done
address=$(sed -n 's/^listening on //p' "$work/banner")
checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance
for api in admin relay lmstfy jobq qless; do
    echo "openapi: $api"
    # Without the operation that can wait for a job for years.
    (cd "$work" && NO_PROXY='*' st run "$address/openapi/$api.json" --url "$address" --max-examples "${EXAMPLES:-10}" \
        --checks "$checks,response_headers_conformance,unsupported_method" --phases examples,coverage,fuzzing \
        --exclude-operation-id getApiNamespaceQueue --request-timeout 20 --no-color)
done
