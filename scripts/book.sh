#!/usr/bin/env bash
# Builds the documentation as a site, in target/book/html. It needs no other site: fonts and the search are part of it.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh book
book=target/book
rm -rf $book
mkdir -p $book/src
cp book.toml $book/
# Pages refer to files beside docs/, so the copy has the same layout.
cp -R README.md CHANGELOG.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md LICENSE-APACHE LICENSE-MIT \
    switchyard.example.toml docs monitoring packaging clients $book/src/
mkdir -p $book/src/src/http && cp -R src/http/openapi $book/src/src/http/
# The summary is one level above its pages.
sed -E -e 's#\]\(\.\./#](#' -e t -e 's#\]\(([a-z])#](docs/\1#' $book/src/docs/SUMMARY.md >$book/src/SUMMARY.md
rm $book/src/docs/SUMMARY.md
.tools/bin/mdbook build $book
# Every link to a page leads to a page that exists; tests/tidy/links.rs checks the sources with their anchors.
python3 - $book/html <<'END'
import html.parser, os, sys, urllib.parse
root, broken = sys.argv[1], []
class Links(html.parser.HTMLParser):
    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value: self.links.append(value)
for folder, _, files in os.walk(root):
    for name in files:
        if not name.endswith(".html"): continue
        page, parser = os.path.join(folder, name), Links()
        parser.links = []
        parser.feed(open(page, encoding="utf-8").read())
        for link in parser.links:
            at = urllib.parse.urlsplit(link)
            if at.scheme or at.netloc or not at.path: continue
            # 404.html has a <base> at the root of the site.
            base = root if at.path.startswith("/") or name == "404.html" else folder
            target = os.path.normpath(os.path.join(base, urllib.parse.unquote(at.path).lstrip("/")))
            if not os.path.exists(target): broken.append(f"{os.path.relpath(page, root)}: {link}")
for line in sorted(set(broken)): print("book: broken link:", line, file=sys.stderr)
sys.exit(1 if broken else 0)
END
echo "book: $book/html/index.html"
