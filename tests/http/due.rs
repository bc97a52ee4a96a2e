//! A scheduled job waits from its due time on, in all responses.

use serde_json::{Value, json};

use crate::support::Server;

/// A server with a job `a` in the queue `work` that is due at 10 s.
async fn scheduled() -> Server {
    let server = Server::start();
    let item = json!({"id": "a", "meta": 1, "delay": 10, "tags": ["t"]});
    server.at(0).add("work", item).await;
    server
}

/// The state of the job at `now`, according to each of these endpoints.
async fn states(server: &Server, now: f64) -> Vec<Value> {
    let who = server.at(now);
    let mut seen = vec![
        who.get("/job/a").await.ok()["state"].take(),
        who.get("/jobs?id=a").await.ok()[0]["state"].take(),
    ];
    for state in ["scheduled", "waiting"] {
        let path = format!("/jobs/{state}/work");
        if who.get(&path).await.ok() == json!(["a"]) {
            seen.push(state.into());
        }
        let whole = who.get(&format!("{path}?full=true")).await.ok();
        seen.extend(
            whole
                .as_array()
                .unwrap()
                .iter()
                .map(|job| job["state"].clone()),
        );
        if who.get("/queue/work").await.ok()[state] == 1 {
            seen.push(state.into());
        }
        if who.get("/queues").await.ok()[0][state] == 1 {
            seen.push(state.into());
        }
    }
    seen
}

#[tokio::test]
async fn all_endpoints_agree_on_due_jobs() {
    let server = scheduled().await;
    for (now, state) in [
        (0.0, "scheduled"),
        (9.999, "scheduled"),
        (10.0, "waiting"),
        (1e6, "waiting"),
    ] {
        assert_eq!(states(&server, now).await, [state; 6], "{now}");
    }
}

#[tokio::test]
async fn a_due_job_is_listed_as_waiting_at_the_head_of_its_queue() {
    let server = scheduled().await;
    server.at(0).add_ids("work", &["b"]).await;
    assert_eq!(server.at(9).peek_ids("work").await, ["b"]);
    let peeked = server.at(10).get("/peek/work/10").await.ok();
    assert_eq!(
        json!([peeked[0]["id"], peeked[1]["id"], peeked[1]["state"]]),
        json!(["b", "a", "waiting"])
    );
    assert_eq!(states(&server, 10.0).await[..2], ["waiting"; 2]);
    assert_eq!(server.by("w").at(10).pop_ids("work", 9).await, ["b", "a"]);
}

#[tokio::test]
async fn a_delayed_retry_becomes_due_like_any_job() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    let back = json!({"id": "a", "delay": 10});
    worker.post("/retry/work", back).await.ok();
    assert_eq!(states(&server, 9.0).await, ["scheduled"; 6]);
    assert_eq!(states(&server, 10.0).await, ["waiting"; 6]);
}
