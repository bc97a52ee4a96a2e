//! No input makes the server panic.

use proptest::prelude::*;
use proptest::sample::Index;
use switchyard::budget::Budget;
use switchyard::query::{Query, are_equal, minified};

use super::expressions::{expression, json_text};
use super::{NOW, RECORD, term};

fn ask(query: &str) {
    if let Ok(query) = Query::parse(query) {
        let mut work = Budget::new(1_000_000);
        query.matches(&RECORD, NOW, &mut work).ok();
    }
}

fn send_query(expression: &str) {
    match term("=", expression, "1") {
        Ok(query) => {
            let mut work = Budget::new(1_000_000);
            query.matches(&RECORD, NOW, &mut work).ok();
        }
        Err(refused) => assert!(!refused.to_string().is_empty() && refused.part.is_some()),
    }
}

/// Words of the grammar, and some that it must reject.
const WORDS: [&str; 56] = [
    "id",
    "j.",
    "payload",
    "state",
    "1",
    "0x",
    "1e",
    "'a'",
    "'",
    "\"",
    "`",
    "(",
    ")",
    ",",
    ".",
    "=",
    "==",
    "!",
    "<",
    ">",
    "+",
    "-",
    "*",
    "/",
    "%",
    "|",
    "||",
    "->",
    "->>",
    "AND",
    "OR",
    "NOT",
    "IS",
    "NULL",
    "ISNULL",
    "NOTNULL",
    "IN",
    "()",
    "BETWEEN",
    "LIKE",
    "ESCAPE",
    "CAST",
    "AS",
    "TEXT",
    "CASE",
    "SELECT",
    "WINDOW",
    "OVER",
    "FILTER",
    ";",
    "--",
    "/*",
    "json_extract(",
    "\u{0}",
    "é",
    "RAISE(",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_or_rejected(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        ask(&text);
        send_query(&text);
        send_query(&String::from_utf8_lossy(&bytes));
        minified(&text).ok();
        are_equal(&text, &text);
    }

    #[test]
    fn any_sequence_of_words_is_parsed_or_rejected(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..30)) {
        send_query(&words.join(" "));
        send_query(&words.concat());
    }

    #[test]
    fn a_truncated_expression_is_parsed_or_rejected(text in expression(), cuts in prop::collection::vec((any::<Index>(), any::<Index>()), 1..4)) {
        let mut chars: Vec<char> = text.chars().collect();
        for (one, two) in cuts {
            if !chars.is_empty() {
                let (one, two) = (one.index(chars.len()), two.index(chars.len()));
                chars.swap(one, two);
                chars.remove(one);
            }
        }
        send_query(&chars.into_iter().collect::<String>());
    }

    #[test]
    fn any_job_can_be_queried(text in expression(), json in json_text(), garbage in any::<String>()) {
        if let Ok(query) = term("IS", &text, "1") {
            for text in [&json, &garbage] {
                let record = switchyard::query::Record { payload: text, state: Some(text), events: text, ..RECORD };
                let mut work = Budget::new(1_000_000);
                query.matches(&record, NOW, &mut work).ok();
            }
        }
    }
}
