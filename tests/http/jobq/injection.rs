//! SQL injection: queries cannot read or change anything but the queue's own jobs.

use reqwest::Method;
use serde_json::{Value, json};

use super::{assert_consistent, start_with_queue};
use crate::support::escape;
use crate::support::jobq::{Job, Jobq, Queue};

/// A word that occurs in the other queue only.
const CANARY: &str = "canary-7f3a19";

/// Expressions that are rejected, because they would reach beyond the job.
const BEYOND: [&str; 58] = [
    "(SELECT payload FROM jobs)",
    "(SELECT 1)",
    "SELECT 1",
    "1 UNION SELECT payload FROM jobs",
    "1 UNION ALL SELECT 1",
    "id IN (SELECT id FROM jobs)",
    "EXISTS (SELECT 1)",
    "NOT EXISTS (SELECT 1)",
    "(VALUES (1))",
    "(WITH x AS (SELECT 1) SELECT * FROM x)",
    "1; DROP TABLE jobs",
    "1; DELETE FROM jobs; --",
    "1;",
    "; SELECT 1",
    "1) OR (1=1",
    "1) OR 1=1 --",
    "1 --",
    "1 -- comment",
    "--",
    "/* comment */ 1",
    "1 /* comment */",
    "1 /*",
    "1/**/OR/**/1",
    "id = 1 # comment",
    "?",
    "?1",
    ":name",
    "@name",
    "$1",
    "$name",
    "x'6a6f6273'",
    "X'00'",
    "E'\\x00'",
    "U&'\\0061'",
    "$$text$$",
    "jobs.payload",
    "sqlite_master.sql",
    "main.jobs.payload",
    "pg_catalog.pg_class",
    "j.body",
    "j.rowid",
    "rowid.x",
    "*",
    "j.*",
    "count(*)",
    "group_concat(payload)",
    "sum(id)",
    "load_extension('evil')",
    "readfile('/etc/passwd')",
    "writefile('/tmp/x', 'y')",
    "randomblob(1000000000)",
    "zeroblob(1000000000)",
    "sqlite_version()",
    "pg_sleep(10)",
    "pg_read_file('/etc/passwd')",
    "id::text",
    "CASE WHEN id THEN 1 END",
    "payload -> (SELECT 1)",
];

/// Expressions that look dangerous but are valid: they are texts, or read only the queue's own jobs.
const HARMLESS: [&str; 16] = [
    "''' OR 1=1 --'",
    "'''; DROP TABLE jobs; --'",
    "'/* */ SELECT'",
    "1 OR 1=1",
    "'1' OR '1'='1'",
    "id OR 1",
    "\"'; DROP TABLE jobs; --\"",
    "`SELECT * FROM jobs`",
    "'?1 :a $b @c'",
    "'%s %d {} \\'",
    "payload || ''' OR 1=1'",
    "id IN (1, 2) OR 1",
    "NULL OR NULL IS NULL",
    "json_extract(payload, '$.\"; DROP TABLE jobs; --\"')",
    "json_extract(payload, '$[0]') || ';'",
    "payload LIKE '%'",
];

/// All queues, and the jobs of the other queue.
async fn canary(jobq: &Jobq) -> (Vec<Queue>, Vec<Job>) {
    (jobq.queues().await, jobq.all(CANARY).await)
}

/// A queue `q` with a job, and another queue with private data.
async fn fill(jobq: &Jobq) -> (Vec<Queue>, Vec<Job>) {
    jobq.create(CANARY).await;
    let secret = json!({"secret": CANARY, "n": 1});
    jobq.put_in(CANARY, &secret, &json!([CANARY])).await;
    jobq.put(CANARY, &secret).await;
    jobq.event(CANARY, 1, &json!(CANARY)).await.job();
    jobq.put("q", &json!({"n": 1})).await;
    canary(jobq).await
}

/// Triples with this text in every possible place.
fn triples(text: &str) -> [Value; 5] {
    [
        json!([["=", text, 1]]),
        json!([["IS", "id", text]]),
        json!([["LIKE", "payload", text]]),
        json!([[text, "id", 1]]),
        json!([["=", "id", 1], ["IS NOT", text, text]]),
    ]
}

