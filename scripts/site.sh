#!/usr/bin/env bash
# Builds the dashboard's files in target/site: style sheet, script, WebAssembly and the files of public/, each also
# compressed. These are the steps of `cargo leptos build --release --frontend-only`; compiling cargo-leptos for them would
# take longer than all of them, so only `make watch` uses it.
set -euo pipefail
cd "$(dirname "$0")/.."
site=target/site
rm -rf "$site"
mkdir -p "$site/ui/pkg"
tailwindcss --input style/main.css --output "$site/ui/pkg/switchyard.css" --minify
cargo build --locked --lib --target wasm32-unknown-unknown --features hydrate --profile wasm-release --target-dir target/front
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bindgen target/front/wasm32-unknown-unknown/wasm-release/switchyard.wasm "$work"
# The name that Leptos' hydration script expects.
wasm-opt -Oz --enable-bulk-memory --enable-nontrapping-float-to-int "$work/switchyard_bg.wasm" -o "$site/ui/pkg/switchyard.wasm"
esbuild "$work/switchyard.js" --minify --format=esm --log-level=warning --outfile="$site/ui/pkg/switchyard.js"
cp -R public/. "$site/"
node --input-type=module - "$site" <<'JS'
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";

const site = process.argv[2];
for (const file of readdirSync(site, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())) {
  const path = join(file.parentPath ?? file.path, file.name);
  const content = readFileSync(path);
  writeFileSync(`${path}.br`, brotliCompressSync(content)); // the highest quality is the default
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
}
JS
