//! An expression pays for the bytes of a text before it reads them, so no function of a long text is free.

use std::time::Instant;

use switchyard::budget::{Budget, BudgetExceeded};
use switchyard::query::{Query, Record};

use super::{NOW, RECORD, parse, term};

/// The number of digits of the payload.
const DIGITS: usize = 200_000;
/// The budget: one conversion of the payload fits, two do not.
const WORK: u64 = 300_000;

fn ask(query: &Query, payload: &str) -> Result<bool, BudgetExceeded> {
    let record = Record { payload, ..RECORD };
    query.matches(&record, NOW, &mut Budget::new(WORK))
}

#[test]
fn converting_a_text_costs_its_bytes() {
    let digits = "7".repeat(DIGITS);
    for expression in [
        "payload AND payload",
        "NOT payload OR payload",
        "NOT (NOT payload) + payload",
        "-payload",
        "- - payload",
        "payload IS TRUE AND payload IS NOT FALSE",
        "id IN (payload, payload)",
        "id = payload",
        "modified < payload",
        "id BETWEEN payload AND payload",
        "iif(payload, payload, 1) AND 1",
        "payload + 1",
        "payload % 2",
        "CAST(payload AS INTEGER) + CAST(payload AS REAL)",
        "abs(payload)",
        "round(payload)",
        "round(1, payload)",
        "substr('a', payload, payload)",
        "json_extract(payload, '$')",
        "payload ->> '$'",
        "state ->> payload",
        "state -> payload",
        "json_extract(state, payload) OR json_extract(state, payload)",
    ] {
        let query = term("IS", expression, "2").unwrap();
        assert_eq!(
            ask(&query, &digits),
            Err(BudgetExceeded::Work),
            "{expression}"
        );
        assert!(ask(&query, "7").is_ok(), "{expression}");
    }
}

#[test]
fn escapes_and_keys_cost_their_bytes() {
    let escapes = "\\u0061".repeat(DIGITS / 6);
    let text = format!(r#"{{"a":"{escapes}"}}"#);
    let query = term("IS", "json_extract(payload, '$.a')", "2").unwrap();
    assert_eq!(ask(&query, &text), Err(BudgetExceeded::Work));
    let key = format!(r#"{{"{escapes}":1}}"#);
    let query = term("IS", "json_extract(payload, '$.b')", "2").unwrap();
    assert_eq!(ask(&query, &key), Err(BudgetExceeded::Work));
}

/// Each conversion takes as long as `least` steps, although the text is short.
#[test]
fn converting_a_number_costs_more_than_its_bytes() {
    for (expression, least) in [
        ("'' || 1e-300", 32),
        ("length(1e-300)", 32),
        ("CAST(1e-300 AS TEXT)", 32),
        ("CAST('' AS TEXT) IN (1e-300, 1e-301, 1e-302)", 96),
        ("json_array(1e-300)", 32),
        ("round(5e-324, 9)", 64),
        ("'1e-300' + 1", 16),
    ] {
        let query = term("IS", expression, "2").unwrap();
        let mut budget = Budget::new(WORK);
        query.matches(&RECORD, NOW, &mut budget).unwrap();
        let spent = WORK - budget.remaining();
        assert!(spent >= least, "{expression}: {spent}");
    }
}

#[test]
fn trimming_pays_for_each_character_before_reading_it() {
    let query = term("IS", "trim(payload, payload)", "2").unwrap();
    assert_eq!(ask(&query, &"a".repeat(1_000)), Err(BudgetExceeded::Work));
    assert_eq!(ask(&query, &"a".repeat(100)), Ok(false));
}

#[test]
fn a_pattern_that_fails_early_costs_little_on_a_long_text() {
    let query = term("LIKE", "payload", "'x%'").unwrap();
    assert_eq!(ask(&query, &"7".repeat(2_000_000)), Ok(false));
}

#[test]
fn a_query_with_many_conversions_stops_at_its_budget() {
    let sum = format!("id IN ({}1)", "payload,".repeat(200));
    let terms = vec![["IS NOT", sum.as_str(), "1"]; 32];
    let query = parse(&serde_json::json!(terms).to_string());
    let digits = "7".repeat(1_900_000);
    let record = Record {
        payload: &digits,
        ..RECORD
    };
    let mut work = Budget::new(5_000_000);
    assert_eq!(
        query.matches(&record, NOW, &mut work),
        Err(BudgetExceeded::Work)
    );
}

#[test]
fn a_query_stops_at_its_deadline() {
    let query = term("IS", "payload + 1", "2").unwrap();
    let digits = "7".repeat(DIGITS);
    let record = Record {
        payload: &digits,
        ..RECORD
    };
    let mut late = Budget::unlimited().with_deadline(Instant::now());
    assert_eq!(
        query.matches(&record, NOW, &mut late),
        Err(BudgetExceeded::Time)
    );
}
