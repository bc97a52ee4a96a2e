#!/usr/bin/env bash
# Puts programs that some tests need into .tools/NAME/usr, unless they are installed:
#
#     unpack.sh prometheus|proxies|patroni
#
# They come from Debian's packages, which are only unpacked: installing them would start servers. On other systems, and
# without the packages, the tests that need them are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

name=${1:-}
folder=.tools/$name
case $name in
prometheus) packages=(prometheus) files=(bin/promtool bin/prometheus) ;;
proxies) packages=(nginx caddy) files=(sbin/nginx bin/caddy) ;;
patroni)
    packages=(patroni etcd-server)
    packages+=(python3-{cdiff,click,dateutil,dnspython,etcd,prettytable,psutil,psycopg2,six,urllib3,wcwidth,yaml})
    files=(bin/patroni bin/etcd)
    ;;
*) echo "unpack: unknown name $name; known are prometheus, proxies and patroni" >&2 && exit 2 ;;
esac

# Whether these files are installed or unpacked.
ready() {
    local file
    for file in "${files[@]}"; do
        command -v "${file##*/}" >/dev/null || [ -x "$folder/usr/$file" ] || return 1
    done
}
if ready || ! command -v apt-get >/dev/null; then exit; fi
# scripts/apt-install.sh and other runs of this script wait.
exec 9>"${TMPDIR:-/tmp}/switchyard-apt.lock"
flock 9
if ready; then exit; fi
echo "unpack: ${packages[*]}" >&2
mkdir -p "$folder/package"
(
    cd "$folder/package"
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    apt-get download -qq "${packages[@]}" 2>/dev/null ||
        { $as_root apt-get update -qq && apt-get download -qq "${packages[@]}"; }
) >&2 || echo "unpack: there are no packages; the tests that need $name are skipped" >&2
for package in "$folder"/package/*.deb; do
    [ -e "$package" ] && dpkg -x "$package" "$folder"
done
rm -rf "$folder/package"
