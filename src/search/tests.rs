use proptest::prelude::*;

use super::*;
use crate::budget::{Budget, BudgetExceeded};

const NOW: i64 = 1_793_500_000_000_000; // 2026-11-01 02:26:40 UTC
const MINUTE: i64 = 60_000_000;

fn job() -> JobFacts<'static> {
    JobFacts {
        id: "Letter-1",
        state: "failed",
        api: "qless",
        namespace: "",
        queue: "mail",
        class: Some("Mail::Send"),
        tags: &[],
        is_tracked: false,
        worker: None,
        failure: Some(("TimeoutError", "Connection reset by peer")),
        priority: Some(5.0),
        retries_left: Some(0),
        created: NOW - 150 * MINUTE,
        updated: NOW - 10 * MINUTE,
        body: Body::Json(
            r#" {"user": {"id": 42, "name": "Ada"}, "total": 100.5, "big": 12345678901234567890,
                 "list": ["a", 7, {"x": 1}], "on": true, "no": null, "a.b c": {"": "<b>"}} "#,
        ),
    }
}

#[track_caller]
fn finds(text: &str, job: &JobFacts<'_>) -> bool {
    let search = Search::parse(text).unwrap();
    search.matches(job, NOW, &mut Budget::unlimited()).unwrap()
}

#[test]
fn each_kind_of_term_finds_and_does_not_find() {
    let tags = ["vip".to_owned(), "eu".to_owned()];
    let job = JobFacts {
        tags: &tags,
        worker: Some("host-1"),
        ..job()
    };
    for (yes, no) in [
        ("", "nothing"),
        ("letter", "etter"),
        ("LETTER-1", "letter-11"),
        ("send", "sent"),
        ("Mail::Send", "Mail::Sent"),
        ("mail::s*d", "mail::x*d"),
        ("\"Mail::Send\"", "\"Mail::S*d\""),
        ("state:failed,stalled", "state:running"),
        ("STATE:Failed", "state:depending"),
        ("queue:mail", "queue:mai"),
        ("queue:m*", "queue:M*"),
        ("queue:*", "queue:\"*\""),
        ("klass:Mail::*", "klass:Send"),
        ("class:*Send", "class:*send"),
        ("tag:vip tag:eu", "tag:us"),
        ("tag:v*", "tag:V*"),
        ("worker:host*", "worker:other"),
        ("type:TimeoutError", "type:Timeout"),
        ("group:*Error", "group:*error"),
        ("error:\"connection RESET\"", "error:refused"),
        ("error:conn*peer", "error:peer*conn"),
        ("data.user.id:42", "data.user.id:43"),
        ("data.user.id:42.0", "data.user.id:4*3"),
        ("data.user.name:Ada", "data.user.name:ada"),
        ("data.user.name:A*", "data.user.name:B*"),
        ("data.user:*", "data.user:Ada"),
        ("data.total:>100", "data.total:>100.5"),
        ("data.total:>=100.5", "data.total:<100"),
        (
            "data.big:12345678901234567890",
            "data.big:12345678901234567891",
        ),
        (
            "data.big:>12345678901234567889",
            "data.big:>12345678901234567890",
        ),
        ("data.list:7 data.list.1:7", "data.list.0:7"),
        ("data.list.2.x:1", "data.list.3:1"),
        ("data.list:*", "data.list:x"),
        ("data.on:true", "data.on:false"),
        ("data.no:null", "data.none:*"),
        ("data.\"a.b c\".\"\":<b>", "data.\"a.b\":1"),
        ("priority:5 priority:>=5", "priority:>5"),
        ("retries:0 tries:<1", "retries:>0"),
        ("created:>2h", "created:<2h"),
        ("created:<3h", "created:>3h"),
        ("created:2026-10-31", "created:>2026-10-31"),
        ("created:<=2026-10-31", "created:<2026-10-31"),
        ("created:>2026-10-31T23:00", "created:<2026-10-31T23:00Z"),
        (
            "created:>=2026-10-31T23:56:40",
            "created:>2026-10-31T23:56:40",
        ),
        ("updated:<30m updated:>60s", "updated:>1w"),
        ("api:qless,relay", "api:lmstfy"),
        ("ns:\"\"", "ns:billing"),
        ("-state:complete -tag:us", "-state:failed"),
        ("-data.user.id:43 -nothing", "-data.user.id:42"),
    ] {
        // `<b>` is not a number, so its `<` has to be quoted to be text.
        let yes = yes.replace(":<b>", ":\"<b>\"");
        assert!(finds(&yes, &job), "{yes}");
        assert!(!finds(no, &job), "{no}");
    }
}

