#!/usr/bin/env bash
# Puts nginx and caddy into .tools/proxies/usr, for the browser tests behind proxies, unless they are installed. They come
# from Debian's packages, which are only unpacked: installing them would start servers. On other systems, and without the
# packages, the tests that need them are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=.tools/proxies
ready() {
    { command -v nginx || [ -x $folder/usr/sbin/nginx ]; } >/dev/null &&
        { command -v caddy || [ -x $folder/usr/bin/caddy ]; } >/dev/null
}
if ready || ! command -v apt-get >/dev/null; then exit; fi
# scripts/apt-install.sh and other runs of this script wait.
exec 9>"${TMPDIR:-/tmp}/switchyard-apt.lock"
flock 9
if ready; then exit; fi
echo "proxies: unpacking Debian's packages of nginx and caddy" >&2
mkdir -p $folder/package
(
    cd $folder/package
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    apt-get download -qq nginx caddy 2>/dev/null || { $as_root apt-get update -qq && apt-get download -qq nginx caddy; }
) >&2 || echo "proxies: there are no packages; the tests that need them are skipped" >&2
for package in $folder/package/*.deb; do
    [ -e "$package" ] && dpkg -x "$package" $folder
done
rm -rf $folder/package
