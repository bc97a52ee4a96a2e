//! Whoever writes SQL where a query is meant gets neither to see nor to touch what is not asked for.

use reqwest::Method;
use serde_json::{Value, json};

use super::{sound, start_with_queue};
use crate::support::escape;
use crate::support::jobq::{Job, Jobq, Queue};

/// A word that stands in the other queue only.
const CANARY: &str = "canary-7f3a19";

/// What is no expression, because it would reach beyond the job.
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

/// What is an expression though it looks evil: it is a text, or true of the queue's own jobs.
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

/// The other queue, and all that is in it.
async fn canary(jobq: &Jobq) -> (Vec<Queue>, Vec<Job>) {
    (jobq.queues().await, jobq.all(CANARY).await)
}

/// A queue `q` with a job, and another one with what nobody may see.
async fn fill(jobq: &Jobq) -> (Vec<Queue>, Vec<Job>) {
    jobq.create(CANARY).await;
    let secret = json!({"secret": CANARY, "n": 1});
    jobq.put_in(CANARY, &secret, &json!([CANARY])).await;
    jobq.put(CANARY, &secret).await;
    jobq.event(CANARY, 1, &json!(CANARY)).await.job();
    jobq.put("q", &json!({"n": 1})).await;
    canary(jobq).await
}

/// Triples with this in every place where it can stand.
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
async fn what_reaches_beyond_the_job_is_refused() {
    let (server, jobq) = start_with_queue().await;
    let before = fill(&jobq).await;
    let own = jobq.all("q").await;
    for text in BEYOND {
        for query in triples(text) {
            for reply in [
                jobq.ask_for("q", &query).await,
                jobq.ask_one("q", &query, &json!("TAKEN")).await,
            ] {
                reply.bad_query();
                assert!(!reply.text.contains(CANARY), "{reply:?}");
            }
        }
    }
    assert_eq!(canary(&jobq).await, before);
    assert_eq!(jobq.all("q").await, own);
    sound(&server).await;
}

/// As part of a larger whole it is no better.
#[tokio::test]
async fn nor_does_it_help_to_wrap_it() {
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
            let reply = jobq.ask_for("q", &query).await;
            // What breaks out of one frame may be whole in another: `(1) OR (1=1)`.
            let is_whole = text.starts_with("1) OR (");
            assert!(reply.status == 400 || is_whole, "{reply:?}");
            assert!(!reply.text.contains(CANARY), "{reply:?}");
        }
    }
    assert_eq!(canary(&jobq).await, before);
    assert_eq!(jobq.all("q").await, own);
    sound(&server).await;
}

#[tokio::test]
async fn what_only_looks_evil_finds_what_is_ones_own() {
    let (server, jobq) = start_with_queue().await;
    let before = fill(&jobq).await;
    for text in HARMLESS {
        for query in [
            json!([["=", text, 1]]),
            json!([["IS NOT", text, null]]),
            json!([["LIKE", "payload", text]]),
        ] {
            for reply in [
                jobq.ask_for("q", &query).await,
                jobq.ask_one("q", &query, &json!("TAKEN")).await,
            ] {
                assert!([200, 404].contains(&reply.status), "{reply:?}");
                assert!(!reply.text.contains(CANARY), "{reply:?}");
            }
        }
    }
    assert_eq!(canary(&jobq).await, before);
    assert_eq!(jobq.all("q").await.len(), 1);
    sound(&server).await;
}

/// In paths, in what is kept, and in numbers of pages.
#[tokio::test]
async fn nor_do_other_places_let_it_in() {
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
            jobq.get(&path).await.refused(400, &[]);
        }
        let gone = jobq
            .send(Method::DELETE, &format!("/queue/{escaped}"))
            .await;
        gone.refused(404, &[]);
        jobq.send(Method::DELETE, &format!("/queue/q/job/{escaped}"))
            .await
            .done();
        // What is kept is kept as it is.
        let job = jobq.put_in("q", &json!({text: text}), &json!([text])).await;
        jobq.event("q", job.id, &json!(text)).await.job();
        let taken = json!(["TAKEN", text]);
        let reply = jobq.advance("q", job.id, &json!([text]), &taken).await;
        assert_eq!(jobq.stays("q", job.id).await, reply.job());
        let query = json!([[
            "=",
            "json_extract(state,'$[1]')",
            format!("'{}'", text.replace('\'', "''"))
        ]]);
        assert_eq!(jobq.matching("q", &query).await, [job.id], "{query}");
    }
    assert_eq!(canary(&jobq).await, before);
    assert_eq!(jobq.all("q").await.len(), 1 + BEYOND.len() + HARMLESS.len());
    sound(&server).await;
}