#[test]
fn tracked_finds_tracked_jobs_and_others() {
    let tracked = JobFacts {
        is_tracked: true,
        ..job()
    };
    for (yes, no) in [
        ("tracked:yes", "tracked:no"),
        ("-tracked:no", "-tracked:yes"),
        ("tracked:yes,no", "-tracked:yes,no"),
    ] {
        assert!(finds(yes, &tracked), "{yes}");
        assert!(!finds(no, &tracked), "{no}");
    }
    assert!(finds("tracked:no", &job()) && !finds("tracked:yes", &job()));
}

#[test]
fn alternatives_and_parts_of_payloads_are_found() {
    let tags = ["vip".to_owned(), "eu".to_owned()];
    let job = JobFacts {
        tags: &tags,
        ..job()
    };
    for (yes, no) in [
        ("payload:ada", "payload:bob"),
        ("payload:id*ada", "payload:ada*id"),
        ("queue:mail OR queue:x", "queue:x OR queue:y"),
        ("nothing OR letter", "nothing OR letter tag:us"),
        ("(tag:us OR tag:eu) letter", "(tag:us OR tag:cn) letter"),
        ("-(tag:us OR tag:cn)", "-(tag:us OR tag:eu)"),
        ("-(tag:us tag:eu)", "-(tag:vip tag:eu)"),
        (
            "data.user.id:43 OR data.total:>100",
            "data.user.id:43 OR data.total:<100",
        ),
        (
            "(data.user.id:43 tag:vip) OR (data.user.id:42 -tag:us)",
            "(data.user.id:43 OR payload:bob) tag:vip",
        ),
        (
            "tag:us data.x:1 OR -payload:bob data.on:true",
            "(tag:vip OR data.x:1) -payload:ada",
        ),
        ("((letter))", "((letter) (tag:us OR (tag:cn OR data.x:1)))"),
        ("\"(x\" OR letter", "\"OR\" letter"),
    ] {
        assert!(finds(yes, &job), "{yes}");
        assert!(!finds(no, &job), "{no}");
    }
}

#[test]
fn fp_finds_jobs_by_fingerprint_in_any_case() {
    let print = Fingerprint::of("Connection reset by peer").hash;
    for text in [&print, &print.to_uppercase()] {
        assert!(finds(&format!("fp:{text}"), &job()));
        assert!(!finds(&format!("-fp:{text}"), &job()));
    }
    assert!(!finds("fp:00000000", &job()));
}

#[test]
fn what_a_job_does_not_have_is_not_found() {
    let bare = JobFacts {
        class: None,
        is_tracked: false,
        worker: None,
        failure: None,
        priority: None,
        retries_left: None,
        body: Body::Base64("/w=="),
        ..job()
    };
    for text in [
        "class:*",
        "worker:*",
        "type:*",
        "error:*",
        "fp:811c9dc5",
        "priority:<9",
        "tries:0",
        "data.x:*",
        "tag:*",
    ] {
        assert!(!finds(text, &bare), "{text}");
        assert!(finds(&format!("-{text}"), &bare), "-{text}");
    }
    let bytes = JobFacts {
        body: Body::Base64("eyJhIjogMX0="),
        ..bare
    };
    assert!(finds("data.a:1", &bytes));
}

