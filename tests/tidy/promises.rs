//! `docs/promises.md` names tests that exist.

use std::fs;

use super::{assert_none, root};

/// Whether a source has a test function of this name.
fn has_test(source: &str, name: &str) -> bool {
    let definition = format!("fn {name}(");
    source.match_indices(&definition).any(|(at, _)| {
        let before = source.get(..at).unwrap_or_default();
        let attributes = before.lines().rev().take(3);
        let mut attributes = attributes.map(str::trim);
        attributes.any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"))
    })
}

/// Each row of a table with numbered promises names files, and before each file the tests in it.
#[test]
fn each_promise_names_existing_tests() {
    let text = fs::read_to_string(root().join("docs/promises.md")).unwrap();
    let (mut wrong, mut promises) = (Vec::new(), 0);
    for row in text.lines() {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (Some(number), Some(_), Some(tests)) = (cells.next(), cells.next(), cells.next())
        else {
            continue;
        };
        if number.parse() != Ok(promises + 1) {
            continue;
        }
        promises += 1;
        let (mut names, mut files) = (Vec::new(), 0);
        for span in tests.split('`').skip(1).step_by(2) {
            if !span.ends_with(".rs") {
                names.push(span);
                continue;
            }
            files += 1;
            let source = fs::read_to_string(root().join("tests").join(span)).unwrap_or_default();
            for name in names.drain(..) {
                if !has_test(&source, name) {
                    wrong.push(format!("{promises}: tests/{span} has no test {name}"));
                }
            }
        }
        if files == 0 || !names.is_empty() {
            wrong.push(format!(
                "{promises}: a promise names its tests and their file"
            ));
        }
    }
    assert!(promises > 20, "the promises are numbered: {promises}");
    assert_none(&wrong, "docs/promises.md names existing tests");
}
