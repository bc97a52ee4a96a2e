//! Invalid queries, their errors, and the limits of queries.

use serde_json::{Value, json};

use super::query::fill;
use super::{assert_consistent, start_with_queue};
use crate::support::jobq::{At, Jobq};

/// Checks that both endpoints with queries reject this one, without effect. Returns the place of the error.
async fn refused(jobq: &Jobq, query: &Value) -> At {
    let order = jobq.matching("q", &json!([])).await;
    let asked = jobq.send_query("q", query).await;
    let polled = jobq.send_poll("q", query, &json!("POLLED")).await;
    let at = asked.bad_query();
    assert_eq!(polled.bad_query(), at, "{query}");
    assert_eq!(polled.error(), asked.error(), "{query}");
    assert_eq!(jobq.matching("q", &json!([])).await, order, "{query}");
    at
}

#[tokio::test]
async fn a_term_that_is_not_a_triple_is_rejected_with_its_number() {
    let (server, jobq) = start_with_queue().await;
    jobq.put("q", &json!(1)).await;
    let good = json!(["=", "id", 1]);
    for bad in [
        json!(null),
        json!(1),
        json!("id = 1"),
        json!({}),
        json!({"op": "=", "a": "id", "b": 1}),
        json!([]),
        json!(["="]),
        json!(["=", "id"]),
        json!(["=", "id", 1, 1]),
    ] {
        for (query, term) in [
            (json!([bad]), 0),
            (json!([good, good, bad]), 2),
            (json!([good, bad, good]), 1),
        ] {
            assert_eq!(refused(&jobq, &query).await.term, Some(term), "{query}");
        }
    }
    // A triple instead of a list of triples.
    assert_eq!(refused(&jobq, &good).await.term, Some(0));
    assert_consistent(&server).await;
}

#[tokio::test]
async fn the_operator_must_be_one_of_these() {
    let (server, jobq) = start_with_queue().await;
    jobq.put("q", &json!(1)).await;
    for op in [
        json!(""),
        json!("FOO"),
        json!("GLOB"),
        json!("REGEXP"),
        json!("MATCH"),
        json!("IN"),
        json!("BETWEEN"),
        json!("AND"),
        json!("OR"),
        json!("||"),
        json!("+"),
        json!("==="),
        json!("=>"),
        json!("= id OR id ="),
        json!("IS NULL OR"),
        json!("=--"),
        json!("=\u{0}"),
        json!("LIKE ESCAPE"),
        json!(null),
        json!(1),
        json!(true),
        json!(["="]),
        json!({}),
    ] {
        let query = json!([["=", 1, 1], [op, "id", 1]]);
        let at = refused(&jobq, &query).await;
        assert_eq!((at.term, at.place), (Some(1), Some(0)), "{query}");
    }
    assert_consistent(&server).await;
}

/// Invalid expressions, and the column of the error. (`None` if the error has several possible places.)
const MISTAKES: [(&str, Option<usize>); 49] = [
    ("", None),
    (" ", None),
    ("(", None),
    ("()", None),
    (")", Some(1)),
    ("id)", Some(3)),
    ("((id)", None),
    ("id id", Some(4)),
    ("1 2", Some(3)),
    ("id = ", None),
    ("= 1", Some(1)),
    ("id + + ", None),
    ("id ; 1", Some(4)),
    ("id + $x", Some(6)),
    ("id = ?", Some(6)),
    ("id = ?1", Some(6)),
    (":x", Some(1)),
    ("@x", Some(1)),
    ("#1", Some(1)),
    ("'abc", Some(1)),
    ("id = 'abc", Some(6)),
    ("\"id", Some(1)),
    ("`id", Some(1)),
    ("[id]", Some(1)),
    ("nope(id)", Some(1)),
    ("id = nope(id)", Some(6)),
    ("length()", None),
    ("length(id, id)", None),
    ("json_extract(state", None),
    ("json_extract(state,)", Some(20)),
    ("json_extract(,state)", Some(14)),
    ("abs(id", None),
    ("min(id)", None),
    ("max()", None),
    ("nope.id", None),
    ("j.nope", None),
    ("main.j.id", None),
    ("CAST(id AS BLOB)", None),
    ("CAST(id AS)", None),
    ("CAST(id)", None),
    ("id BETWEEN 1", None),
    ("id IN 1", None),
    ("id IN (1", None),
    ("id NOT", None),
    ("CASE WHEN 1 THEN 2 END", None),
    ("id COLLATE NOCASE", None),
    ("1 & 1", Some(3)),
    ("~1", Some(1)),
    ("x'00'", None),
];

