#!/usr/bin/env bash
# Installs Debian packages: apt-install.sh PACKAGE…. Scripts that run side by side call it, so one waits for the other.
set -euo pipefail
exec 9>"${TMPDIR:-/tmp}/switchyard-apt.lock"
flock 9
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
echo "apt-install: $*" >&2
{
    $as_root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends "$@"
} >&2 9>&-