#[test]
fn errors_have_their_position() {
    for (text, from, to, why) in [
        ("stat:failed", 0, 5, "unknown term “stat:”"),
        ("a state:failed,lost", 15, 19, "unknown state “lost”"),
        ("日本 state:", 9, 9, "a value is missing"),
        ("api:\"qless,x\"", 11, 12, "unknown protocol “x”"),
        ("a - b", 2, 3, "directly before a term"),
        ("queue:\"mail", 6, 11, "this quote is not closed"),
        ("queue:\"mail\"s", 12, 13, "expected a space"),
        ("\"\"", 0, 2, "the quotes are empty"),
        ("error:\"\"", 6, 8, "the quotes are empty"),
        ("fp:1a2b3c4", 3, 10, "8 hexadecimal digits"),
        ("fp:1a2b3c4*", 3, 11, "8 hexadecimal digits"),
        ("priority:high", 9, 13, "expected a number"),
        ("tries:>", 6, 7, "expected a number"),
        ("priority:nan", 9, 12, "expected a number"),
        ("created:2h", 8, 10, "missing > or <"),
        ("created:>2y", 8, 11, "expected an age"),
        ("created:>99999999999999999999w", 8, 30, "expected an age"),
        ("created:2026-02-30", 8, 18, "expected an age"),
        ("created:>+2h", 8, 12, "expected an age"),
        ("updated:>2026-1-1", 8, 17, "expected an age"),
        ("data:1", 4, 5, "the payload path is missing"),
        ("data.x", 6, 6, "the value is missing after the path"),
        ("data.:1", 5, 5, "a name is missing"),
        ("data.a..b:1", 7, 7, "a name is missing"),
        ("data.a:>x", 7, 9, "after the sign"),
        ("data.\"a", 5, 7, "this quote is not closed"),
        ("a\0", 1, 2, "this character"),
        ("a OR", 4, 4, "OR needs a term before and after it"),
        ("OR a", 0, 2, "OR needs a term before and after it"),
        (
            "a (b OR OR c)",
            8,
            10,
            "OR needs a term before and after it",
        ),
        ("a (b", 2, 3, "this parenthesis is not closed"),
        ("a ()", 2, 4, "the parentheses are empty"),
        ("(a)b", 3, 4, "expected a space after the parenthesis"),
        ("(((((((((a)))))))))", 8, 9, "the limit is 8"),
        ("payload:\"\"", 8, 10, "the quotes are empty"),
    ] {
        let mistake = Search::parse(text).unwrap_err();
        assert_eq!((mistake.from, mistake.to), (from, to), "{text}: {mistake}");
        assert!(mistake.why.contains(why), "{text}: {mistake}");
    }
    assert_eq!(
        Search::parse("a -")
            .unwrap_err()
            .to_string()
            .split(':')
            .next(),
        Some("column 3")
    );
}

#[test]
fn a_search_has_1000_characters_and_32_terms() {
    for chars in [999, 1_000] {
        assert!(Search::parse(&"ä".repeat(chars)).is_ok(), "{chars}");
    }
    for chars in [1_001, 1_002] {
        let long = Search::parse(&"ä".repeat(chars)).unwrap_err();
        assert_eq!((long.from, long.to), (CHARS_MAX, chars));
    }
    for terms in [31, 32] {
        assert!(Search::parse(&"x ".repeat(terms)).is_ok(), "{terms}");
    }
    let many = Search::parse(&"x ".repeat(33)).unwrap_err();
    assert_eq!(many.from, 2 * TERMS_MAX);
    let path = |names: usize| Search::parse(&format!("data{}:1", ".a".repeat(names)));
    assert!(path(31).is_ok() && path(32).is_ok());
    assert!(path(33).unwrap_err().why.contains("the limit is 32 names"));
}

#[test]
fn each_term_has_a_description_and_can_be_removed() {
    let text = "  mail  -state:failed,stalled created:>2h queue:\"a b\" data.a.b:<=7 updated:<=2026-11-01T10:00";
    let terms = Search::parse(text).unwrap().terms();
    let describe: Vec<&str> = terms
        .iter()
        .map(|(describe, _)| describe.as_str())
        .collect();
    assert_eq!(
        describe,
        [
            "ID or class: mail",
            "not state: failed or stalled",
            "created more than 2h ago",
            "queue: a b",
            "data.a.b: ≤ 7",
            "state changed until 2026-11-01T10:00 UTC",
        ]
    );
    assert_eq!(
        terms[1].1,
        "mail created:>2h queue:\"a b\" data.a.b:<=7 updated:<=2026-11-01T10:00"
    );
    assert_eq!(Search::parse("a").unwrap().terms()[0].1, "");
}