#[tokio::test]
async fn errors_have_their_position_in_the_query() {
    let (server, jobq) = start_with_queue().await;
    jobq.put("q", &json!(1)).await;
    for (text, column) in MISTAKES {
        for (query, term, place) in [
            (json!([["=", text, 1]]), 0, 1),
            (json!([["=", "id", 1], ["IS", "id", text]]), 1, 2),
        ] {
            let at = refused(&jobq, &query).await;
            assert_eq!((at.term, at.place), (Some(term), Some(place)), "{query}");
            if column.is_some() {
                assert_eq!(at.column, column, "{query}");
            }
        }
    }
    for value in [json!([]), json!({}), json!(["id"]), json!({"a": 1})] {
        for (query, place) in [
            (json!([["=", value, 1]]), 1),
            (json!([["=", "id", value]]), 2),
        ] {
            let at = refused(&jobq, &query).await;
            assert_eq!((at.term, at.place), (Some(0), Some(place)), "{query}");
        }
    }
    assert_consistent(&server).await;
}

/// The message says what is wrong.
#[tokio::test]
async fn errors_have_a_clear_message() {
    let (_server, jobq) = start_with_queue().await;
    for (text, word) in [
        ("nope(id)", "nope"),
        ("j.nope", "nope"),
        ("id = 1 ; 2", ";"),
        ("randomblob(9)", "randomblob"),
    ] {
        let query = json!([["=", text, 1]]);
        jobq.send_query("q", &query)
            .await
            .assert_rejected(400, &[word]);
    }
    let reply = jobq.send_query("q", &json!([["GLOB", "id", 1]])).await;
    reply.assert_rejected(400, &["operator", "NOT LIKE"]);
}

#[tokio::test]
async fn a_query_has_at_most_32_terms() {
    let (server, jobq) = start_with_queue().await;
    jobq.put("q", &json!(1)).await;
    for (count, fits) in [(31, true), (32, true), (33, false), (10_000, false)] {
        let query = json!(vec![json!(["=", "id", 1]); count]);
        if fits {
            assert_eq!(jobq.matching("q", &query).await, [1], "{count} terms");
        } else {
            refused(&jobq, &query).await;
        }
    }
    assert_consistent(&server).await;
}

/// Each limit: one below it, at it, and one above it.
#[tokio::test]
async fn expressions_have_limits() {
    let (server, jobq) = start_with_queue().await;
    jobq.put("q", &json!(1)).await;
    let bytes = |count: usize| format!("'{}'", "x".repeat(count - 2));
    let wide = |count: usize| format!("'{}{}'", "é".repeat((count - 2) / 2), "x".repeat(count % 2));
    // Terms '1' with '+' between them; a sign at the start makes the number of tokens even.
    let tokens = |count: usize| {
        let sign = if count.is_multiple_of(2) { "-" } else { "" };
        format!("{sign}{}", vec!["1"; count.div_ceil(2)].join("+"))
    };
    let spaced = |count: usize| format!("1{}", " ".repeat(count - 1));
    for (text, fits) in [
        (bytes(4_095), true),
        (bytes(4_096), true),
        (bytes(4_097), false),
        (wide(4_096), true),
        (wide(4_097), false),
        (spaced(4_096), true),
        (spaced(4_097), false),
        ("x".repeat(4_097), false),
        ("x".repeat(100_000), false),
        (tokens(511), true),
        (tokens(512), true),
        (tokens(513), false),
        (tokens(514), false),
    ] {
        for (query, place) in [
            (json!([["IS NOT", text, null]]), 1),
            (json!([["IS NOT", null, text]]), 2),
        ] {
            if fits {
                assert_eq!(jobq.matching("q", &query).await, [1], "{text}");
            } else {
                assert_eq!(refused(&jobq, &query).await.place, Some(place), "{text}");
            }
        }
    }
    assert_consistent(&server).await;
}

