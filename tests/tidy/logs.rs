//! `docs/logs.md` lists all warnings and errors.

use std::collections::BTreeSet;
use std::fs;

use super::{assert_none, root, sources};

/// The texts between quotes; quotes within a text are escaped.
fn literals(code: &str) -> Vec<String> {
    let (mut found, mut text, mut is_inside) = (Vec::new(), String::new(), false);
    let mut chars = code.chars();
    while let Some(c) = chars.next() {
        match (c, is_inside) {
            ('"', true) => found.push(std::mem::take(&mut text)),
            ('"', false) => {}
            ('\\', true) => text.extend(chars.next()),
            (c, true) => text.push(c),
            (_, false) => {}
        }
        is_inside ^= c == '"';
    }
    found
}

/// The arguments of a macro or function whose opening parenthesis has been read.
fn arguments(code: &str) -> &str {
    let (mut depth, mut is_inside, mut before) = (1, false, ' ');
    let end = code.find(|c| {
        is_inside ^= c == '"' && before != '\\';
        before = c;
        depth += match c {
            '(' if !is_inside => 1,
            ')' if !is_inside => -1,
            _ => 0,
        };
        depth == 0
    });
    code.split_at(end.expect("a closing parenthesis")).0
}

/// The message with `…` for each part that varies.
fn pattern(message: &str) -> String {
    let mut parts = message.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once('}').map_or("", |(_, rest)| rest));
    rest.fold(first, |text, part| format!("{text}…{part}"))
}

#[test]
fn all_warnings_and_errors_are_documented() {
    let docs = fs::read_to_string(root().join("docs/logs.md")).unwrap();
    let documented: BTreeSet<&str> = docs.split('`').skip(1).step_by(2).collect();
    let (mut missing, mut seen) = (Vec::new(), 0);
    for source in sources(&["src"]) {
        let code = source.text.split("#[cfg(test)]").next().unwrap();
        // The dashboard logs some errors in a function that gets the message.
        for start in ["warn!(", "error!(", " unavailable("] {
            for rest in code.split(start).skip(1) {
                let Some(message) = literals(arguments(rest)).pop() else {
                    continue;
                };
                seen += 1;
                let pattern = pattern(&message);
                if !documented.contains(&*pattern) {
                    missing.push(format!("{}: {pattern}", source.path));
                }
            }
        }
    }
    assert!(seen > 40, "the messages are found: {seen}");
    assert_none(&missing, "docs/logs.md lists all warnings and errors");
}