#[test]
fn alternatives_have_one_description_and_are_removed_together() {
    let terms = |text: &str| Search::parse(text).unwrap().terms();
    let found = terms("mail (tag:a -tag:b OR state:failed) -(x OR y)");
    assert_eq!(found[1].0, "((tag: a and not tag: b) or state: failed)");
    assert_eq!(found[1].1, "mail -(x OR y)");
    assert_eq!(found[2].0, "not (ID or class: x or ID or class: y)");
    assert_eq!(
        terms("a OR b"),
        [(
            "(ID or class: a or ID or class: b)".to_owned(),
            String::new()
        )]
    );
    // A parenthesis outside of a group is text, and so is “or”.
    assert_eq!(terms("a) or")[0].0, "ID or class: a)");
    assert_eq!(terms("a) or").len(), 2);
}

fn may_match(search: &Search, api: &str, queue: &str) -> bool {
    let found = search.may_match_queue(api, "", queue, &mut Budget::unlimited());
    found.unwrap()
}

/// 32 patterns on each of 100,000 names would otherwise take seconds.
#[test]
fn matching_the_name_of_a_queue_costs_work_for_each_condition_and_byte() {
    let search = Search::parse("queue:q* -queue:*x -namespace:n api:qless state:failed").unwrap();
    let mut budget = Budget::new(1_000);
    let found = search.may_match_queue("qless", "", "q123456789", &mut budget);
    assert_eq!(found, Ok(true));
    // Five conditions, two names of 10 bytes and an empty one, each with one more.
    assert_eq!(budget.remaining(), 1_000 - 5 - 11 - 11 - 1);
    let mut budget = Budget::new(20);
    let found = search.may_match_queue("qless", "", "q123456789", &mut budget);
    assert_eq!(found, Err(BudgetExceeded::Work));
}

#[test]
fn alternatives_count_as_terms_and_limit_the_index() {
    let many = |n: usize| format!("({})", vec!["x"; n].join(" OR "));
    assert!(Search::parse(&many(31)).is_ok());
    assert!(Search::parse(&many(32)).is_err());
    let search = Search::parse("(queue:a OR queue:b) (state:failed OR tag:x) tag:y").unwrap();
    assert!(may_match(&search, "qless", "b") && !may_match(&search, "qless", "c"));
    assert!(search.may_match_state("waiting"));
    assert_eq!((search.tag(), search.id()), (Some("y"), None));
    assert!(!search.needs_body() && !search.needs_only_indexes());
    let search = Search::parse("-(queue:a OR queue:b tag:x)").unwrap();
    assert!(!may_match(&search, "qless", "a") && may_match(&search, "qless", "b"));
    let search = Search::parse("tag:a OR (state:failed payload:x)").unwrap();
    assert!(search.needs_body() && search.tag().is_none());
}

#[test]
fn a_search_reports_the_conditions_that_an_index_supports() {
    let search =
        Search::parse("tag:v* -tag:eu tag:vip -type:A type:B worker:* -api:relay").unwrap();
    assert_eq!((search.tag(), search.failure()), (Some("vip"), Some("B")));
    assert!(search.requires_worker() && !search.needs_body());
    assert!(may_match(&search, "qless", "mail") && !may_match(&search, "relay", "mail"));
    let search = Search::parse("state:failed,dead -state:dead -worker:x data.a:1").unwrap();
    assert!(
        search.may_match_state("failed")
            && !search.may_match_state("dead")
            && !search.requires_worker()
    );
    assert!(search.needs_body());
    assert_eq!(Search::parse("Letter-1").unwrap().id(), Some("Letter-1"));
    assert_eq!(Search::parse("-Letter-1").unwrap().id(), None);
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected_with_a_position(text in r#"([-a-z:.,<>="*\\ 0-9TZ()]|data\.|state:|created:| OR |\(|\) |\PC|[\x00-\x20]){0,60}"#) {
        let length = text.chars().count();
        match Search::parse(&text) {
            Ok(search) => {
                search.matches(&job(), NOW, &mut Budget::unlimited()).unwrap();
                // The text without a term parses to the other terms.
                for (index, (_, without)) in search.terms().into_iter().enumerate() {
                    let mut others = search.clone();
                    others.terms.remove(index);
                    prop_assert_eq!(Search::parse(&without), Ok(others));
                }
            }
            Err(mistake) => prop_assert!(mistake.from <= mistake.to && mistake.to <= length),
        }
    }

    #[test]
    fn any_name_is_found_in_quotes(name in r"[^\x00-\x08\x0e-\x1f\x7f-\u{9f}]{1,40}") {
        let quoted = name.replace('\\', r"\\").replace('"', "\\\"");
        let search = Search::parse(&format!("queue:\"{quoted}\"")).unwrap();
        prop_assert!(may_match(&search, "qless", &name), "{}", search.terms()[0].0);
    }
}

