//! Typical queries, and their results.

use serde_json::{Value, json};

use super::{assert_consistent, start_with_queue};
use crate::support::jobq::{Jobq, ids, plain};

/// Various jobs, numbered from 1: payload and state.
pub fn jobs() -> Vec<(Value, Value)> {
    vec![
        (
            json!({"msg": "Hello World", "attempt": 1, "host": "db", "port": 5432, "p": 1, "user": {"name": "O'Neil"}}),
            Value::Null,
        ),
        (
            json!({"msg": "hello there", "attempt": 4, "queue": "default"}),
            json!(["CREATED"]),
        ),
        (
            json!({"msg": "say hello", "attempt": 10, "queue": "other", "p": 2, "urgent": 1}),
            json!(["ASSIGNED", {"node": 1}]),
        ),
        (
            json!({"msg": "HELLO", "attempt": "9", "urgent": true, "host": "db", "port": "5432"}),
            json!(["ASSIGNED", {"node": 2}]),
        ),
        (json!([1, 2, 3]), json!(["FINISHED", {"node": 1}])),
        (json!("text"), json!("CREATED")),
        (json!(7), json!({"0": "CREATED", "tag": "CREATED"})),
        (
            json!({"user": {"name": "o'neil"}, "attempt": 3}),
            json!(["RETRY"]),
        ),
        (
            json!({"msg": 5, "attempt": null, "p": 1.0}),
            json!(["created"]),
        ),
        (
            json!({"user": {"name": "O''Neil"}, "msg": "jello"}),
            json!([["CREATED"], "x"]),
        ),
        (json!({}), json!(5)),
        (json!(true), json!([])),
    ]
}

/// Creates these jobs in the queue `q`.
pub async fn fill(jobq: &Jobq) {
    for (number, (payload, state)) in (1..).zip(jobs()) {
        let job = jobq.put_in("q", &payload, &state).await;
        assert_eq!(job.id, number);
    }
}

