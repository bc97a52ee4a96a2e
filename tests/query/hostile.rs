//! Texts that try to be more than an expression over one job.

use super::{RECORD, is, term};

/// Rejected texts, and the index of the character that is wrong.
const REFUSED: [(&str, usize); 95] = [
    ("(SELECT 1)", 2),
    ("(SELECT payload FROM job)", 2),
    ("1 UNION SELECT 2", 3),
    ("1 UNION ALL SELECT name FROM sqlite_master", 3),
    ("1 EXCEPT SELECT 1", 3),
    ("1 INTERSECT SELECT 1", 3),
    ("1; DROP TABLE jobs", 2),
    ("1;", 2),
    (";", 1),
    ("1;--", 2),
    ("1 -- rest", 3),
    ("1 /* rest */", 3),
    ("1 /* rest", 3),
    ("/**/1", 1),
    ("--", 1),
    ("1--1", 2),
    ("ATTACH DATABASE 'x' AS y", 1),
    ("PRAGMA user_version", 1),
    ("VACUUM", 1),
    ("load_extension('x')", 1),
    ("1 + load_extension('x')", 5),
    ("readfile('/etc/passwd')", 1),
    ("writefile('x', 'y')", 1),
    ("edit('x')", 1),
    ("fts3_tokenizer('x')", 1),
    ("pragma_table_info('job')", 1),
    ("sqlite_version()", 1),
    ("sqlite_compileoption_get(1)", 1),
    ("randomblob(1000000000)", 1),
    ("zeroblob(1000000000)", 1),
    ("random()", 1),
    ("printf('%1000000000d', 1)", 1),
    ("format('%s', 1)", 1),
    ("hex('a')", 1),
    ("quote('a')", 1),
    ("char(65)", 1),
    ("replace('a', 'a', 'b')", 1),
    ("json_each(payload)", 1),
    ("json_group_array(id)", 1),
    ("json_set(payload, '$.a', 1)", 1),
    ("json_extract(payload)", 1),
    ("count(*)", 1),
    ("count(id)", 1),
    ("max(id)", 1),
    ("total_changes()", 1),
    ("last_insert_rowid()", 1),
    ("rowid = 1", 1),
    ("oid + 1", 1),
    ("sqlite_master.name", 1),
    ("jobs.payload", 1),
    ("main.job.id", 1),
    ("j.rowid", 3),
    ("j.*", 1),
    ("*", 1),
    ("1, 2", 2),
    ("1 2", 3),
    ("1 AS x", 3),
    ("id 'x'", 4),
    ("id x", 4),
    ("id FROM job", 4),
    ("id WHERE 1", 4),
    ("1 LIMIT 1", 3),
    ("1 ORDER BY 1", 3),
    ("1 GROUP BY 1", 3),
    ("DISTINCT id", 1),
    ("1) OR (1", 2),
    ("(1", 3),
    ("1)", 2),
    ("((1)", 5),
    ("", 1),
    ("  ", 1),
    ("'abc", 1),
    ("\"abc", 1),
    ("\u{2018}abc\u{2019} = 1", 1),
    ("id = \u{201c}a\u{201d}", 6),
    ("id \u{0}", 4),
    ("'a\u{0}'", 3),
    ("id GLOB 'a'", 4),
    ("id REGEXP 'a'", 4),
    ("id MATCH 'a'", 4),
    ("id LIKE 'a' ESCAPE 'b'", 13),
    ("id COLLATE NOCASE", 4),
    ("CASE WHEN 1 THEN 2 END", 1),
    ("EXISTS (SELECT 1)", 1),
    ("id IN (SELECT 1)", 8),
    ("id IN job", 7),
    ("RAISE(IGNORE)", 1),
    ("VALUES(1)", 1),
    ("?", 1),
    ("id = ?1", 6),
    (":x", 1),
    ("@x", 1),
    ("$x", 1),
    ("x'00'", 1),
    ("CURRENT_TIMESTAMP", 1),
];

