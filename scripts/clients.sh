#!/usr/bin/env bash
# Tests the original clients against the server: clients.sh SWITCHYARD. Installs them in target/clients, and on
# Debian-based systems the packages that they need. With further arguments, kills the server while clients work:
# clients.sh SWITCHYARD --jobs 10000 --kills 8 --worker ruby.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
command -v redis-cli redis-benchmark >/dev/null || packages+=(redis-tools)
ruby -e 'require "redis"' 2>/dev/null || packages+=(ruby ruby-redis)
command -v redis-server >/dev/null || packages+=(redis-server)
if [ ${#packages[@]} -gt 0 ] && command -v apt-get >/dev/null; then
    scripts/apt-install.sh "${packages[@]}"
fi

venv=target/clients
requirements=end2end/clients/requirements.txt
if ! cmp -s "$requirements" "$venv/installed"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    # All packages are listed, with their versions.
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$requirements"
    cp "$requirements" "$venv/installed"
fi
export SWITCHYARD=$1
if [ $# -gt 1 ]; then
    exec "$venv/bin/python" -W ignore end2end/clients/crash.py "${@:2}"
fi
exec "$venv/bin/python" -W ignore -m unittest discover --start-directory end2end/clients
