//! The five requests in `ARCHITECTURE.md` name files and items that exist.

use std::fs;

use super::{assert_none, root};

/// The names in backticks of a text, in order.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether a source defines this item: the last part of a path such as `Engine::put`.
fn defines(text: &str, item: &str) -> bool {
    let name = item.rsplit("::").next().unwrap_or(item);
    let kinds = [
        "fn", "struct", "enum", "trait", "type", "const", "static", "mod",
    ];
    kinds.iter().any(|kind| {
        let definition = format!("{kind} {name}");
        text.match_indices(&definition).any(|(at, _)| {
            let rest = text.get(at + definition.len()..).unwrap_or_default();
            !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    })
}

/// In the section "Five requests", each file exists, and defines the items that are named before it.
#[test]
fn the_five_requests_name_existing_files_and_items() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, requests) = text.split_once("## Five requests").expect("the section");
    let (requests, _) = requests.split_once("\n## ").expect("the next section");
    let (mut wrong, mut files) = (Vec::new(), 0);
    for row in requests.lines().filter(|line| line.starts_with("| ")) {
        let mut items = Vec::new();
        for span in code_spans(row) {
            if !span.ends_with(".rs") {
                items.push(span);
                continue;
            }
            files += 1;
            let source = fs::read_to_string(root().join("src").join(span)).unwrap_or_default();
            if source.is_empty() {
                wrong.push(format!("{span} does not exist"));
            }
            for item in items.drain(..) {
                let is_name = |c: char| c.is_alphanumeric() || "_:".contains(c);
                if item.chars().all(is_name) && !defines(&source, item) {
                    wrong.push(format!("{span} does not define {item}"));
                }
            }
        }
    }
    assert!(files > 20, "the five requests name files: {files}");
    assert_none(
        &wrong,
        "the five requests in ARCHITECTURE.md name existing items",
    );
}