/// Rejected texts whose error has no place.
const ALSO_REFUSED: [&str; 29] = [
    "sum(id) OVER ()",
    "max(id, 1) FILTER (WHERE 1)",
    "max(DISTINCT id, 2)",
    "max(id, 2 ORDER BY 1)",
    "row_number() OVER (PARTITION BY id)",
    "(1, 2) = (1, 2)",
    "CAST(1 AS BLOB)",
    "CAST(1 AS VARCHAR(10))",
    "CAST('a' AS NUMERIC)",
    "id & 1",
    "id | 1",
    "~id",
    "id << 1",
    "id >> 1",
    "[id]",
    "0x10000000000000000",
    "-0x8000000000000000",
    "1__0",
    "12abc",
    "id IS DISTINCT FROM 1",
    "strftime('%s')",
    "strftime('%Y','now')",
    "strftime('%s','now','localtime')",
    "strftime('%s', payload)",
    "unixepoch('now')",
    "datetime('now')",
    "json_extract(payload, 'a')",
    "json_extract(payload, '$.a[')",
    "id = id FROM",
];

#[test]
fn texts_that_are_not_an_expression_over_one_job_are_rejected_at_the_error() {
    for (text, column) in REFUSED {
        let Err(refused) = term("=", text, "1") else {
            panic!("{text:?} was accepted");
        };
        assert_eq!((refused.term, refused.part), (Some(0), Some(1)), "{text:?}");
        assert_eq!(refused.column, Some(column), "{text:?}: {refused}");
    }
    for text in ALSO_REFUSED {
        for text in [text.to_owned(), format!("id = ({text})")] {
            let Err(refused) = term("=", "1", &text) else {
                panic!("{text:?} was accepted");
            };
            assert_eq!((refused.term, refused.part), (Some(0), Some(2)), "{text:?}");
            assert!(refused.column.is_some(), "{text:?}: {refused}");
        }
    }
}

#[test]
fn errors_are_readable_sentences() {
    let refused = term("=", "1", "id = load_extension('x')").unwrap_err();
    let text = refused.to_string();
    assert!(
        text.starts_with(
            "query[0][2], column 6: the function load_extension is not supported; supported functions are abs, "
        ),
        "{text}"
    );
    let refused = term("=", "jason(1) = CREATED", "1").unwrap_err();
    assert!(
        refused.to_string().contains("the function jason"),
        "{refused}"
    );
    let refused = term("=", "id = CREATED", "1").unwrap_err();
    let text = "query[0][1], column 6: unknown column CREATED; columns are id, payload, state, events, modified; \
                to use it as text, write 'CREATED'";
    assert_eq!(refused.to_string(), text);
    let refused = term("MATCH", "id", "1").unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("query[0][0]: MATCH is not an operator; use one of IS, "),
        "{refused}"
    );
}

/// These only look dangerous: they are words and texts.
#[test]
fn texts_that_only_look_dangerous_are_accepted() {
    for (left, right) in [
        ("rowid", "'rowid'"),
        ("sqlite_master", "'sqlite_master'"),
        ("'; DROP TABLE jobs; --'", "'; DROP' || ' TABLE jobs; --'"),
        ("'/* */'", "'/' || '* */'"),
        ("\"a;b\"", "'a;b'"),
        ("'it''s' || '--'", "'it''s--'"),
        ("`x'00'`", "'x''00'''"),
        ("\"\"", "''"),
        ("'?1'", "'?' || 1"),
        ("1 = 1 OR 1 = 1", "1"),
        ("\n1\t+\r1\u{c}", "2"),
        ("a1", "'a1'"),
        ("j", "'j'"),
        ("\u{ff11}", "'\u{ff11}'"),
        ("\u{e9}t\u{e9}", "'\u{e9}t\u{e9}'"),
    ] {
        assert!(is(left, right, &RECORD), "{left}");
    }
}