/// At most 100 levels of any kind. Many more must not overflow the stack.
#[tokio::test]
async fn an_expression_has_at_most_100_levels() {
    let (server, jobq) = start_with_queue().await;
    jobq.put("q", &json!(1)).await;
    let nested = |open: &str, close: &str, depth: usize| {
        format!("{}1{}", open.repeat(depth), close.repeat(depth))
    };
    for (open, close) in [
        ("(", ")"),
        ("abs(", ")"),
        ("- ", ""),
        ("+", ""),
        ("NOT ", ""),
        ("NOT (", ")"),
        ("-(", ")"),
    ] {
        for depth in [1, 50] {
            let query = json!([["IS NOT", nested(open, close, depth), null]]);
            assert_eq!(jobq.matching("q", &query).await, [1], "{query}");
        }
        for depth in [150, 170, 600, 2_000, 4_000, 100_000] {
            let query = json!([["IS NOT", nested(open, close, depth), null]]);
            // Consecutive signs may not count as levels, but they are tokens.
            if open.contains('(') || depth > 512 {
                refused(&jobq, &query).await;
            } else {
                let reply = jobq.send_query("q", &query).await;
                assert!([200, 400].contains(&reply.status), "{reply:?}");
            }
        }
    }
    for (depth, fits) in [(99, true), (100, true), (101, false)] {
        let query = json!([["IS NOT", nested("(", ")", depth), null]]);
        if fits {
            assert_eq!(jobq.matching("q", &query).await, [1], "{depth} levels");
        } else {
            refused(&jobq, &query).await;
        }
    }
    // Long chains of operators are not deep.
    for chain in ["1 AND ", "0 OR ", "1+", "1||", "1=", "1<", "1*"] {
        let text = format!("{}1", chain.repeat(200));
        let query = json!([["IS NOT", text, null]]);
        assert_eq!(jobq.matching("q", &query).await, [1], "{chain}");
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn patterns_are_those_of_sql() {
    let (server, jobq) = start_with_queue().await;
    let texts = [
        "abc", "ABC", "abcabc", "a%c", "a_c", "", "é", "É", "日本", "a\nc", "[ab]c", "a*c", "a\\c",
    ];
    for text in texts {
        jobq.put("q", &json!(text)).await;
    }
    let text = "json_extract(payload,'$')";
    for (pattern, expected) in [
        ("'abc'", &[1, 2][..]),
        ("'%'", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]),
        ("'%%%'", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]),
        ("''", &[6]),
        ("'_'", &[7, 8]),
        ("'__'", &[9]),
        ("'a_c'", &[1, 2, 4, 5, 10, 12, 13]),
        ("'a%c'", &[1, 2, 3, 4, 5, 10, 12, 13]),
        ("'%bc%'", &[1, 2, 3]),
        ("'_bc%'", &[1, 2, 3]),
        ("'%abcabc%'", &[3]),
        ("'abc_'", &[]),
        ("'é'", &[7]),
        ("'日_'", &[9]),
        ("'[ab]c'", &[11]),
        ("'a*c'", &[12]),
        ("'a\\c'", &[13]),
        ("'%'||'本'", &[9]),
    ] {
        let query = json!([["LIKE", text, pattern]]);
        assert_eq!(jobq.matching("q", &query).await, expected, "{pattern}");
        let query = json!([["NOT LIKE", text, pattern]]);
        let found = jobq.matching("q", &query).await.len();
        assert_eq!(found, texts.len() - expected.len(), "{pattern}");
    }
    assert_consistent(&server).await;
}

