#!/usr/bin/env bash
# Tests the original clients against the server: clients.sh SWITCHYARD. Installs them in target/clients.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=target/clients
requirements=end2end/clients/requirements.txt
if ! cmp -s "$requirements" "$venv/installed"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    # The packages have no dependencies besides those that are listed.
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$requirements"
    cp "$requirements" "$venv/installed"
fi
SWITCHYARD=$1 "$venv/bin/python" -W ignore -m unittest discover --start-directory end2end/clients
