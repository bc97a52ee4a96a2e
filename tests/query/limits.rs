//! Each limit, at and above it.

use switchyard::budget::{Budget, BudgetExceeded};
use switchyard::query::{DEPTH_MAX, EXPRESSION_BYTES_MAX, Query, Record, TERMS_MAX, TOKENS_MAX};

use super::{NOW, RECORD, term};

#[test]
fn the_number_of_terms_is_limited() {
    let terms = |count: usize| serde_json::json!(vec![["=", "id", "42"]; count]).to_string();
    assert!(Query::parse(&terms(TERMS_MAX - 1)).is_ok());
    assert!(Query::parse(&terms(TERMS_MAX)).is_ok());
    let refused = Query::parse(&terms(TERMS_MAX + 1)).unwrap_err();
    assert_eq!(refused.term, Some(TERMS_MAX));
}

#[test]
fn the_bytes_of_an_expression_are_limited() {
    let text = |bytes: usize| format!("'{}'", "a".repeat(bytes - 2));
    assert!(term("=", "id", &text(EXPRESSION_BYTES_MAX - 1)).is_ok());
    assert!(term("=", "id", &text(EXPRESSION_BYTES_MAX)).is_ok());
    assert!(term("=", "id", &text(EXPRESSION_BYTES_MAX + 1)).is_err());
}

#[test]
fn the_tokens_of_an_expression_are_limited() {
    let sum = |words: usize| format!("{}-1", "1+".repeat((words - 2) / 2));
    assert!(term("=", "id", &sum(TOKENS_MAX)).is_ok());
    assert!(term("=", "id", &sum(TOKENS_MAX + 2)).is_err());
    let list = format!("id IN ({}1)", "1,".repeat(300));
    assert!(term("=", &list, "1").is_err());
}

/// On a small stack, because requests run on one.
#[test]
fn the_nesting_of_an_expression_is_limited() {
    let on_small_stack = || {
        let ask = |text: &str| {
            let query = term("=", text, "1")?;
            let mut work = Budget::new(1_000_000);
            query.matches(&RECORD, NOW, &mut work).unwrap();
            Ok::<(), switchyard::query::QueryError>(())
        };
        let parentheses = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        ask(&parentheses(DEPTH_MAX - 1)).unwrap();
        ask(&parentheses(DEPTH_MAX)).unwrap();
        let refused = ask(&parentheses(DEPTH_MAX + 1)).unwrap_err();
        assert_eq!(refused.column, Some(DEPTH_MAX + 1));
        ask(&format!("{}id", "- ".repeat(DEPTH_MAX))).unwrap();
        ask(&format!("{}id", "- ".repeat(DEPTH_MAX + 1))).unwrap_err();
        ask(&format!("{}1", "NOT ".repeat(400))).unwrap_err();
        let calls = |depth: usize| format!("{}1{}", "abs(".repeat(depth), ")".repeat(depth));
        ask(&calls(DEPTH_MAX)).unwrap();
        ask(&calls(DEPTH_MAX + 1)).unwrap_err();
        ask(&format!("{}id", "1 + ".repeat(255))).unwrap();
        ask(&format!("{}id", "id OR ".repeat(255))).unwrap();
        let concat = format!("{}1{}", "1||(".repeat(99), ")".repeat(99));
        ask(&concat).map_err(|refused| refused.to_string()).ok();
    };
    let thread = std::thread::Builder::new().stack_size(1024 * 1024);
    thread.spawn(on_small_stack).unwrap().join().unwrap();
}

#[test]
fn the_texts_of_an_expression_are_limited() {
    let asked = |left: &str, payload: &str| {
        let record = Record { payload, ..RECORD };
        let mut work = Budget::new(100_000_000);
        let query = term("=", left, "1").unwrap();
        query.matches(&record, NOW, &mut work)
    };
    for (bytes, expected) in [
        (1_048_575, Ok(true)),
        (1_048_576, Ok(true)),
        (1_048_577, Err(BudgetExceeded::Text)),
    ] {
        let payload = "x".repeat(bytes - 1);
        let made = asked("(payload || '1') IS NOT NULL", &payload);
        assert_eq!(made, expected, "a text of {bytes} bytes");
    }
    // As in SQLite, a longer pattern matches nothing.
    for (bytes, is_pattern) in [(49_999, true), (50_000, true), (50_001, false)] {
        let payload = "%".repeat(bytes);
        let liked = asked("('text' LIKE payload) IS NOT NULL", &payload);
        assert_eq!(liked, Ok(is_pattern), "a pattern of {bytes} bytes");
    }
    for (depth, is_valid) in [(999, true), (1_000, true), (1_001, false)] {
        let payload = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let valid = asked("json_valid(payload)", &payload);
        assert_eq!(valid, Ok(is_valid), "JSON nested {depth} deep");
    }
}

#[test]
fn a_query_must_be_a_list_of_triples() {
    for (query, term, part) in [
        ("null", None, None),
        ("", None, None),
        ("{}", None, None),
        ("1", None, None),
        ("[null]", Some(0), None),
        (r#"[["=","id"]]"#, Some(0), None),
        (r#"[["=","id",1,2]]"#, Some(0), None),
        (r#"[["=","id",1],["~","id",1]]"#, Some(1), Some(0)),
        (r#"[[null,"id",1]]"#, Some(0), Some(0)),
        (r#"[["=",[],1]]"#, Some(0), Some(1)),
        (r#"[["=",1,{}]]"#, Some(0), Some(2)),
        (r#"[["=",1,"\ud800"]]"#, Some(0), Some(2)),
    ] {
        let refused = Query::parse(query).unwrap_err();
        assert_eq!(
            (refused.term, refused.part),
            (term, part),
            "{query}: {refused}"
        );
    }
}

#[test]
fn numbers_in_queries_are_exact() {
    let holds = |query: &str| {
        let mut work = Budget::new(1_000_000);
        let query = Query::parse(query).unwrap();
        query.matches(&RECORD, NOW, &mut work).unwrap()
    };
    assert!(holds(
        r#"[["=",9223372036854775807,"9223372036854775807"]]"#
    ));
    assert!(holds(r#"[["=","typeof(-9223372036854775808)","integer"]]"#));
    assert!(holds(r#"[["<",9223372036854775807,9223372036854775808]]"#));
    assert!(holds(
        r#"[["=",1e400,"9e999"],["=",1.0,1],["=",true,1],["=",false,"0"]]"#
    ));
    assert!(holds(r#"[["IS",null,"NULL"]]"#));
}