/// Patterns and texts for which naive matchers backtrack exponentially.
#[tokio::test]
async fn no_pattern_takes_exponential_time() {
    let (server, jobq) = start_with_queue().await;
    jobq.put("q", &json!("a".repeat(100_000))).await;
    for pattern in [
        format!("'{}b'", "a%".repeat(400)),
        format!("'{}b'", "%a".repeat(400)),
        format!("'{}b%'", "%_".repeat(400)),
        format!("'{}'", "%".repeat(4_000)),
    ] {
        let query = json!([["LIKE", "json_extract(payload,'$')", pattern]]);
        let reply = jobq.send_query("q", &query).await;
        if reply.status == 422 {
            continue;
        }
        let found = reply.jobs().len();
        assert_eq!(found, usize::from(!pattern.contains('b')), "{pattern}");
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn queries_that_exceed_the_budget_are_rejected() {
    let (server, jobq) = start_with_queue().await;
    for number in 0..20 {
        jobq.put("q", &json!([number, "x".repeat(200_000)])).await;
    }
    let before = jobq.matching("q", &json!([])).await;
    let all = vec!["payload"; 250].join("||");
    let query = json!(vec![json!(["=", format!("length({all})"), 1]); 8]);
    for reply in [
        jobq.send_query("q", &query).await,
        jobq.send_poll("q", &query, &json!(1)).await,
    ] {
        reply.assert_rejected(422, &[]);
    }
    assert_eq!(jobq.matching("q", &json!([])).await, before);
    assert_consistent(&server).await;
}

/// Arithmetic errors result in null, as in SQL, or in an error response, never in a fault.
#[tokio::test]
async fn extreme_arithmetic_causes_no_fault() {
    let (server, jobq) = start_with_queue().await;
    fill(&jobq).await;
    let body = r#"{"payload":{"n":9223372036854775807,"b":12345678901234567890123,"e":1e400}}"#;
    jobq.post_text("/queue/q/job", body).await.job();
    for text in [
        "1 / 0",
        "1 % 0",
        "1.0 / 0",
        "9223372036854775807 + 1",
        "-9223372036854775808 - 1",
        "-9223372036854775808 / -1",
        "-9223372036854775808 % -1",
        "- -9223372036854775808",
        "abs(-9223372036854775808)",
        "9223372036854775807 * 9223372036854775807",
        "9223372036854775808",
        "99999999999999999999999999999999",
        "1e308 * 10",
        "1e308 * 10 - 1e308 * 10",
        "round(1e300, 400)",
        "round(1.5, -9223372036854775808)",
        "substr('abc', -9223372036854775808, 9223372036854775807)",
        "substr('abc', 9223372036854775807, 9223372036854775807)",
        "substr('日本', 2, -1)",
        "instr('', '')",
        "CAST('9e999' AS INTEGER)",
        "CAST(1e300 AS INTEGER)",
        "json_extract(payload, '$.n') + 1",
        "json_extract(payload, '$.b') * 2",
        "json_extract(payload, '$.e')",
        "json_extract(payload, '$[99999999999999999999]')",
        "json_extract(payload, '$[#-1]')",
        "json_extract(payload, '$.a.b.c.d')",
        "json_extract('nonsense', '$')",
        "json_extract(payload, 'nonsense')",
        "json_array_length('[', '$')",
        "json('{')",
        "json_valid('{')",
        "trim(payload, '')",
        "strftime('%s', 'now') + 9223372036854775807",
    ] {
        for op in ["=", "IS", "<", "LIKE"] {
            let query = json!([[op, text, "json_extract(payload, '$.n')"]]);
            let reply = jobq.send_query("q", &query).await;
            assert!([200, 400, 422].contains(&reply.status), "{reply:?}");
        }
    }
    assert_consistent(&server).await;
}
