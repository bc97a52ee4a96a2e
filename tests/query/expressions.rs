//! Generators of random expressions and jobs.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;

pub const OPERATORS: [&str; 12] = [
    "IS", "IS NOT", "LIKE", "NOT LIKE", "=", "==", "!=", "<>", "<", "<=", ">", ">=",
];

const COLUMNS: [&str; 9] = [
    "id",
    "payload",
    "state",
    "events",
    "modified",
    "j.state",
    "JOB.Id",
    "\"state\"",
    "j.payload",
];

const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "2",
    "3",
    "42",
    "-1",
    "-7",
    "5432",
    "0.5",
    "-1.5",
    "2.5",
    "1e3",
    "1.0",
    "0x1F",
    "1_000",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "1e19",
    "1e400",
    "-1e400",
    "0.1",
    "123456789.123456789",
    "1e-7",
];

const TEXTS: [&str; 36] = [
    "''",
    "'a'",
    "'A'",
    "'abc'",
    "'ABC'",
    "'b'",
    "'1'",
    "'01'",
    "'1.0'",
    "' 1 '",
    "'1e2'",
    "'12abc'",
    "'1.5x'",
    "'-5'",
    "'+5'",
    "'9223372036854775807'",
    "'9223372036854775808'",
    "'0.1'",
    "'1e'",
    "'%'",
    "'a%'",
    "'%b%'",
    "'_B%'",
    "'%'||'c'",
    "'é'",
    "'É%'",
    "'o''neil'",
    "'null'",
    "'true'",
    "'CREATED'",
    "'ASSIGNED'",
    "'[1,2]'",
    "'{\"a\":1}'",
    "'42'",
    "\"text\"",
    "'\u{1F600}x'",
];

const PATHS: [&str; 20] = [
    "'$'",
    "'$.a'",
    "'$.b'",
    "'$.a.b'",
    "'$[0]'",
    "'$[1]'",
    "'$[#-1]'",
    "'$[#]'",
    "'$[#-2]'",
    "'$[0].a'",
    "'$.a[0]'",
    "'$.\"a b\"'",
    "'$.a b'",
    "'$.\"a\"'",
    "'$.\"\"'",
    "'$[1].node'",
    "'$.é'",
    "'$.\"\\u0061\"'",
    "'$.x.y.z'",
    "'$[9]'",
];

const LABELS: [&str; 16] = [
    "'a'", "'b'", "'a b'", "0", "1", "-1", "-2", "5", "'0'", "'[0]'", "'[#-1]'", "'$.a'", "'é'",
    "''", "NULL", "1.0",
];

const JSONS: [&str; 14] = [
    "'[1,2,3]'",
    "'{\"a\":1,\"b\":[true,null]}'",
    "' { \"a\" : [ 1 , \"x y\" ] } '",
    "'null'",
    "'\"text\"'",
    "'12'",
    "'1.50'",
    "'[]'",
    "'{}'",
    "'[1,'",
    "'{\"a\":\"\\u00e9\\n\"}'",
    "'[9223372036854775808,-0,1e2,1E400]'",
    "'{\"a\":1,\"a\":2}'",
    "'\"\\ud83d\\ude00\"'",
];

fn words(words: &'static [&'static str]) -> BoxedStrategy<String> {
    select(words).prop_map(str::to_owned).boxed()
}

/// Arguments of JSON functions. (Text that is constructed in other ways can be JSON5, which only SQLite parses.)
fn json() -> BoxedStrategy<String> {
    let leaf = Union::new_weighted(vec![
        (
            6,
            words(&["payload", "state", "events", "j.state", "j.payload"]),
        ),
        (3, words(&JSONS)),
        (1, words(&["1", "1.5", "NULL", "id"])),
    ]);
    leaf.prop_recursive(3, 8, 3, |inner| {
        let (json, label, path) = (inner.clone(), words(&LABELS), words(&PATHS));
        prop_oneof![
            (json.clone(), label).prop_map(|(json, label)| format!("({json} -> {label})")),
            json.clone().prop_map(|json| format!("json({json})")),
            (json.clone(), path.clone(), path)
                .prop_map(|(json, one, two)| { format!("json_extract({json}, {one}, {two})") }),
            (json.clone(), json.clone()).prop_map(|(one, two)| format!("json_array({one}, {two})")),
            (json.clone(), json).prop_map(|(one, two)| format!("coalesce({one}, {two})")),
        ]
    })
    .boxed()
}

fn json_value() -> BoxedStrategy<String> {
    let arrows = (json(), select(vec!["->", "->>"]), words(&LABELS));
    prop_oneof![
        4 => (json(), words(&PATHS)).prop_map(|(json, path)| format!("json_extract({json}, {path})")),
        3 => arrows.prop_map(|(json, arrow, label)| format!("{json} {arrow} {label}")),
        1 => (json(), words(&PATHS)).prop_map(|(json, path)| format!("json_type({json}, {path})")),
        1 => json().prop_map(|json| format!("json_type({json})")),
        1 => json().prop_map(|json| format!("json_array_length({json})")),
        1 => (json(), words(&PATHS)).prop_map(|(json, path)| format!("json_array_length({json}, {path})")),
        1 => json().prop_map(|json| format!("json_valid({json})")),
        1 => json(),
    ]
    .boxed()
}

fn leaf() -> BoxedStrategy<String> {
    prop_oneof![
        3 => words(&COLUMNS),
        3 => words(&NUMBERS),
        3 => words(&TEXTS),
        1 => words(&["NULL", "TRUE", "false"]),
        1 => words(&["strftime('%s','now')", "unixepoch()"]),
        5 => json_value(),
    ]
    .boxed()
}

