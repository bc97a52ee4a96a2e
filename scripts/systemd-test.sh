#!/usr/bin/env bash
# Installs the Debian package of a program under a real systemd: scripts/systemd-test.sh PROGRAM, as root. systemd boots in
# namespaces of its own (processes, network, mounts, cgroups) on a copy of this machine's file system, which is discarded
# afterwards, and starts, watches, reloads, backs up, upgrades and removes the server.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "systemd-test: must be run as root" >&2; exit 1; }
[ -x /lib/systemd/systemd ] || { echo "systemd-test: systemd is not installed" >&2; exit 1; }
work=$(mktemp -d)
# systemd believes that it is the first process of a machine, so its cgroup must contain nothing else.
cgroups=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET)
cgroup=$cgroups/switchyard-test-$$
mkdir "$cgroup" "$work/layers"
boot=
cleanup() {
    [ -z "$boot" ] || { kill -KILL "$boot" && wait "$boot"; } 2>/dev/null || true
    for _ in $(seq 100); do
        find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null && break
        sleep 0.1
    done
    rm -rf "$work"
}
trap cleanup EXIT
COMPRESSION=none scripts/deb.sh "$1" "$work" >/dev/null 2>&1
mv "$work"/switchyard_*.deb "$work/switchyard.deb"

cat >"$work/boot" <<'END'
set -euo pipefail
mount --make-rprivate /
mount -t tmpfs tmpfs "$work/layers"
# The upper layer must not be on an overlay itself.
mkdir "$work/layers/"{upper,inner,root}
root=$work/layers/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/layers/upper,workdir=$work/layers/inner" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for folder in run tmp dev; do mount -t tmpfs tmpfs "$root/$folder"; done
mkdir "$root/dev/shm" "$root/dev/pts"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s null "$root/dev/console"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
cp "$work/switchyard.deb" "$root/switchyard.deb"
# No service of this machine starts, except basic ones such as the journal and the one that creates temporary files.
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/systemd/network
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
ip link set lo up
# Not chroot: services with mounts of their own need a real root.
mkdir "$root/old"
cd "$root"
pivot_root . old
umount --lazy /old
exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target </dev/null
END
export work
(
    echo "$BASHPID" >"$cgroup/cgroup.procs"
    exec unshare --pid --fork --kill-child --mount --net --ipc --uts --cgroup bash "$work/boot"
) >"$work/log" 2>&1 </dev/null &
boot=$!

fail() {
    echo "systemd-test: $*" >&2
    inside journalctl --no-pager --lines=40 >&2 || cat "$work/log" >&2
    exit 1
}
inside() {
    local init
    init=$(cat "/proc/$boot/task/$boot/children")
    nsenter --target "${init% }" --pid --mount --net --ipc --uts --cgroup --root --wd env -i \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive HOME=/root "$@"
}
property() { inside systemctl show --value --property "$1" switchyard.service; }
request() { inside curl -sSf --max-time 10 --noproxy '*' "http://127.0.0.1:3000$1" "${@:2}"; }
# wait_for SECONDS COMMAND…
wait_for() {
    local seconds=$1
    shift
    for _ in $(seq $((seconds * 10))); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.1
    done
    fail "timed out after $seconds s: $*"
}
step() { echo "systemd-test: $*"; }

wait_for 60 inside systemctl is-active basic.target
step "$(inside systemctl --version | head -1) is running"

inside dpkg -i /switchyard.deb >/dev/null 2>&1 || fail "dpkg -i"
[ "$(property ActiveState)/$(property SubState)/$(property Type)" = active/running/notify ] || fail "the service is not ready after dpkg -i"
inside systemctl is-enabled switchyard.service >/dev/null || fail "the service is not enabled"
request /health >/dev/null || fail "/health does not answer, although the service has reported that it is ready"
request /add/work -d '{"data": {"id": "kept", "meta": 1}}' >/dev/null
step "installed, enabled and ready: $(property StatusText)"
inside systemd-analyze security --threshold=20 switchyard.service | tail -1

first=$(property MainPID)
inside kill -KILL "$first"
restarted() { [ "$(property MainPID)" -gt 0 ] && [ "$(property MainPID)" != "$first" ] && [ "$(property ActiveState)" = active ]; }
wait_for 20 restarted
request /job/kept >/dev/null || fail "the job is lost after a kill"
step "restarted after SIGKILL, the job is kept"

second=$(property MainPID)
echo 'RUST_LOG=debug' | inside tee /etc/default/switchyard >/dev/null
inside systemctl reload switchyard.service || fail "reload"
[ "$(property MainPID)" = "$second" ] || fail "a reload must not restart the server"
step "reloaded: $(property StatusText)"

inside systemctl enable --now switchyard-backup.timer >/dev/null 2>&1 || fail "the timer"
inside systemctl start switchyard-backup.service || fail "the backup"
inside sh -c 'ls /var/lib/switchyard-backups/switchyard-*.db' >/dev/null || fail "there is no backup"
step "backup: $(inside sh -c 'du -k /var/lib/switchyard-backups/*.db')"

inside dpkg -i /switchyard.deb >/dev/null 2>&1 || fail "the upgrade"
[ "$(property ActiveState)" = active ] && [ "$(property MainPID)" != "$second" ] || fail "an upgrade must restart the server"
step "upgraded and restarted"

inside systemctl stop switchyard.service
[ "$(property Result)/$(property ExecMainStatus)" = success/0 ] || fail "the server does not stop properly"
inside sh -c 'cp /var/lib/switchyard-backups/switchyard-*.db /var/lib/switchyard/restore.db && chown switchyard: /var/lib/switchyard/restore.db'
inside setpriv --reuid=switchyard --regid=switchyard --clear-groups env -C /var/lib/switchyard \
    SWITCHYARD_CONFIG=/etc/switchyard/switchyard.toml switchyard restore --force restore.db || fail "restore"
inside systemctl start switchyard.service || fail "start after the restore"
request /job/kept >/dev/null || fail "the job is not in the backup"
step "stopped, restored and started"

inside dpkg -r switchyard >/dev/null 2>&1 || fail "dpkg -r"
if inside systemctl is-active switchyard.service >/dev/null; then fail "removal left the server running"; fi
inside dpkg -P switchyard >/dev/null 2>&1 || fail "dpkg -P"
step "removed and purged"
