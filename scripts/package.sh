#!/usr/bin/env bash
# Creates an archive of the release binary, licenses and documents in target/package, named by version and platform,
# and its checksum: package.sh [PROGRAM PLATFORM].
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
program=${1:-target/release/switchyard}
name=switchyard-$version-${2:-$(rustc -vV | sed -n 's/^host: //p')}
rm -rf target/package
mkdir -p "target/package/$name"
cp "$program" "target/package/$name/switchyard"
cp -R README.md CHANGELOG.md SECURITY.md LICENSE-APACHE LICENSE-MIT docs monitoring packaging switchyard.example.toml \
    "target/package/$name/"
# Only this machine's: the token that compose.yaml needs.
rm -f "target/package/$name/packaging/admin-token"
cd target/package
# With GNU tar, archives are reproducible: the options below remove owner and time.
reproducible=()
if tar --version 2>/dev/null | grep -q GNU; then
    reproducible=(--sort=name --owner=0 --group=0 --numeric-owner "--mtime=@$(git log -1 --format=%ct)")
fi
tar ${reproducible[@]+"${reproducible[@]}"} -cf - "$name" | gzip -9n >"$name.tar.gz"
rm -rf "$name"
if command -v sha256sum >/dev/null; then sha256sum "$name.tar.gz"; else shasum -a 256 "$name.tar.gz"; fi >"$name.tar.gz.sha256"
cat "$name.tar.gz.sha256"