#[test]
fn a_payload_is_read_once_for_all_terms() {
    let body = format!(
        r#"{{"text": "{}", "a": {{"b": 1}}}}"#,
        "x".repeat(1_000_000)
    );
    let job = JobFacts {
        body: Body::Json(&body),
        ..job()
    };
    let terms: Vec<String> = (0..31).map(|n| format!("-data.a.c{n}:1")).collect();
    let search = Search::parse(&terms.join(" ")).unwrap();
    let mut budget = Budget::new(1_100_000);
    assert_eq!(search.matches(&job, NOW, &mut budget), Ok(true));
    let mut budget = Budget::new(900_000);
    assert_eq!(
        search.matches(&job, NOW, &mut budget),
        Err(BudgetExceeded::Work)
    );
}

#[test]
fn each_term_pays_for_the_text_it_looks_through() {
    let message = "x".repeat(10_000);
    let body = format!(r#"{{"text": "{message}"}}"#);
    let job = JobFacts {
        failure: Some(("group", &message)),
        body: Body::Json(&body),
        ..job()
    };
    for text in ["-error:y", "-data.text:y"] {
        let search = Search::parse(&[text; 30].join(" ")).unwrap();
        let mut budget = Budget::new(200_000);
        let found = search.matches(&job, NOW, &mut budget);
        assert_eq!(found, Err(BudgetExceeded::Work), "{text}");
    }
}

#[test]
fn a_pattern_pays_for_each_element_and_tag_it_looks_at() {
    let body = format!("{{\"a\": [{}0]}}", r#""aaaaaaaa", "#.repeat(10_000));
    let tags = vec![String::new(); 100];
    let job = JobFacts {
        body: Body::Json(&body),
        tags: &tags,
        ..job()
    };
    let spent = |text: &str| {
        let search = Search::parse(text).unwrap();
        let mut budget = Budget::new(10_000_000);
        assert_eq!(search.matches(&job, NOW, &mut budget), Ok(false), "{text}");
        10_000_000 - budget.remaining()
    };
    let one = spent("data.a:*b");
    assert!(one >= 9 * 10_000, "{one}");
    // Many stars in a row are one.
    assert_eq!(spent(&format!("data.a:{}b", "*".repeat(900))), one);
    let nine = spent(&format!("data.a:{}*b", "a*".repeat(8)));
    assert!(nine >= one + 7 * 10_000, "{nine}");
    assert!(spent("tag:*b") >= 100);
    let stars = format!("tag:{}b", "*".repeat(900));
    assert_eq!(spent(&stars), spent("tag:*b"));
}

#[test]
fn overlapping_payload_paths_match_independently() {
    let job = |body: &'static str| JobFacts {
        body: Body::Json(body),
        ..job()
    };
    let nested = job(r#"{"a": {"b": [{"c": 1}, {"c": 2}], "n": 1e400}, "d": [1, [2]]}"#);
    for text in [
        "data.a:* data.a.b:* data.a.b.1.c:2 data.a.n:*",
        "data.d:1 data.d.1:2 data.d.1.0:2 -data.d.2:*",
        "-data.a:1 -data.a.b.c:2 -data.a.b.0.c:2",
    ] {
        assert!(finds(text, &nested), "{text}");
    }
    // The last of duplicate names counts.
    let twice = job(r#"{"a": 1, "a": {"b": 2}, "c": {"d": 1}, "c": 5}"#);
    assert!(finds("-data.a:1 data.a.b:2 -data.c.d:1 data.c:5", &twice));
    for body in ["{\"a\": 1", "{\"a\": 1} x", "", "[1,"] {
        assert!(!finds("data.a:1", &job(body)), "{body}");
        assert!(finds("-data.a:1", &job(body)), "{body}");
    }
}
