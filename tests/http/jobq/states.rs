//! Comparing and setting states.

use serde_json::json;

use super::{assert_consistent, start_with_queue};
use crate::support::jobq::{What, canonical, path};

#[tokio::test]
async fn the_state_is_set_if_the_old_state_is_equal() {
    let (server, jobq) = start_with_queue().await;
    let created = jobq.put("q", &json!({"a": 1})).await;
    let mut log = vec![What::Created];
    let mut old = json!(null);
    for new in [
        json!(["CREATED"]),
        json!(["ASSIGNED", {"node": 1}]),
        json!("text"),
        json!(5),
        json!(null),
        json!(false),
        json!({}),
        json!([]),
        json!({"deep": {"er": [1, {"x": null}]}}),
    ] {
        let job = jobq.advance("q", 1, &old, &new).await.job();
        log.push(What::Advanced(
            canonical(&old.to_string()),
            canonical(&new.to_string()),
        ));
        assert_eq!(job.log(), log);
        assert_eq!(job.state, canonical(&new.to_string()));
        assert_eq!((job.id, &job.payload), (1, &created.payload));
        assert_eq!(jobq.existing_job("q", 1).await, job);
        old = new;
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_wrong_old_state_changes_nothing_and_returns_the_job() {
    let (server, jobq) = start_with_queue().await;
    jobq.put_in("q", &json!(1), &json!(["A", {"n": 1}])).await;
    jobq.put("q", &json!(2)).await;
    let job = jobq.existing_job("q", 1).await;
    let order = jobq.matching("q", &json!([])).await;
    for old in [
        "null",
        "[]",
        "\"A\"",
        r#"["A"]"#,
        r#"["A",{}]"#,
        r#"["A",{"n":2}]"#,
        r#"["A",{"n":"1"}]"#,
        r#"["A",{"n":1.5}]"#,
        r#"["A",{"n":true}]"#,
        r#"["A",{"N":1}]"#,
        r#"["A",{"n":1,"m":null}]"#,
        r#"["A",{"n":1},null]"#,
        r#"["a",{"n":1}]"#,
        r#"[{"n":1},"A"]"#,
        r#"["A",{"n":[1]}]"#,
    ] {
        let reply = jobq.advance_text("q", 1, old, r#"["B"]"#).await;
        assert_eq!(reply.conflict(), job, "{old}");
        assert_eq!(jobq.existing_job("q", 1).await, job);
    }
    // The order by the last change is the same.
    assert_eq!(jobq.matching("q", &json!([])).await, order);
    // A job without a state differs from a job with any state.
    let none = jobq.existing_job("q", 2).await;
    for old in ["0", "false", "\"\"", "\"null\"", "[]", "[null]", "{}"] {
        let reply = jobq.advance_text("q", 2, old, "1").await;
        assert_eq!(reply.conflict(), none, "{old}");
    }
    jobq.advance_text("q", 2, "null", "1").await.job();
    assert_consistent(&server).await;
}

/// Different texts of the same JSON value.
#[tokio::test]
async fn the_notation_of_a_state_makes_no_difference() {
    let (server, jobq) = start_with_queue().await;
    let pairs = [
        (r#"{"a":1,"b":[2,3]}"#, " {\n\"b\" : [ 2 ,\t3],\r\"a\":1 } "),
        (r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#),
        ("1", "1.0"),
        ("1", "1e0"),
        ("100", "1E+2"),
        ("100", "1.00e2"),
        ("0.1", "0.1000"),
        ("0.1", "1e-1"),
        ("0", "0.0"),
        ("0", "-0"),
        ("0", "0e999999"),
        ("12345678901234567890123", "12345678901234567890123.0"),
        ("1e400", "10e399"),
        ("1e23", "100000000000000000000000"),
        ("\"é\"", r#""\u00e9""#),
        ("\"A/\"", r#""\u0041\/""#),
        ("\"🦀\"", r#""\ud83e\udd80""#),
        (r#""\n\t""#, r#""\u000a\u0009""#),
        (
            r#"{"k\u0065y":[true,null]}"#,
            r#"{ "key" : [ true , null ] }"#,
        ),
    ];
    for (number, (one, other)) in pairs.into_iter().enumerate() {
        let body = format!("{{\"payload\":{number},\"state\":{one}}}");
        let job = jobq.post_text("/queue/q/job", body).await.job();
        let there = jobq.advance_text("q", job.id, other, other).await;
        assert_eq!(there.status, 200, "{one} is {other}: {there:?}");
        let back = jobq.advance_text("q", job.id, one, one).await;
        assert_eq!(back.status, 200, "{other} is {one}: {back:?}");
    }
    assert_consistent(&server).await;
}

/// Different values that imprecise parsers consider equal.
#[tokio::test]
async fn numbers_that_differ_in_the_last_digit_are_different() {
    let (server, jobq) = start_with_queue().await;
    let pairs = [
        ("9007199254740992", "9007199254740993"),
        ("12345678901234567890123", "12345678901234567890124"),
        ("0.1", "0.1000000000000000000001"),
        ("1e400", "1e401"),
        ("1e400", "-1e400"),
        ("1e-400", "0"),
        ("1e-400", "1e-401"),
        ("1", "-1"),
        ("1", "\"1\""),
        ("1", "true"),
        ("\"é\"", "\"e\u{301}\""),
        ("\"a\"", "\"A\""),
        ("\"a\"", "\"a \""),
        (r#""\u0001""#, r#""\u0002""#),
        ("[1,2]", "[2,1]"),
        ("[]", "{}"),
        ("[]", "[[]]"),
    ];
    for (number, (one, other)) in pairs.into_iter().enumerate() {
        for (one, other) in [(one, other), (other, one)] {
            let body = format!("{{\"payload\":{number},\"state\":{one}}}");
            let job = jobq.post_text("/queue/q/job", body).await.job();
            let reply = jobq.advance_text("q", job.id, other, "2").await;
            assert_eq!(reply.conflict(), job, "{one} is not {other}");
        }
    }
    assert_consistent(&server).await;
}

/// Numbers with huge exponents, which must not be expanded.
#[tokio::test]
async fn numbers_of_any_size_are_compared() {
    let (server, jobq) = start_with_queue().await;
    for (one, other, same) in [
        ("1e999999999", "1e999999998", false),
        ("1e999999999", "10e999999998", true),
        ("1e-999999999", "1e999999999", false),
        ("1e99999999999999999999", "1e99999999999999999998", false),
        ("-1e999999999", "1e999999999", false),
    ] {
        let body = format!("{{\"payload\":1,\"state\":{one}}}");
        let reply = jobq.post_text("/queue/q/job", body).await;
        if reply.status == 400 {
            continue;
        }
        let job = reply.job();
        let reply = jobq.advance_text("q", job.id, other, "1").await;
        let expected = if same { 200 } else { 409 };
        assert_eq!(reply.status, expected, "{one} and {other}: {reply:?}");
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn setting_the_same_state_adds_an_event() {
    let (server, jobq) = start_with_queue().await;
    for state in [json!(null), json!(["A"])] {
        let id = jobq.put_in("q", &json!(1), &state).await.id;
        let job = jobq.advance("q", id, &state, &state).await.job();
        let text = canonical(&state.to_string());
        let advanced = What::Advanced(text.clone(), text);
        assert_eq!(job.log(), [What::Created, advanced]);
    }
    jobq.advance("q", 1, &json!(null), &json!(null)).await.job();
    assert_eq!(jobq.matching("q", &json!([])).await, [2, 1]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn both_states_are_required() {
    let (server, jobq) = start_with_queue().await;
    let job = jobq.put("q", &json!(1)).await;
    let at = format!("{}/state", path("q", 1));
    for body in [
        "{}",
        r#"{"old":null}"#,
        r#"{"new":1}"#,
        r#"{"Old":null,"New":1}"#,
        r#"{"state":1}"#,
        "[null,1]",
        "null",
        "1",
        "\"old\"",
        "",
        r#"{"old":null,"new":}"#,
    ] {
        jobq.post_text(&at, body).await.assert_rejected(400, &[]);
        assert_eq!(jobq.existing_job("q", 1).await, job, "{body}");
    }
    let body = r#"{"new":1,"id":7,"old":null,"payload":9}"#;
    let moved = jobq.post_text(&at, body).await.job();
    assert_eq!((moved.payload, &*moved.state), (job.payload, "1"));
    assert_consistent(&server).await;
}

/// Other jobs, and the job with the same number in another queue, are not affected.
#[tokio::test]
async fn other_jobs_are_not_affected() {
    let (server, jobq) = start_with_queue().await;
    jobq.create("other").await;
    for queue in ["q", "other"] {
        for number in 0..3 {
            jobq.put_in(queue, &json!(number), &json!("S")).await;
        }
    }
    let before = (jobq.all("q").await, jobq.all("other").await);
    jobq.advance("q", 2, &json!("S"), &json!("T")).await.job();
    jobq.event("q", 2, &json!(1)).await.job();
    jobq.delete("q", 2).await;
    let after = (jobq.all("q").await, jobq.all("other").await);
    assert_eq!(after.0, [before.0[0].clone(), before.0[2].clone()]);
    assert_eq!(after.1, before.1);
    assert_consistent(&server).await;
}
