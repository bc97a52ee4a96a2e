#!/usr/bin/env bash
# Prints the path of a Chromium for the browser tests. If there is none, installs one on Debian-based systems.
# Prefers the headless shell, which takes half the time.
set -euo pipefail

find_browser() {
    local name
    for name in "${CHROMIUM:-}" chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
        [ -n "$name" ] && command -v "$name" && return
    done
    return 1
}

find_browser && exit
if command -v apt-get >/dev/null; then
    here=$(dirname "$0")
    "$here/apt-install.sh" chromium-headless-shell || "$here/apt-install.sh" chromium || true
fi
find_browser || { echo "chromium: no browser found; install Chromium or Chrome, or run CHROMIUM=/path make test" >&2; exit 1; }
