//! Stored JSON texts, and the comparison of JSON by value.

use proptest::prelude::*;
use serde_json::value::RawValue;
use switchyard::query::{are_equal, minified};

use super::expressions::json_text;

const SAME: [(&str, &str); 34] = [
    ("1", "1.0"),
    ("1", "1e0"),
    ("1", "10e-1"),
    ("1", "0.1E+1"),
    ("100", "1e2"),
    ("-0", "0"),
    ("0", "0e99999999999999999999999999"),
    ("0.0", "-0e5"),
    (
        "12345678901234567890123456789",
        "12345678901234567890123456789.0",
    ),
    (
        "12345678901234567890123456789",
        "1234567890123456789012345678.9e1",
    ),
    ("0.1000", "1e-1"),
    ("1e400", "10e399"),
    ("1e999999999", "0.1e1000000000"),
    ("1e-999999999", "10e-1000000000"),
    (
        "1e99999999999999999999999999",
        "1e99999999999999999999999999",
    ),
    ("1e005", "1e5"),
    ("1e000000000000000000000000000005", "100000"),
    (r#""a""#, r#""\u0061""#),
    (r#""/""#, r#""\/""#),
    (r#""\n""#, r#""\u000A""#),
    (r#""😀""#, r#""\ud83d\ude00""#),
    (r#""\ud83d""#, r#""\uD83D""#),
    (r#""\u0000""#, r#""\u0000""#),
    (r#"{"a":1,"b":2}"#, r#"{ "b" : 2.0, "a" : 1 }"#),
    (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
    (r#"{"\u0061":1}"#, r#"{"a":1}"#),
    (
        r#"{"a":{"x":[1,{}]},"b":[]}"#,
        r#"{"b":[],"a":{"x":[1.0,{}]}}"#,
    ),
    ("[]", " [ ] "),
    ("{}", "{ }"),
    ("[1,2]", "[1, 2.0]"),
    ("null", " null\n"),
    ("true", "true"),
    ("[[[]]]", "[[[ ]]]"),
    (r#"["CREATED"]"#, r#"[ "CREATED" ]"#),
];

const DIFFERENT: [(&str, &str); 34] = [
    ("1", "2"),
    ("1", "-1"),
    ("1", "10"),
    ("1", "0.1"),
    ("1", "1e1"),
    ("1", "0"),
    ("1", "true"),
    ("0", "false"),
    ("0", "null"),
    ("1", r#""1""#),
    ("9007199254740992", "9007199254740993"),
    ("0.1", "0.1000000000000000055511151231257827"),
    ("18446744073709551616", "18446744073709551617"),
    ("1e400", "1e401"),
    ("1e400", "1e-400"),
    ("1e999999999", "1e999999998"),
    (
        "1e99999999999999999999999999",
        "1e99999999999999999999999998",
    ),
    ("101", "11"),
    ("1.01", "1.1"),
    (r#""a""#, r#""A""#),
    (r#""a""#, r#""a ""#),
    (r#""\ud83d""#, r#""\ud83e""#),
    (r#""\ud800""#, r#""\ufffd""#),
    (r#""""#, "null"),
    ("[]", "{}"),
    ("[1]", "[1,1]"),
    ("[1,2]", "[2,1]"),
    ("[]", "[[]]"),
    (r#"{"a":1}"#, r#"{"a":2}"#),
    (r#"{"a":1}"#, r#"{"b":1}"#),
    (r#"{"a":1}"#, r#"{"a":1,"b":1}"#),
    (r#"{"a":1,"a":2}"#, r#"{"a":1}"#),
    (r#"{"a":null}"#, "{}"),
    ("[", "["),
];

#[test]
fn json_texts_are_compared_by_value() {
    for (one, two) in SAME {
        assert!(
            are_equal(one, two) && are_equal(two, one),
            "{one} and {two}"
        );
    }
    for (one, two) in DIFFERENT {
        assert!(
            !are_equal(one, two) && !are_equal(two, one),
            "{one} and {two}"
        );
    }
}

const NOT_JSON: [&str; 42] = [
    "",
    " ",
    "[",
    "]",
    "{",
    "}",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{a:1}",
    "{'a':1}",
    "{1:1}",
    "nul",
    "nulls",
    "True",
    "01",
    "1.",
    ".5",
    "+1",
    "-",
    "1e",
    "1e+",
    "0x1",
    "--1",
    "NaN",
    "Infinity",
    "\"",
    "\"a",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\n\"",
    "\"\u{1}\"",
    "1 2",
    "[1] 2",
    "[1}",
    "{\"a\":1]",
    "\u{feff}1",
    "/**/1",
];

#[test]
fn invalid_json_is_rejected() {
    for text in NOT_JSON {
        assert!(minified(text).is_err(), "{text:?}");
    }
    assert_eq!(minified("[1, 2 3]").unwrap_err().at, 6);
}

#[test]
fn stored_json_is_unchanged() {
    for (text, kept) in [
        (" [ 1 , 2 ] ", "[1,2]"),
        (
            "{ \"b\" : 1.50 ,\n\t\"a\" : 1E400 }",
            "{\"b\":1.50,\"a\":1E400}",
        ),
        ("\" a \\\" b \\\\\"", "\" a \\\" b \\\\\""),
        (
            "[\"\\u0041\", -0, 123456789012345678901234567890 ]",
            "[\"\\u0041\",-0,123456789012345678901234567890]",
        ),
        ("{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}"),
        ("\"\\ud800\"", "\"\\ud800\""),
        ("1e400", "1e400"),
        ("[[ ], { }]", "[[],{}]"),
        ("\u{20}\"\u{2003}\"", "\"\u{2003}\""),
    ] {
        assert_eq!(minified(text).as_deref(), Ok(kept));
    }
}

#[test]
fn json_has_no_depth_limit() {
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(minified(&deep).as_deref(), Ok(deep.as_str()));
    assert!(are_equal(&deep, &deep));
    let objects = format!("{}1{}", "{\"a\":".repeat(200_000), "}".repeat(200_000));
    assert!(are_equal(&objects, &format!(" {objects}")));
    assert!(!are_equal(&objects, &objects.replace('1', "2")));
    assert!(minified(&"[".repeat(500_000)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// serde_json and this parser accept the same texts.
    #[test]
    fn the_parser_accepts_what_serde_json_accepts(text in json_text(), at in any::<prop::sample::Index>(), sign in "[\\[\\]{},:\"\\\\0-9.eE+ntu \n-]?") {
        let at = at.index(text.len() + 1);
        let mut text = text;
        if text.is_char_boundary(at) {
            text.insert_str(at, &sign);
        }
        let is_json = serde_json::from_str::<Box<RawValue>>(&text).is_ok();
        prop_assert_eq!(minified(&text).is_ok(), is_json);
        if is_json {
            let kept = minified(&text).unwrap();
            prop_assert!(are_equal(&kept, &text));
            prop_assert_eq!(minified(&kept).unwrap(), kept);
        }
    }
}
