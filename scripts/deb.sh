#!/usr/bin/env bash
# Builds the Debian package from a program with `dpkg-deb`: scripts/deb.sh PROGRAM FOLDER. Prints the path of the package.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1")
folder=$2
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
arch=$(dpkg --print-architecture)
mkdir -p "$folder"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

put() { install -D -m "$1" "$2" "$root/$3"; }
put 755 "$program" usr/bin/switchyard
for unit in switchyard.service switchyard-backup.service switchyard-backup.timer; do
    put 644 packaging/$unit lib/systemd/system/$unit
done
doc=usr/share/doc/switchyard
for file in README.md LICENSE-MIT packaging/deb/copyright; do put 644 "$file" "$doc/$(basename "$file")"; done
(cd docs && find . -name '*.md') | while read -r file; do put 644 "docs/$file" "$doc/docs/$file"; done
for file in monitoring/* packaging/proxies/*; do put 644 "$file" "$doc/$file"; done
gzip -9n <CHANGELOG.md >"$root/$doc/changelog.gz"
# Written by the program, so that they fit it. Its configuration must not come from this machine.
run() { env -i PATH="$PATH" "$program" "$@"; }
write() { mkdir -p "$root/$(dirname "$1")" && cat >"$root/$1"; }
run completions bash | write usr/share/bash-completion/completions/switchyard
run completions zsh | write usr/share/zsh/vendor-completions/_switchyard
run completions fish | write usr/share/fish/vendor_completions.d/switchyard.fish
run man | gzip -9n | write usr/share/man/man1/switchyard.1.gz
run config example |
    sed 's|^#database = .*|database = "sqlite:///var/lib/switchyard/switchyard.db"|' | write etc/switchyard/switchyard.toml
chmod 640 "$root/etc/switchyard/switchyard.toml"

mkdir "$root/DEBIAN"
for script in postinst prerm postrm; do install -m 755 "packaging/deb/$script" "$root/DEBIAN/$script"; done
echo /etc/switchyard/switchyard.toml >"$root/DEBIAN/conffiles"
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
# The newest symbols of the C library that the program uses.
libc=$(grep -aoE 'GLIBC_2\.[0-9]+' "$program" | sort -uV | tail -1 | sed 's/GLIBC_//')
cat >"$root/DEBIAN/control" <<EOF
Package: switchyard
Version: $version
Architecture: $arch
Maintainer: The authors of Switchyard <maintainers@switchyard.invalid>
Section: net
Priority: optional
Depends: libc6 (>= ${libc:-2.31}), libgcc-s1, adduser
Recommends: ca-certificates
Suggests: postgresql
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Description: durable job queue server with a live dashboard
 Switchyard serves clients of qless, lmstfy, Relay and Jobq from one durable
 engine over SQLite or PostgreSQL, with a dashboard in the same binary.
EOF
package=$folder/switchyard_${version}_$arch.deb
dpkg-deb --root-owner-group "-Z${COMPRESSION:-xz}" --build "$root" "$package" >&2
echo "$package"