#[tokio::test]
async fn expressions_that_reach_beyond_the_job_are_rejected() {
    let (server, jobq) = start_with_queue().await;
    let before = fill(&jobq).await;
    let own = jobq.all("q").await;
    for text in BEYOND {
        for query in triples(text) {
            for reply in [
                jobq.send_query("q", &query).await,
                jobq.send_poll("q", &query, &json!("TAKEN")).await,
            ] {
                reply.bad_query();
                assert!(!reply.text.contains(CANARY), "{reply:?}");
            }
        }
    }
    assert_eq!(canary(&jobq).await, before);
    assert_eq!(jobq.all("q").await, own);
    assert_consistent(&server).await;
}

/// Within a larger expression they are rejected as well.
#[tokio::test]
async fn a_wrapped_expression_is_rejected_too() {
    let (server, jobq) = start_with_queue().await;
    let before = fill(&jobq).await;
    let own = jobq.all("q").await;
    for text in BEYOND {
        for (head, tail) in [
            ("id = ", ""),
            ("(", ")"),
            ("coalesce(", ", 1)"),
            ("1 IN (1, ", ")"),
        ] {
            let query = json!([["=", format!("{head}{text}{tail}"), 1]]);
            let reply = jobq.send_query("q", &query).await;
            // A text that breaks out of one wrapper can be valid in another: `(1) OR (1=1)`.
            let is_whole = text.starts_with("1) OR (");
            assert!(reply.status == 400 || is_whole, "{reply:?}");
            assert!(!reply.text.contains(CANARY), "{reply:?}");
        }
    }
    assert_eq!(canary(&jobq).await, before);
    assert_eq!(jobq.all("q").await, own);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn harmless_expressions_find_only_jobs_of_the_queue() {
    let (server, jobq) = start_with_queue().await;
    let before = fill(&jobq).await;
    for text in HARMLESS {
        for query in [
            json!([["=", text, 1]]),
            json!([["IS NOT", text, null]]),
            json!([["LIKE", "payload", text]]),
        ] {
            for reply in [
                jobq.send_query("q", &query).await,
                jobq.send_poll("q", &query, &json!("TAKEN")).await,
            ] {
                assert!([200, 404].contains(&reply.status), "{reply:?}");
                assert!(!reply.text.contains(CANARY), "{reply:?}");
            }
        }
    }
    assert_eq!(canary(&jobq).await, before);
    assert_eq!(jobq.all("q").await.len(), 1);
    assert_consistent(&server).await;
}

/// In paths, stored values, and page parameters.
#[tokio::test]
async fn other_parameters_cannot_inject_sql() {
    let (server, jobq) = start_with_queue().await;
    let before = fill(&jobq).await;
    for text in BEYOND.into_iter().chain(HARMLESS) {
        let escaped = escape(text);
        for path in [
            format!("/queue/{escaped}/job"),
            format!("/queue/q/job/{escaped}"),
            format!("/queue/{escaped}/job/1"),
        ] {
            let reply = jobq.get(&path).await;
            assert_eq!(reply.status, 404, "{reply:?}");
        }
        for path in [
            format!("/queue/q/job?limit={escaped}"),
            format!("/queue/q/job?after={escaped}"),
        ] {
            jobq.get(&path).await.assert_rejected(400, &[]);
        }
        let gone = jobq
            .send(Method::DELETE, &format!("/queue/{escaped}"))
            .await;
        gone.assert_rejected(404, &[]);
        jobq.send(Method::DELETE, &format!("/queue/q/job/{escaped}"))
            .await
            .done();
        // Stored values are unchanged.
        let job = jobq.put_in("q", &json!({text: text}), &json!([text])).await;
        jobq.event("q", job.id, &json!(text)).await.job();
        let taken = json!(["TAKEN", text]);
        let reply = jobq.advance("q", job.id, &json!([text]), &taken).await;
        assert_eq!(jobq.existing_job("q", job.id).await, reply.job());
        let query = json!([[
            "=",
            "json_extract(state,'$[1]')",
            format!("'{}'", text.replace('\'', "''"))
        ]]);
        assert_eq!(jobq.matching("q", &query).await, [job.id], "{query}");
    }
    assert_eq!(canary(&jobq).await, before);
    assert_eq!(jobq.all("q").await.len(), 1 + BEYOND.len() + HARMLESS.len());
    assert_consistent(&server).await;
}
