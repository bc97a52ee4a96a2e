//! Typical queries.

use switchyard::budget::{Budget, BudgetExceeded};
use switchyard::query::{Query, Record, first_text_of};

use super::{NOW, RECORD, is, matches, parse};

const OTHER: Record<'static> = Record {
    id: 7,
    payload: r#"{"msg":"bye","attempt":3,"queue":"slow","urgent":true}"#,
    state: None,
    events: "[]",
    modified: NOW,
};

/// Queries, whether they match `RECORD`, and whether they match `OTHER`.
const QUERIES: [(&str, bool, bool); 26] = [
    (
        r#"["IS","json_extract(state, '$[0]')","CREATED"]"#,
        false,
        false,
    ),
    (
        r#"["IS","json_extract(state, '$[0]')","ASSIGNED"]"#,
        true,
        false,
    ),
    (
        r#"["IS","json_extract(state, '$[0]')","'ASSIGNED'"]"#,
        true,
        false,
    ),
    (
        r#"["=","json_extract(j.state,'$[0]')","'ASSIGNED'"]"#,
        true,
        false,
    ),
    (r#"["IS","j.state",null]"#, false, true),
    (r#"["IS NOT","state",null]"#, true, false),
    (
        r#"["=","state","'[\"ASSIGNED\",{\"node\":1}]'"]"#,
        true,
        false,
    ),
    (r#"["=","json_extract(state,'$[1].node')",1]"#, true, false),
    (r#"["=","json_array_length(state)","2"]"#, true, false),
    (
        r#"["!=","json_extract(state,'$[0]')","'FINISHED'"]"#,
        true,
        false,
    ),
    (r#"["IS","json_extract(state,'$[0]')","NULL"]"#, false, true),
    (
        r#"["LIKE","json_extract(payload,'$.msg')","'hello%'"]"#,
        true,
        false,
    ),
    (
        r#"[">","json_extract(payload,'$.attempt')","3"]"#,
        true,
        false,
    ),
    (
        r#"["=","json_extract(payload,'$.host') || ':' || json_extract(payload,'$.port')","'db:5432'"]"#,
        true,
        false,
    ),
    (
        r#"["<","modified","strftime('%s','now') - 60"]"#,
        true,
        false,
    ),
    (
        r#"["=","json_extract(state,'$[0]')","ASSIGNED"],["<","modified","strftime('%s','now') - 60"]"#,
        true,
        false,
    ),
    (
        r#"["=","json_extract(state,'$[0]') IN ('ASSIGNED','RETRY')","1"]"#,
        true,
        false,
    ),
    (
        r#"["=","(json_extract(payload,'$.p') = 1 OR json_extract(payload,'$.urgent') = 1)","1"]"#,
        true,
        true,
    ),
    (r#"["=","id","42"]"#, true, false),
    (r#"[">=","j.id",8]"#, true, false),
    (
        r#"["=","coalesce(json_extract(payload,'$.queue'),'default')","'default'"]"#,
        true,
        false,
    ),
    (
        r#"["=","lower(json_extract(payload,'$.user.name'))","'o''neil'"]"#,
        true,
        false,
    ),
    (
        r#"["=","json_extract(payload,'$.urgent')",true]"#,
        false,
        true,
    ),
    (
        r#"["is  not","json_extract(payload,'$.urgent')","true"]"#,
        true,
        false,
    ),
    (r#"["not like","payload","'%bye%'"]"#, true, false),
    (r#"["=","state ->> 0","ASSIGNED"]"#, true, false),
];

#[test]
fn typical_queries_match_the_expected_records() {
    for (query, this, other) in QUERIES {
        let query = format!("[{query}]");
        assert_eq!(matches(&query, &RECORD), this, "{query}");
        assert_eq!(matches(&query, &OTHER), other, "{query}");
    }
    assert!(matches("[]", &RECORD));
}

#[test]
fn a_term_cannot_affect_another_term() {
    let query = r#"[["=","id","1 OR 1"],["=","0 OR 1","0"]]"#;
    assert!(!matches(query, &RECORD));
    // Evaluated as `(1 OR 0) = (1)`, not as `1 OR 0 = 1`.
    assert!(matches(r#"[["=","1 OR 0","1"]]"#, &RECORD));
    assert!(!matches(r#"[["=","1 OR 0","0"]]"#, &RECORD));
}

#[test]
fn a_numeric_state_is_compared_as_text() {
    let record = Record {
        state: Some("5"),
        ..RECORD
    };
    assert!(matches(r#"[["=","state",5]]"#, &record));
    assert!(!matches(r#"[["=","+state",5]]"#, &record));
}

/// Intentional differences from SQLite, which the documentation of the module lists.
#[test]
fn expressions_that_fail_in_sqlite_are_null() {
    for null in [
        "json_extract('[1,', '$[0]')",
        "json_type('{a:1}')",
        "'[1,' -> 0",
        "json_extract(payload, 'a' || 'b')",
        "abs(-9223372036854775808)",
        "json('')",
    ] {
        assert!(is(null, "NULL", &RECORD), "{null}");
    }
    assert!(is("5 IN ()", "0", &RECORD));
    assert!(is("NULL NOT IN ()", "1", &RECORD));
}

/// As in SQLite since 3.46.
#[test]
fn a_plus_sign_after_a_minus_sign_is_dropped() {
    for number in [
        "-9223372036854775808",
        "-+9223372036854775808",
        "-(+(9223372036854775808))",
        "-(+(+9223372036854775808))",
    ] {
        let kind = format!("typeof({number})");
        assert!(is(&kind, "'integer'", &RECORD), "{number}");
    }
    let minus = "-(-(9223372036854775808))";
    assert!(is(&format!("typeof({minus})"), "'real'", &RECORD));
}

#[test]
fn json_values_are_distinguished_from_text() {
    for (left, right) in [
        ("json_array('[1]')", r#"'["[1]"]'"#),
        ("json_array(json('[1]'))", "'[[1]]'"),
        ("json_array(state -> 1)", r#"'[{"node":1}]'"#),
        ("json_array(CAST(json('[1]') AS TEXT))", "'[[1]]'"),
        ("json_array(state ->> 1)", r#"'["{\"node\":1}"]'"#),
        (
            "json_extract(payload, '$.p', '$.none', '$.host')",
            r#"'[1,null,"db"]'"#,
        ),
        ("payload -> 'user' ->> 'name'", "'O''Neil'"),
        ("json_type(payload, '$.user')", "object"),
    ] {
        assert!(is(left, right, &RECORD), "{left}");
    }
}

#[test]
fn hints_contain_the_conditions_that_an_index_supports() {
    let hint = |query: &str| parse(query).hint().clone();
    for query in [
        r#"[["IS","json_extract(state, '$[0]')","CREATED"]]"#,
        r#"[["=","'CREATED'","json_extract(j.state,'$[0]')"]]"#,
        r#"[["==","state ->> '$[0]'","CREATED"]]"#,
        r#"[["=","state ->> 0 = 'CREATED' AND id > 3","1"]]"#,
        r#"[["IS","id = 4 AND state ->> 0 IN ('CREATED')","TRUE"]]"#,
    ] {
        let hint = hint(query);
        assert_eq!(hint.first_text.as_deref(), Some("CREATED"), "{query}");
        assert!(hint.has_state && !hint.no_state);
    }
    assert!(hint(r#"[["IS","j.state",null]]"#).no_state);
    assert!(hint(r#"[["IS NOT","NULL","state"]]"#).has_state);
    assert!(hint(r#"[["=","state IS NULL",1]]"#).no_state);
    for (query, range) in [
        (r#"[["=","id","42"]]"#, 42..=42),
        (r#"[[">=","j.id",100],["<","id",200]]"#, 100..=199),
        (r#"[["<",5,"id"]]"#, 6..=i64::MAX),
        (r#"[[">","id",1.5],["<","id",3.5]]"#, 2..=3),
    ] {
        assert_eq!(hint(query).ids, range, "{query}");
    }
    assert!(hint(r#"[["=","id",1.5]]"#).ids.is_empty());
    let nothing =
        hint(r#"[["=","state ->> 0 = 'CREATED' OR id > 3","1"],["=","modified + 0","5"]]"#);
    assert_eq!(
        (nothing.first_text, nothing.ids.clone()),
        (None, nothing.modified)
    );
    assert_eq!(nothing.ids, i64::MIN..=i64::MAX);
}

#[test]
fn the_first_text_of_a_state_is_the_text_at_its_start() {
    assert_eq!(
        first_text_of(Some(r#"["CREATED"]"#)).as_deref(),
        Some("CREATED")
    );
    assert_eq!(first_text_of(Some(r#"["\u0041",1]"#)).as_deref(), Some("A"));
    for none in [
        Some("[1]"),
        Some("[]"),
        Some("\"CREATED\""),
        Some("[null]"),
        None,
    ] {
        assert_eq!(first_text_of(none), None);
    }
}

#[test]
fn a_query_knows_which_columns_it_reads() {
    let needs = parse(r#"[["=","id","42"],["LIKE","payload ->> 'a'","'x%'"]]"#).used_columns();
    assert!(needs.payload && !needs.state && !needs.events);
}

#[test]
fn the_work_of_a_query_is_bounded() {
    let ask = |query: &str, work: u64| {
        let mut work = Budget::new(work);
        parse(query).matches(&RECORD, NOW, &mut work).map(|_| ())
    };
    let query = r#"[["LIKE","payload","'%a%a%a%a%a%a%a%b'"]]"#;
    assert_eq!(ask(query, 50), Err(BudgetExceeded::Work));
    assert_eq!(ask(query, 5_000), Ok(()));
    let long = "a".repeat(700_000);
    let record = Record {
        payload: &long,
        ..RECORD
    };
    let mut work = Budget::new(100_000_000);
    let twice = Query::parse(r#"[["=","payload || payload","'b'"]]"#).unwrap();
    assert_eq!(
        twice.matches(&record, NOW, &mut work),
        Err(BudgetExceeded::Text)
    );
    // A pattern on which naive matchers backtrack exponentially.
    let pattern = format!("'{}b'", "%a".repeat(30));
    let query = serde_json::json!([["LIKE", "payload", pattern]]).to_string();
    let mut work = Budget::new(100_000_000);
    assert_eq!(parse(&query).matches(&record, NOW, &mut work), Ok(false));
    assert!(work.remaining() > 50_000_000);
}
