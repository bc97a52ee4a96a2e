//! Bulk publish: all jobs or none, each byte for byte as in the array.

use super::{assert_consistent, client, start};
use crate::support::Server;

/// Elements of an array, byte for byte.
const ELEMENTS: [&str; 17] = [
    r#"{"msg": "hellp"}"#,
    r#""hello, neo""#,
    "13579",
    r#"[ "test" ]"#,
    "true",
    "false",
    "null",
    "1.50",
    "-0.0",
    "1E+2",
    "123456789012345678901234567890",
    r#""\u00e9 \/ \ud83e\udd80""#,
    r#""日本 🦀""#,
    r#"{ "b" : [1, 2 ], "a":{} , "b": 2 }"#,
    r#""a, b ] [ \" }""#,
    r#""""#,
    "{\n\t\"indented\": true\n}",
];

#[tokio::test]
async fn each_element_is_a_job_byte_for_byte() {
    let server = start();
    let lmstfy = client(&server);
    for (before, between, after) in [("[", ",", "]"), ("\n [ \t", " ,\r\n ", "\n] \n")] {
        let body = [before, &ELEMENTS.join(between), after].concat();
        let ids = lmstfy.bulk("work", body).await;
        assert_eq!(ids.len(), ELEMENTS.len());
        for (id, element) in ids.iter().zip(ELEMENTS) {
            let job = lmstfy.take("work").await;
            assert_eq!((&job.id, job.text()), (id, element));
            assert_eq!((job.lifetime(), job.remain_tries), (86400, 0));
        }
        assert_eq!(lmstfy.consume("work").await, None);
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_bulk_has_1_to_64_jobs() {
    let server = start();
    let lmstfy = client(&server);
    for count in [1, 2, 63, 64] {
        let body = format!("[{}]", vec!["0"; count].join(","));
        let ids = lmstfy.bulk("work", body).await;
        assert_eq!(ids.len(), count);
        assert_eq!(lmstfy.drain("work").await, ids);
    }
    lmstfy
        .put("/work/bulk", "[]")
        .await
        .assert_rejected(400, "no jobs");
    lmstfy
        .put("/work/bulk", " [ ] ")
        .await
        .assert_rejected(400, "no jobs");
    let body = format!("[{}]", vec!["0"; 65].join(","));
    let reply = lmstfy.put("/work/bulk", body).await;
    reply.assert_rejected(400, "too many jobs");
    assert_eq!(lmstfy.size("work").await, 0);
}

#[tokio::test]
async fn only_an_array_is_accepted() {
    let server = start();
    let lmstfy = client(&server);
    for body in [
        "",
        " ",
        "x",
        "1",
        "null",
        "{}",
        r#"{"a": [1]}"#,
        r#""[1]""#,
        "[1",
        "1]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1] 2",
        "[1][2]",
        "['a']",
        "[01]",
        "[a]",
        "[\"\t\"]",
        "[NaN]",
    ] {
        let reply = lmstfy.put("/work/bulk", body).await;
        reply.bad();
    }
    let reply = lmstfy.put("/work/bulk", &b"[\"\xff\"]"[..]).await;
    reply.bad();
    assert_eq!(lmstfy.size("work").await, 0);
    assert_eq!(lmstfy.consume("work").await, None);
}

/// The limit applies to each job, not to the whole body.
#[tokio::test]
async fn an_element_of_64_kb_or_more_rejects_the_whole_bulk() {
    let server = start();
    let lmstfy = client(&server);
    // The length includes the quotes.
    let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    let body = format!("[{}]", vec![text(65535); 64].join(","));
    let ids = lmstfy.bulk("work", body).await;
    assert_eq!(ids.len(), 64);
    for job in lmstfy.consume_many("work?count=100").await {
        assert_eq!(job.data.len(), 65535);
        lmstfy.ack("work", &job.id).await;
    }
    for at in [0, 1, 63] {
        let mut elements = vec![text(10); 64];
        elements[at] = text(65536);
        let body = format!("[{}]", elements.join(","));
        let reply = lmstfy.put("/work/bulk", body).await;
        reply.assert_rejected(413, "body too large");
        assert_eq!(lmstfy.size("work").await, 0);
    }
    assert_consistent(&server).await;
}

/// Allows 1 KiB of whitespace around each of 64 jobs.
#[tokio::test]
async fn the_size_of_a_bulk_is_limited() {
    let server = Server::with(&["--no-auth", "--lmstfy-body-max", "1"]);
    let lmstfy = client(&server);
    let limit = 64 * (1 + 1_024);
    for (length, fits) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
        let body = format!("[0{}]", " ".repeat(length - 3));
        let reply = lmstfy.put("/work/bulk", body).await;
        if fits {
            assert_eq!(reply.status, 201, "{length} bytes: {reply:?}");
        } else {
            reply.assert_rejected(413, "body too large");
        }
    }
}

#[tokio::test]
async fn parameters_apply_to_every_job_of_a_bulk() {
    let server = start();
    let lmstfy = client(&server);
    let ids = lmstfy
        .bulk("work?delay=1&ttl=100&tries=7", "[1, 2, 3]")
        .await;
    assert_eq!(lmstfy.consume("work").await, None);
    for id in &ids {
        let job = lmstfy.existing_job("work", id).await;
        assert_eq!((job.lifetime(), job.remain_tries), (100, 7));
    }
    let mut due = Vec::new();
    for _ in 0..3 {
        let job = lmstfy.take("work?timeout=30").await;
        assert!(job.elapsed_ms >= 1000, "{job:?}");
        due.push(job.id);
    }
    assert_eq!(due, ids);
}
