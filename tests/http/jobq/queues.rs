//! Queues: names, numbers and deletion.

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{assert_consistent, client, start, start_with_queue};
use crate::support::jobq::{Queue, queue};
use crate::support::{HOSTILE_NAMES, Server, escape, raw};

#[tokio::test]
async fn a_queue_is_identified_by_name_or_number() {
    let server = start();
    let jobq = client(&server);
    let (a, b) = (jobq.create("a").await, jobq.create("b").await);
    assert!(a.id < b.id, "{a:?} {b:?}");
    assert_eq!(jobq.queues().await, [a.clone(), b.clone()]);
    let number = a.id.to_string();
    let first = jobq.put("a", &json!("one")).await;
    let second = jobq.put(&number, &json!("two")).await;
    assert_eq!((first.id, second.id), (1, 2));
    for name in ["a", &number] {
        assert_eq!(jobq.all(name).await, [first.clone(), second.clone()]);
        assert_eq!(jobq.existing_job(name, 2).await, second);
        assert_eq!(jobq.matching(name, &json!([])).await, [1, 2]);
    }
    assert_eq!(jobq.all("b").await, []);
    let polled = jobq.poll(&number, &json!([]), &json!(1)).await;
    assert_eq!(polled, Some(jobq.existing_job("a", 1).await));
    jobq.event(&number, 2, &json!(1)).await.job();
    jobq.advance(&number, 2, &json!(null), &json!(2))
        .await
        .job();
    jobq.delete(&number, 1).await;
    assert_eq!(jobq.job("a", 1).await, None);
    jobq.delete_queue(&number).await;
    assert_eq!(jobq.queues().await, [b]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_name_is_unique() {
    let (server, jobq) = start_with_queue().await;
    let before = jobq.queues().await;
    for body in [r#"{"name":"q"}"#, r#"{"name":"\u0071","id":77}"#] {
        jobq.post_text("/queue", body)
            .await
            .assert_rejected(409, &["q"]);
    }
    assert_eq!(jobq.queues().await, before);
    // These are different names.
    for name in ["Q", "q ", " q", "é", "e\u{301}", "q\n"] {
        jobq.create(name).await;
    }
    assert_eq!(jobq.queues().await.len(), 7);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn invalid_names_are_rejected() {
    let server = start();
    let jobq = client(&server);
    for body in [
        "{}",
        "[]",
        "null",
        "1",
        "\"q\"",
        r#"["q"]"#,
        r#"{"name":null}"#,
        r#"{"name":1}"#,
        r#"{"name":["q"]}"#,
        r#"{"name":{}}"#,
        r#"{"name":true}"#,
        r#"{"Name":"q"}"#,
        r#"{"name":""}"#,
        r#"{"name":"\u0000"}"#,
        r#"{"name":"a\u0000b"}"#,
        r#"{"name":"\ud800"}"#,
        r#"{"name":"0"}"#,
        r#"{"name":"1"}"#,
        r#"{"name":"007"}"#,
        r#"{"name":"\u0031"}"#,
        r#"{"name":"99999999999999999999999999"}"#,
        "",
        "{",
        "name=q",
    ] {
        let reply = jobq.post_text("/queue", body).await;
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
    }
    assert_eq!(jobq.queues().await, []);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_name_has_at_most_255_characters() {
    let server = start();
    let jobq = client(&server);
    for letter in ["n", "é", "日", "🦀"] {
        for (length, fits) in [(254, true), (255, true), (256, false)] {
            let name = letter.repeat(length);
            let reply = jobq.post("/queue", &json!({"name": name})).await;
            if !fits {
                reply.assert_rejected(400, &["255"]);
                continue;
            }
            let created: Queue = reply.ok();
            assert_eq!(created.name, name);
            jobq.put(&name, &json!(length)).await;
            assert_eq!(jobq.all(&name).await.len(), 1);
        }
    }
    assert_eq!(jobq.queues().await.len(), 8);
    assert_consistent(&server).await;
}

/// Raw requests, because clients resolve dots in paths.
#[tokio::test]
async fn any_name_can_be_used_in_paths() {
    let server = start();
    let jobq = client(&server);
    let more = [
        "queue",
        "job",
        "query_jobs",
        "poll_job",
        "state",
        "event",
        "peek",
        "deadletter",
        " ",
        "+1",
        "-1",
        "1.0",
        "0x1",
        "1e0",
        " 1",
        "1 ",
        "１",
        "²",
        "%31",
        "a;b",
        "a&b=c",
        "\u{7f}",
        "\n",
        "*",
        "_",
        "' OR '1'='1",
    ];
    let names: Vec<&str> = HOSTILE_NAMES.iter().copied().chain(more).collect();
    for name in &names {
        jobq.create(name).await;
    }
    let queues = jobq.queues().await;
    let listed: Vec<&str> = queues.iter().map(|queue| &*queue.name).collect();
    assert_eq!(listed, names);
    for name in &names {
        let path = format!("/api/v0/queue/{}/job", escape(name));
        let body = json!({"payload": name}).to_string();
        let (status, text) = raw::request(&server, "POST", &path, body.as_bytes()).await;
        assert_eq!(status, 200, "{name:?}: {text}");
        let job: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(job["id"], 1, "a queue of its own: {name:?}: {text}");
        let (status, text) = raw::request(&server, "GET", &path, b"").await;
        let jobs: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &jobs["jobs"]), (200, &json!([job])), "{name:?}");
    }
    for (number, name) in names.iter().enumerate() {
        let path = format!("/api/v0/queue/{}", escape(name));
        let (status, text) = raw::request(&server, "DELETE", &path, b"").await;
        assert_eq!((status, &*text), (200, "{}"), "{name:?}");
        // Only this queue was deleted, not one with a similar name.
        assert_eq!(jobq.queues().await, queues[number + 1..], "{name:?}");
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn deleting_a_queue_deletes_its_jobs() {
    let (server, jobq) = start_with_queue().await;
    jobq.create("other").await;
    let kept = jobq.put("other", &json!("kept")).await;
    for state in [json!(null), json!(["CREATED"]), json!(["FINISHED"])] {
        jobq.put_in("q", &json!("gone"), &state).await;
    }
    jobq.event("q", 1, &json!("x")).await.job();
    let old = jobq.queues().await.remove(0);
    jobq.delete_queue("q").await;
    let again = jobq.send(Method::DELETE, &queue("q")).await;
    again.assert_rejected(404, &[]);
    for path in ["/queue/q/job", "/queue/q/job/1", "/queue/q/job/3"] {
        jobq.get(path).await.assert_rejected(404, &[]);
    }
    let new = jobq.create("q").await;
    assert!(new.id > old.id, "{new:?} in the place of {old:?}");
    assert_eq!(jobq.all("q").await, []);
    assert_eq!(jobq.matching("q", &json!([])).await, [0; 0]);
    for id in 1..=3 {
        assert_eq!(jobq.job("q", id).await, None);
    }
    let job = jobq.put("q", &json!("new")).await;
    assert_eq!(job.id, 1);
    // The old queue's number is unknown.
    jobq.get(&queue(&old.id.to_string()))
        .await
        .assert_rejected(405, &[]);
    let old = format!("/queue/{}/job", old.id);
    jobq.get(&old).await.assert_rejected(404, &[]);
    assert_eq!(jobq.all("other").await, [kept]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn numbers_of_queues_are_never_reused() {
    let folder = TempDir::new().expect("a folder");
    let database = folder.path().join("jobs.db");
    let mut last = 0;
    let mut server = Server::on(&database, &[]);
    for round in 0..3 {
        let jobq = client(&server);
        for name in ["a", "b"] {
            let queue = jobq.create(name).await;
            assert!(queue.id > last, "{queue:?} after {last}");
            last = queue.id;
        }
        // Not even after deleting the newest queue, or all of them.
        jobq.delete_queue("b").await;
        let queue = jobq.create("b").await;
        assert!(queue.id > last, "{queue:?} after {last}");
        last = queue.id;
        for name in ["b", "a"] {
            jobq.delete_queue(name).await;
        }
        if round == 0 {
            server.stop().await;
        } else {
            server.kill();
        }
        server = Server::on(&database, &[]);
        assert_eq!(client(&server).queues().await, []);
    }
    assert_consistent(&server).await;
}
