//! Names in paths: any name can be used.

use reqwest::Method;
use serde_json::{Value, json};

use super::{assert_consistent, client, start};
use crate::support::relay::{new, run_path};
use crate::support::{HOSTILE_NAMES, database, escape, raw};

/// Raw requests, because clients resolve dots in paths.
#[tokio::test]
async fn any_name_can_be_used_in_paths() {
    let server = start();
    let relay = client(&server);
    let more = [
        "jobs", "run-id", "queues", "v2", " ", "  a  ", "a&b=c", "a;b", "é", "e\u{301}", "A", "a",
        "\u{7f}", "\n",
    ];
    let names: Vec<&str> = HOSTILE_NAMES.iter().copied().chain(more).collect();
    let all: Vec<Value> = names.iter().map(|name| new(name, name)).collect();
    relay.put(&json!(all)).await;
    let ask = async |method: &str, path: &str| raw::request(&server, method, path, b"").await;
    for name in &names {
        let escaped = escape(name);
        let queue = format!("/v2/queues/{escaped}/jobs");
        let (status, text) = ask("GET", &format!("{queue}/{escaped}")).await;
        assert_eq!(status, 200, "{name:?}: {text}");
        let (status, text) = ask("GET", &queue).await;
        assert_eq!(status, 200, "{name:?}: {text}");
        let jobs: Value = serde_json::from_str(&text).unwrap();
        let job = &jobs[0];
        assert_eq!((&job["queue"], &job["id"]), (&json!(name), &json!(name)));
        let run = format!(
            "{queue}/{escaped}/run-id/{}",
            job["run_id"].as_str().unwrap()
        );
        assert_eq!(ask("PATCH", &run).await.0, 202, "{name:?}");
        assert_eq!(ask("DELETE", &run).await.0, 200, "{name:?}");
        assert_eq!(
            ask("GET", &format!("{queue}/{escaped}")).await.0,
            404,
            "{name:?}"
        );
        // Only this job was affected, not one with a similar name.
        assert_eq!(ask("GET", &queue).await.0, 204, "{name:?}");
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_queue_can_have_the_name_jobs() {
    let server = start();
    let relay = client(&server);
    relay
        .put(&json!([new("jobs", "jobs"), new("jobs", "run-id")]))
        .await;
    assert!(relay.exists("jobs", "jobs").await);
    let job = relay.take("jobs").await;
    assert_eq!(job.id, "jobs");
    relay.heartbeat_with(&job, "1").await.only(202);
    let next = json!([new("jobs", "next")]);
    relay.requeue(&job, "", &next).await.only(202);
    assert_eq!(relay.next_ids("jobs", 9).await, ["run-id", "next"]);
    relay.delete("jobs", "next").await;
    assert!(!relay.exists("jobs", "next").await);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn names_can_be_empty() {
    let server = start();
    let relay = client(&server);
    relay
        .put(&json!([new("", "a"), new("q", ""), new("", "")]))
        .await;
    assert!(relay.exists("", "a").await);
    for (queue, id) in [("q", ""), ("", "")] {
        assert!(relay.exists(queue, id).await, "{queue:?} {id:?}");
        relay.existing_job(queue, id).await;
    }
    let jobs = [relay.next("", 9).await, relay.next("q", 9).await].concat();
    let keys: Vec<(&str, &str)> = jobs.iter().map(|job| (&*job.queue, &*job.id)).collect();
    assert_eq!(keys, [("", "a"), ("", ""), ("q", "")]);
    for job in &jobs {
        relay.heartbeat(job).await.only(202);
        relay.complete(job).await;
        assert!(!relay.exists(&job.queue, &job.id).await);
        relay.delete(&job.queue, &job.id).await;
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_path_that_is_not_utf_8_is_not_found() {
    let server = start();
    let relay = client(&server);
    for bad in ["%ff", "a%80b", "%c3%28"] {
        for path in [
            format!("/queues/{bad}/jobs"),
            format!("/queues/q/jobs/{bad}"),
            format!("/queues/{bad}/jobs/a"),
        ] {
            relay
                .send(Method::GET, &path)
                .await
                .assert_rejected(400, &[]);
        }
        let path = format!("/queues/q/jobs/{bad}");
        relay
            .send(Method::DELETE, &path)
            .await
            .assert_rejected(400, &[]);
    }
    for (method, path) in [
        (Method::GET, "/queues/%00/jobs".to_owned()),
        (Method::GET, "/queues/q/jobs/a%00".to_owned()),
        (Method::DELETE, "/queues/q/jobs/a%00".to_owned()),
        (Method::PATCH, run_path("q", "\0", super::NO_RUN)),
    ] {
        relay.send(method, &path).await.assert_rejected(422, &[]);
    }
    assert_consistent(&server).await;
}

/// 1,024 incompressible characters of 3 bytes each, more than an index entry of Postgres can hold.
#[tokio::test]
async fn a_name_that_postgres_cannot_index_is_rejected_with_the_reason() {
    let server = start();
    let relay = client(&server);
    let letter = |n: u32| char::from_u32(0x4e00 + n * 7_919 % 20_000).unwrap();
    let name: String = (0..1_024).map(letter).collect();
    for job in [new("q", &name), new(&name, "a")] {
        let reply = relay.enqueue("unique", &json!([job])).await;
        if database::postgres().is_none() {
            assert_eq!(reply.status, 202, "{reply:?}");
        } else {
            reply.assert_rejected(422, &["too long"]);
        }
    }
    assert_consistent(&server).await;
}
