//! Checks that qless neither shows nor changes jobs of other protocols.

use serde_json::{Value, json};

use super::{Caller, Server, raw};

/// Checks that qless does not show the jobs with these IDs, which are in the queues `work` and `other`. Also checks
/// that no queue with one of these names has a job, and that no event contains one of these words.
pub async fn assert_hidden_from_qless<T: AsRef<str>>(
    server: &Server,
    ids: &[T],
    queues: &[&str],
    words: &[T],
) {
    let client = server.client();
    empty_lists(client).await;
    for id in ids {
        let path = format!("/job/{}", id.as_ref());
        let (status, text) = raw::request(server, "GET", &path, b"").await;
        assert_eq!(status, 404, "{text}");
    }
    for queue in queues {
        assert_eq!(client.pop(queue).await, Value::Null);
    }
    let asked = ids.iter().map(|id| format!("id={}", id.as_ref()));
    let asked: Vec<String> = asked.collect();
    let jobs = client.get(&format!("/jobs?{}", asked.join("&"))).await;
    assert!(!jobs.text.contains("\"queue\""), "{jobs:?}");
    let queue = client.get("/queue/work").await.ok();
    for state in [
        "waiting",
        "scheduled",
        "running",
        "stalled",
        "depends",
        "failed",
    ] {
        let count = queue.get(state).and_then(Value::as_u64);
        assert_eq!(count.unwrap_or_default(), 0, "{queue}");
    }
    let events = client.get("/events?after=0").await.ok().to_string();
    for word in words {
        assert!(!events.contains(word.as_ref()), "{events}");
    }
}

/// Checks that qless lists no queues, jobs or workers.
async fn empty_lists(client: Caller<'_>) {
    for (path, nothing) in [
        ("/queues", json!([])),
        ("/failed", json!({})),
        ("/jobs/complete", json!([])),
        ("/jobs/waiting/work", json!([])),
        ("/jobs/running/work", json!([])),
        ("/jobs/scheduled/work", json!([])),
        ("/jobs/stalled/work", json!([])),
        ("/peek/work", Value::Null),
        ("/peek/work/100", json!([])),
        ("/get/work", Value::Null),
        ("/get/work/100", json!([])),
        ("/get?queue=work&queue=other&wait=0.1", Value::Null),
        ("/tags", json!([])),
        ("/check", json!({"problems": []})),
    ] {
        let results = client.get(path).await.ok();
        // If the result is an object, compares its list of jobs.
        let list = results.get("jobs").cloned();
        let list = list.unwrap_or_else(|| results.clone());
        assert_eq!(list, nothing, "{path}: {results}");
    }
    let workers = client.get("/workers").await.ok();
    for worker in workers.as_array().expect("workers") {
        for state in ["jobs", "running", "stalled"] {
            let count = worker.get(state).and_then(Value::as_u64);
            assert_eq!(count.unwrap_or_default(), 0, "{worker}");
        }
    }
}

/// Checks that the verbs of qless have no effect on these IDs of another protocol.
pub async fn assert_unchanged_by_qless<T: AsRef<str>>(server: &Server, ids: &[T]) {
    let worker = server.by("w");
    for id in ids {
        let id = id.as_ref();
        for (path, data) in [
            ("/cancel", json!(id)),
            ("/complete/work", json!({"id": id, "meta": 1})),
            ("/fail", json!({"id": id, "group": "g", "message": "m"})),
            ("/retry/work", json!({"id": id})),
            ("/requeue/elsewhere", json!({"id": id, "meta": 1})),
            ("/heartbeat", json!(id)),
            ("/timeout", json!(id)),
            ("/priority", json!({"id": id, "priority": 9})),
            ("/tag", json!({"id": id, "tags": ["t"]})),
            ("/track", json!(id)),
        ] {
            let response = worker.post(path, data).await;
            // Canceling a job that does not exist is not an error.
            assert!(response.status != 200 || path == "/cancel", "{response:?}");
        }
    }
}
