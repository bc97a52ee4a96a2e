#!/usr/bin/env bash
# Puts promtool and prometheus into .tools/prometheus/usr/bin, for the tests of the metrics, unless they are installed.
# They come from Debian's package, which is only unpacked: installing it would start a server. On other systems, and
# without a package, the tests that need them are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=.tools/prometheus
ready() { { command -v promtool && command -v prometheus; } >/dev/null || [ -x $folder/usr/bin/promtool ]; }
if ready || ! command -v apt-get >/dev/null; then exit; fi
# scripts/apt-install.sh and other runs of this script wait.
exec 9>"${TMPDIR:-/tmp}/switchyard-apt.lock"
flock 9
if ready; then exit; fi
echo "prometheus: unpacking Debian's package" >&2
mkdir -p $folder/package
(
    cd $folder/package
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    apt-get download -qq prometheus 2>/dev/null || { $as_root apt-get update -qq && apt-get download -qq prometheus; }
) >&2 || echo "prometheus: there is no package; the tests that need it are skipped" >&2
for package in $folder/package/*.deb; do
    [ -e "$package" ] && dpkg -x "$package" $folder
done
rm -rf $folder/package