/// A term, and the numbers of the matching jobs.
type Case = (&'static str, &'static str, Value, &'static [i64]);

/// Terms with their results.
fn terms() -> Vec<Case> {
    let first = "json_extract(state, '$[0]')";
    let free = "(json_extract(payload,'$.p') = 1 OR json_extract(payload,'$.urgent') = 1)";
    let address = "json_extract(payload,'$.host') || ':' || json_extract(payload,'$.port')";
    let queue = "coalesce(json_extract(payload,'$.queue'),'default')";
    let name = "lower(json_extract(payload,'$.user.name'))";
    let either = "json_extract(state,'$[0]') IN ('CREATED','RETRY')";
    let stated = &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    vec![
        ("IS", first, json!("CREATED"), &[2]),
        ("IS", first, json!("'CREATED'"), &[2]),
        (
            "=",
            "json_extract(j.state,'$[0]')",
            json!("'ASSIGNED'"),
            &[3, 4],
        ),
        ("IS", "j.state", json!(null), &[1]),
        ("IS NOT", "state", json!(null), stated),
        ("=", "state", json!(r#"'["CREATED"]'"#), &[2]),
        ("=", "json_extract(state,'$[1].node')", json!(1), &[3, 5]),
        ("=", "json_array_length(state)", json!("2"), &[3, 4, 5, 10]),
        ("!=", first, json!("'FINISHED'"), &[2, 3, 4, 8, 9, 10]),
        ("IS", first, json!("NULL"), &[1, 6, 7, 11, 12]),
        (
            "LIKE",
            "json_extract(payload,'$.msg')",
            json!("'hello%'"),
            &[1, 2, 4],
        ),
        (
            ">",
            "json_extract(payload,'$.attempt')",
            json!("3"),
            &[2, 3, 4],
        ),
        ("=", address, json!("'db:5432'"), &[1, 4]),
        ("<", "modified", json!("strftime('%s','now') - 60"), &[]),
        ("=", either, json!("1"), &[2, 8]),
        ("=", free, json!("1"), &[1, 3, 4, 9]),
        ("=", "id", json!("7"), &[7]),
        (">=", "j.id", json!(10), &[10, 11, 12]),
        (
            "=",
            queue,
            json!("'default'"),
            &[1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12],
        ),
        ("=", name, json!("'o''neil'"), &[1, 8]),
    ]
}

/// Queries with their results.
fn cases() -> Vec<(Value, &'static [i64])> {
    let terms = terms().into_iter();
    let mut cases: Vec<(Value, &[i64])> = terms
        .map(|(op, a, b, expected)| (json!([[op, a, b]]), expected))
        .collect();
    let assigned = json!(["=", "json_extract(j.state,'$[0]')", "'ASSIGNED'"]);
    for (op, expected) in [("<", &[][..]), (">=", &[3, 4])] {
        let untouched = json!([op, "modified", "strftime('%s','now') - 60"]);
        cases.push((json!([assigned, untouched]), expected));
    }
    cases
}

#[tokio::test]
async fn typical_queries_match_the_expected_jobs() {
    let (server, jobq) = start_with_queue().await;
    fill(&jobq).await;
    for (query, expected) in cases() {
        let found = jobq.send_query("q", &query).await.jobs();
        assert_eq!(ids(&found), expected, "{query}");
        for job in found {
            assert_eq!(jobq.existing_job("q", job.id).await, job, "{query}");
        }
    }
    assert_consistent(&server).await;
}

/// Polls claim the matching jobs one after the other, until there are none.
#[tokio::test]
async fn polls_claim_the_jobs_that_queries_match() {
    for (query, expected) in cases() {
        let (_server, jobq) = start_with_queue().await;
        fill(&jobq).await;
        let before = jobq.all("q").await;
        for id in expected {
            let only_it = [
                query.as_array().unwrap().clone(),
                vec![json!(["=", "id", id])],
            ];
            let taken = json!(["TAKEN", id]);
            let job = jobq.poll("q", &json!(only_it.concat()), &taken).await;
            assert_eq!(job.map(|job| job.id), Some(*id), "{query}");
        }
        for job in before {
            let now = jobq.existing_job("q", job.id).await;
            if expected.contains(&job.id) {
                assert_eq!(now.state, plain(&json!(["TAKEN", job.id])), "{query}");
            } else {
                assert_eq!(now, job, "{query}");
            }
        }
    }
}

#[tokio::test]
async fn operators_are_case_insensitive() {
    let (server, jobq) = start_with_queue().await;
    for number in 1..=4 {
        let payload = json!({"n": number, "t": format!("t{number}")});
        jobq.put("q", &payload).await;
    }
    jobq.put("q", &json!({})).await;
    let (n, t) = ("json_extract(payload,'$.n')", "json_extract(payload,'$.t')");
    for (op, a, b, expected) in [
        ("=", n, json!(2), &[2][..]),
        ("==", n, json!(2), &[2]),
        ("!=", n, json!(2), &[1, 3, 4]),
        ("<>", n, json!(2), &[1, 3, 4]),
        ("<", n, json!(2), &[1]),
        ("<=", n, json!(2), &[1, 2]),
        (">", n, json!(2), &[3, 4]),
        (">=", n, json!(2), &[2, 3, 4]),
        ("IS", n, json!(2), &[2]),
        ("is", n, Value::Null, &[5]),
        ("IS NOT", n, json!(2), &[1, 3, 4, 5]),
        ("is not", n, Value::Null, &[1, 2, 3, 4]),
        ("Is Not", n, Value::Null, &[1, 2, 3, 4]),
        ("LIKE", t, json!("'T_'"), &[1, 2, 3, 4]),
        ("like", t, json!("'%3'"), &[3]),
        ("NOT LIKE", t, json!("'%3'"), &[1, 2, 4]),
        ("not like", t, json!("'%3'"), &[1, 2, 4]),
        // Comparisons with null are never true.
        ("=", n, Value::Null, &[]),
        ("!=", n, Value::Null, &[]),
        ("LIKE", t, Value::Null, &[]),
        // Numbers are less than texts, and a number does not equal a text.
        ("<", n, json!("'0'"), &[1, 2, 3, 4]),
        ("=", n, json!("'2'"), &[]),
        ("=", t, json!("'t2'"), &[2]),
        ("=", t, json!("t2"), &[2]),
        ("=", n, json!(2.0), &[2]),
        ("=", "1", json!(true), &[1, 2, 3, 4, 5]),
        ("=", "0", json!(false), &[1, 2, 3, 4, 5]),
        ("=", "1", json!(false), &[]),
    ] {
        for query in [json!([[op, a, b]]), json!([["=", 1, 1], [op, a, b]])] {
            assert_eq!(jobq.matching("q", &query).await, expected, "{query}");
        }
    }
    // The operands in the other order, without a text.
    assert_eq!(jobq.matching("q", &json!([["=", 2, n]])).await, [2]);
    assert_eq!(jobq.matching("q", &json!([["IS", null, n]])).await, [5]);
    assert_eq!(jobq.matching("q", &json!([["<", 1, 2]])).await.len(), 5);
    assert_consistent(&server).await;
}

/// A term cannot affect another term.
#[tokio::test]
async fn all_terms_must_be_true() {
    let (server, jobq) = start_with_queue().await;
    fill(&jobq).await;
    for (query, expected) in [
        (json!([["=", "id", 3], ["=", "id", 4]]), &[][..]),
        (json!([["=", "id", 3], ["=", "id", 3]]), &[3]),
        (json!([[">", "id", 3], ["<", "id", 6]]), &[4, 5]),
        (json!([["=", "1 OR id", "1"], ["=", "id", 5]]), &[5]),
        (json!([["=", "id", 5], ["=", "id = 4 OR 1", "1"]]), &[5]),
        (json!([["=", "0 AND id", "1 OR 1"]]), &[]),
        (json!([["=", "1", "0 OR id = 2"]]), &[2]),
        (json!([["=", "id", "2 OR 1"]]), &[1]),
        (
            json!([["=", "NOT id", "id = 7"]]),
            &[1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12],
        ),
    ] {
        assert_eq!(jobq.matching("q", &query).await, expected, "{query}");
    }
    assert_consistent(&server).await;
}

/// All columns, by all their names.
#[tokio::test]
async fn columns_contain_the_values_of_the_job() {
    let (server, jobq) = start_with_queue().await;
    jobq.put_in("q", &json!({"a": [1, 2.5]}), &json!(["S", {"x": null}]))
        .await;
    jobq.put("q", &json!("x")).await;
    jobq.event("q", 1, &json!("seen")).await.job();
    let modified = jobq.existing_job("q", 1).await.modified;
    for column in [
        ("id", json!(1)),
        ("payload", json!(r#"'{"a":[1,2.5]}'"#)),
        ("state", json!(r#"'["S",{"x":null}]'"#)),
        ("json_extract(events,'$[1][1].event')", json!("'seen'")),
        ("json_array_length(events)", json!(2)),
    ] {
        let (name, value) = column;
        assert_eq!(jobq.matching("q", &json!([["=", name, value]])).await, [1]);
    }
    for name in ["id", "j.id", "job.id", "ID", "J.Id", "\"id\"", "`id`"] {
        assert_eq!(
            jobq.matching("q", &json!([["=", name, 1]])).await,
            [1],
            "{name}"
        );
    }
    for name in ["modified", "j.modified", "job.modified"] {
        let query = json!([["=", name, modified], ["=", "id", 1]]);
        assert_eq!(jobq.matching("q", &query).await, [1], "{name}");
    }
    for (name, expected) in [
        ("typeof(id)", "'integer'"),
        ("typeof(modified)", "'integer'"),
        ("typeof(payload)", "'text'"),
        ("typeof(events)", "'text'"),
    ] {
        let query = json!([["=", name, expected]]);
        assert_eq!(jobq.matching("q", &query).await, [2, 1], "{name}");
    }
    let query = json!([["=", "typeof(state)", "'null'"]]);
    assert_eq!(jobq.matching("q", &query).await, [2]);
    assert_consistent(&server).await;
}

/// Whitespace in a body is not part of the value.
#[tokio::test]
async fn queries_read_values_without_whitespace() {
    let (server, jobq) = start_with_queue().await;
    let body = "{\"payload\":{ \"a\" : [ 1 , 2 ] },\"state\":[ \"S\" ]}";
    jobq.post_text("/queue/q/job", body).await.job();
    for query in [
        json!([["=", "payload", r#"'{"a":[1,2]}'"#]]),
        json!([["=", "state", r#"'["S"]'"#]]),
        json!([["=", "json_extract(payload, '$.a')", "'[1,2]'"]]),
    ] {
        assert_eq!(jobq.matching("q", &query).await, [1], "{query}");
    }
    let reply = jobq.advance_text("q", 1, "[\"S\"]", "[ 1 ,2 ]").await;
    reply.job();
    let query = json!([["=", "state", "'[1,2]'"]]);
    assert_eq!(jobq.matching("q", &query).await, [1]);
    assert_consistent(&server).await;
}

/// In order of the last change of any kind.
#[tokio::test]
async fn results_are_ordered_by_the_last_change() {
    let (server, jobq) = start_with_queue().await;
    for number in 1..=5 {
        jobq.put("q", &json!(number)).await;
    }
    let order = async || jobq.matching("q", &json!([])).await;
    assert_eq!(order().await, [1, 2, 3, 4, 5]);
    jobq.event("q", 2, &json!(1)).await.job();
    assert_eq!(order().await, [1, 3, 4, 5, 2]);
    jobq.advance("q", 1, &json!(null), &json!(1)).await.job();
    assert_eq!(order().await, [3, 4, 5, 2, 1]);
    jobq.advance("q", 4, &json!(null), &json!(null)).await.job();
    assert_eq!(order().await, [3, 5, 2, 1, 4]);
    let polled = jobq.poll("q", &json!([["=", "id", 5]]), &json!(1)).await;
    assert_eq!(polled.map(|job| job.id), Some(5));
    assert_eq!(order().await, [3, 2, 1, 4, 5]);
    jobq.delete("q", 1).await;
    jobq.put("q", &json!(6)).await;
    assert_eq!(order().await, [3, 2, 4, 5, 6]);
    let query = json!([["IS", "state", null]]);
    assert_eq!(jobq.matching("q", &query).await, [3, 2, 4, 6]);
    assert_consistent(&server).await;
}
