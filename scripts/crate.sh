#!/usr/bin/env bash
# Makes the package for a registry of crates, target/crate/switchyard-VERSION.crate: the server's source with the built
# dashboard, and with the features of a release as the default. Then installs it as `cargo install` does, in
# target/crate/installed, and checks that the installed server has the dashboard.
set -euo pipefail
cd "$(dirname "$0")/.."
crate=$PWD/target/crate
rm -rf "$crate"
mkdir -p "$crate/source"
git ls-files -z Cargo.toml Cargo.lock build.rs README.md CHANGELOG.md 'LICENSE-*' src migrations |
    xargs -0 cp --parents --target-directory "$crate/source"
cp -r target/site "$crate/source/site"
sed -i 's/^\[features\]$/&\ndefault = ["embed-site", "otlp"]/; /^publish = false$/d' "$crate/source/Cargo.toml"
# An outer repository ignores this folder, so cargo would package nothing.
git init --quiet "$crate/source"
git -C "$crate/source" add --all
(cd "$crate/source" && cargo package --quiet --locked --allow-dirty --no-verify --target-dir "$crate/build")
mv "$crate"/build/package/switchyard-*.crate "$crate"
mkdir "$crate/unpacked"
tar -xf "$crate"/switchyard-*.crate -C "$crate/unpacked" --strip-components 1
# The dependencies are those of other builds with this profile.
cargo install --quiet --locked --path "$crate/unpacked" --root "$crate/installed" --profile serve --target-dir target --no-track

program=$crate/installed/bin/switchyard
(cd "$crate" && exec "$program" serve --listen 127.0.0.1:0 --database sqlite::memory:) >"$crate/banner" &
server=$!
trap 'kill "$server"' EXIT
for _ in $(seq 200); do grep -q 'listening on' "$crate/banner" && break; sleep 0.05; done
address=$(sed -n 's/^listening on //p' "$crate/banner")
page=$(curl -sSf --noproxy '*' "$address/ui")
for file in $(grep -o '/ui/pkg/[^"]*\.\(css\|js\|wasm\)' <<<"$page" | sort -u); do
    curl -sSf --noproxy '*' --output /dev/null "$address$file"
    echo "crate: the installed server has $file"
done
grep -q '/ui/pkg/[^"]*\.css' <<<"$page"
du -h "$crate"/switchyard-*.crate
