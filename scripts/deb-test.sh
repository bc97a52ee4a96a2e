#!/usr/bin/env bash
# Builds the Debian package from a program and tests it: scripts/deb-test.sh PROGRAM. As root, it also installs, upgrades,
# removes and purges the package in a copy of this machine's file system, which is discarded afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "deb-test: $*" >&2; exit 1; }
command -v dpkg-deb >/dev/null || { echo "deb-test: skipped, dpkg-deb is not installed" >&2; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=$(COMPRESSION=none scripts/deb.sh "$1" "$work")
dpkg-deb -I "$package" >"$work/info"
dpkg-deb -c "$package" >"$work/content"
grep -q 'Package: switchyard' "$work/info" || fail "no name"
for file in usr/bin/switchyard lib/systemd/system/switchyard.service etc/switchyard/switchyard.toml \
    usr/share/man/man1/switchyard.1.gz usr/share/bash-completion/completions/switchyard \
    usr/share/zsh/vendor-completions/_switchyard usr/share/fish/vendor_completions.d/switchyard.fish \
    lib/systemd/system/switchyard-backup.timer usr/share/doc/switchyard/monitoring/alerts.yml \
    usr/share/doc/switchyard/packaging/proxies/nginx.conf usr/share/doc/switchyard/copyright usr/share/doc/switchyard/docs/operations.md; do
    grep -q " ./$file\$" "$work/content" || fail "$file is missing"
done
awk '$2 != "root/root"' "$work/content" | grep . && fail "files do not belong to root"
command -v systemd-analyze >/dev/null && systemd-analyze security --offline=true --threshold=20 \
    packaging/switchyard.service | tail -1
[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || { echo "deb-test: package built; not root, so not installed"; exit 0; }

# The upper layer must not be on an overlay itself.
mkdir "$work/layers"
package="$package" work="$work" unshare -m bash -euo pipefail <<'EOF'
fail() { echo "deb-test: $*" >&2; exit 1; }
mount -t tmpfs tmpfs "$work/layers"
mkdir "$work/layers/"{upper,inner,root}
root=$work/layers/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/layers/upper,workdir=$work/layers/inner" "$root"
mount -t proc proc "$root/proc"
cp "$package" "$root/switchyard.deb"
inside() { chroot "$root" "$@"; }
export DEBIAN_FRONTEND=noninteractive
inside dpkg -i /switchyard.deb >/dev/null
[ "$(inside stat -c '%U %a' /var/lib/switchyard)" = "switchyard 700" ] || fail "the folder of the database"
[ "$(inside stat -c '%U:%G %a' /etc/switchyard/switchyard.toml)" = "root:switchyard 640" ] || fail "the configuration"
as=(chroot "$root" setpriv --reuid=switchyard --regid=switchyard --clear-groups env -C /var/lib/switchyard
    SWITCHYARD_CONFIG=/etc/switchyard/switchyard.toml)
"${as[@]}" switchyard config check >/dev/null || fail "the configuration is not valid"
inside man -P cat switchyard 2>/dev/null | grep -q 'empty-queue-age' || echo "deb-test: man is not installed; the page is not shown"

# The server stores a job and stops.
"${as[@]}" switchyard serve --listen 127.0.0.1:0 >"$work/banner" &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
for _ in $(seq 200); do grep -q 'listening on' "$work/banner" && break; sleep 0.05; done
address=$(sed -n 's/^listening on //p' "$work/banner")
curl -sSf --max-time 10 --noproxy '*' "$address/add/work" -d '{"data": {"id": "kept", "meta": 1}}' >/dev/null
curl -sSf --max-time 10 --noproxy '*' "$address/health" >/dev/null
kill "$server"
wait "$server" || fail "the server does not stop"
"${as[@]}" switchyard backup /var/lib/switchyard/backup >/dev/null || fail "the backup"
"${as[@]}" switchyard doctor >"$work/doctor" || { cat "$work/doctor"; fail "doctor finds problems"; }

# An upgrade keeps a changed configuration and the jobs.
echo '# changed' >>"$root/etc/switchyard/switchyard.toml"
inside dpkg -i /switchyard.deb >/dev/null
tail -1 "$root/etc/switchyard/switchyard.toml" | grep -q changed || fail "the upgrade replaced the configuration"
inside dpkg -r switchyard >/dev/null
[ ! -e "$root/usr/bin/switchyard" ] || fail "the program is not removed"
[ -e "$root/etc/switchyard/switchyard.toml" ] || fail "removal deleted the configuration"
inside dpkg -P switchyard >/dev/null
[ ! -e "$root/etc/switchyard" ] || fail "purge kept the configuration"
[ -e "$root/var/lib/switchyard/switchyard.db" ] || fail "purge deleted the jobs"
echo "deb-test: installed, used, upgraded, removed and purged"
EOF