fn calls(inner: &BoxedStrategy<String>) -> BoxedStrategy<String> {
    let one = words(&[
        "length",
        "lower",
        "upper",
        "trim",
        "abs",
        "round",
        "typeof",
        "json_array",
    ]);
    let two = words(&[
        "trim",
        "substr",
        "instr",
        "round",
        "min",
        "max",
        "coalesce",
        "ifnull",
        "nullif",
        "iif",
        "json_array",
    ]);
    let three = words(&["substr", "min", "max", "coalesce", "iif", "json_array"]);
    let (a, b, c) = (inner.clone(), inner.clone(), inner.clone());
    prop_oneof![
        (one, inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
        (two, inner.clone(), inner.clone()).prop_map(|(name, a, b)| format!("{name}({a}, {b})")),
        (three, a, b, c).prop_map(|(name, a, b, c)| format!("{name}({a}, {b}, {c})")),
        (
            inner.clone(),
            select(vec!["0", "1", "2", "-1", "-2", "-4", "100"]),
            -3..4
        )
            .prop_map(|(text, start, count)| format!("substr({text}, {start}, {count})")),
    ]
    .boxed()
}

/// An expression of the grammar. Parentheses are often omitted, to test precedence.
pub fn expression() -> BoxedStrategy<String> {
    leaf()
        .prop_recursive(4, 24, 4, |inner| {
            let binary = words(&[
                "AND", "OR", "=", "==", "!=", "<>", "IS", "IS NOT", "<", "<=", ">", ">=", "+", "-",
                "*", "/", "%", "||", "LIKE", "NOT LIKE",
            ]);
            let after = words(&[
                "ISNULL",
                "NOTNULL",
                "NOT NULL",
                "IS TRUE",
                "IS NOT TRUE",
                "IS FALSE",
                "IS NOT FALSE",
                "IS NULL",
            ]);
            let not = words(&["", "NOT "]);
            let two = (inner.clone(), inner.clone());
            let list = prop::collection::vec(inner.clone(), 1..4);
            let inner = inner.boxed();
            prop_oneof![
                6 => (two.clone(), binary.clone()).prop_map(|((a, b), op)| format!("{a} {op} {b}")),
                4 => (two.clone(), binary).prop_map(|((a, b), op)| format!("({a}) {op} ({b})")),
                2 => (inner.clone(), after).prop_map(|(a, after)| format!("{a} {after}")),
                1 => (inner.clone(), not.clone(), two.clone()).prop_map(|(a, not, (b, c))| {
                    format!("{a} {not}BETWEEN {b} AND {c}")
                }),
                2 => (inner.clone(), not, list).prop_map(|(a, not, list)| {
                    format!("({a}) {not}IN ({})", list.join(", "))
                }),
                2 => (words(&["-", "+", "NOT ", "- "]), inner.clone()).prop_map(|(sign, a)| {
                    format!("{sign}({a})")
                }),
                1 => inner.clone().prop_map(|a| format!("({a})")),
                2 => (inner.clone(), words(&["TEXT", "INTEGER", "real"])).prop_map(|(a, kind)| {
                    format!("CAST({a} AS {kind})")
                }),
                6 => calls(&inner),
            ]
        })
        .boxed()
}

/// JSON text without whitespace.
pub fn json_text() -> BoxedStrategy<String> {
    let scalar = words(&[
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "2",
        "-1",
        "42",
        "1.5",
        "1.0",
        "1e3",
        "12345678901234567890",
        "1e400",
        "0.1",
        "9007199254740993",
        "3.14159265358979312",
        "1e-5",
        "\"\"",
        "\"a\"",
        "\"A\"",
        "\"abc\"",
        "\"CREATED\"",
        "\"1\"",
        "\"1.0\"",
        "\"é\"",
        "\"\\u00e9\"",
        "\"\\ud83d\\ude00\"",
        "\"x\\ny\"",
        "\"q\\\"q\"",
        "\"a\\/b\"",
        "\"hello world\"",
        "\"\\u0000z\"",
        "\"12abc\"",
    ]);
    let keys = words(&[
        "\"a\"",
        "\"b\"",
        "\"a b\"",
        "\"é\"",
        "\"\"",
        "\"node\"",
        "\"0\"",
        "\"\\u0061\"",
        "\"x\"",
    ]);
    scalar
        .prop_recursive(3, 12, 4, move |inner| {
            let member =
                (keys.clone(), inner.clone()).prop_map(|(key, value)| format!("{key}:{value}"));
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(|list| format!("[{}]", list.join(","))),
                prop::collection::vec(member, 0..4)
                    .prop_map(|list| format!("{{{}}}", list.join(","))),
            ]
        })
        .boxed()
}

/// A job: ID, payload, state, events, modified.
pub fn job() -> impl Strategy<Value = (i64, String, Option<String>, String, i64)> {
    let number = select(vec![
        0,
        1,
        2,
        42,
        -1,
        1_699_999_939,
        1_700_000_000,
        i64::MAX,
        i64::MIN,
    ]);
    let state = prop_oneof![
        1 => Just(None),
        2 => select(vec![r#"["CREATED"]"#, r#"["ASSIGNED",{"node":1}]"#, "5", "\"a\""])
            .prop_map(|state| Some(state.to_owned())),
        2 => json_text().prop_map(|state| Some(state).filter(|state| state != "null")),
    ];
    (number.clone(), json_text(), state, json_text(), number)
}
