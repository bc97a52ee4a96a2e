//! Links in the documentation lead to files and headings that exist, and the table of contents has every page.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::{root, sources};

/// The pages: those in `docs`, and those beside it.
const PAGES: [&str; 8] = [
    "docs",
    "README.md",
    "CHANGELOG.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "clients",
    "monitoring",
];

const SUMMARY: &str = "docs/SUMMARY.md";

/// A page without its code blocks.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The targets of the links and pictures in a page.
fn targets(text: &str) -> Vec<String> {
    let links = text.split("](").skip(1);
    let mut found: Vec<String> = links
        .filter_map(|rest| Some(rest.split_once(')')?.0.split_whitespace().collect()))
        .collect();
    for attribute in ["src=\"", "srcset=\"", "href=\""] {
        let parts = text.split(attribute).skip(1);
        found.extend(parts.filter_map(|part| Some(part.split_once('"')?.0.to_owned())));
    }
    found
}

/// The anchors of the headings of a page, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let text = prose(text);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let title = title.replace(' ', "-");
            let kept = |c: &char| c.is_alphanumeric() || *c == '-' || *c == '_';
            title.chars().filter(kept).collect()
        })
        .collect()
}

/// The path of a link's target, relative to the repository.
fn resolved(page: &str, target: &str) -> PathBuf {
    let mut path = PathBuf::from(page);
    path.pop();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{page}: {target} leaves the repository"),
            part => path.push(part),
        }
    }
    path
}

#[test]
fn links_in_the_documentation_have_targets() {
    let pages = sources(&PAGES);
    let mut checked = 0;
    for page in pages.iter().filter(|page| page.path.ends_with(".md")) {
        for target in targets(&prose(&page.text)) {
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = match file {
                "" => PathBuf::from(&page.path),
                file => resolved(&page.path, file),
            };
            let what = format!("{}: {target}", page.path);
            assert!(root().join(&path).exists(), "{what}");
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(root().join(&path)).unwrap();
                assert!(
                    anchors(&text).contains(anchor),
                    "{what} has no such heading"
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 200, "{checked} links");
}

#[test]
fn the_table_of_contents_has_every_page() {
    let pages = sources(&["docs"]);
    let summary = pages.iter().find(|page| page.path == SUMMARY).unwrap();
    let listed: BTreeSet<PathBuf> = targets(&summary.text)
        .iter()
        .filter(|target| !target.is_empty())
        .map(|target| resolved(SUMMARY, target))
        .collect();
    let is_page = |path: &str| path.ends_with(".md") && path != SUMMARY;
    for page in pages.iter().filter(|page| is_page(&page.path)) {
        let path = Path::new(&page.path);
        assert!(listed.contains(path), "{} is not listed", page.path);
    }
    for page in listed {
        assert!(root().join(&page).exists(), "{}", page.display());
    }
}
