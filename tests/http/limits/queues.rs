//! The maximum number of queues, with each protocol.

use reqwest::Method;
use serde_json::json;

use crate::support::eventually;
use crate::support::jobq::Jobq;
use crate::support::lmstfy::Lmstfy;
use crate::support::redis::{self, CURRENT, Redis};
use crate::support::relay::{self, Relay};
use crate::support::{Caller, Server};

const OPTIONS: [&str; 4] = ["--trust-client-clock", "--no-auth", "--max-queues", "3"];

/// What errors say, except for those of lmstfy.
const WORDS: &str = "too many queues; the limit is 3";

async fn names(client: Caller<'_>) -> Vec<String> {
    let queues = client.get("/queues").await.ok();
    let queues = queues.as_array().unwrap().iter();
    let mut names: Vec<String> = queues
        .map(|queue| queue["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn qless_requests_create_no_queue_beyond_the_limit() {
    let server = Server::with(&OPTIONS);
    let worker = server.by("w").at(1);
    worker.add_ids("work", &["a", "b", "c"]).await;
    worker.pop_ids("work", 2).await;
    worker.fail("b", "g").await;
    worker.add_ids("other", &["d"]).await;
    let recur = json!({"id": "r", "meta": 1, "interval": 60, "offset": 60});
    worker.post("/recur/third", recur).await.ok();
    for (path, data) in [
        ("/add/new", json!({"id": "x", "meta": 1})),
        (
            "/add/new",
            json!([{"id": "x", "meta": 1}, {"id": "c", "meta": 1}]),
        ),
        ("/requeue/new", json!({"id": "c", "meta": 1})),
        ("/recur/new", json!({"id": "s", "meta": 1, "interval": 60})),
        ("/recurring/r", json!({"queue": "new", "priority": 7})),
        (
            "/complete/work",
            json!({"id": "a", "meta": 1, "next": "new"}),
        ),
        ("/unfail/new", json!({"group": "g"})),
        ("/pause/new", json!(null)),
        ("/unpause/new", json!(null)),
    ] {
        let refused = worker.post(path, data).await;
        let asked = refused.asked.clone();
        let whole = refused.assert_rejected(400, "bad_request");
        assert_eq!(
            (&whole["error"], &whole["field"]),
            (&json!(WORDS), &json!("queue")),
            "{asked}"
        );
    }
    assert_eq!(names(worker).await, ["other", "third", "work"]);
    for (id, state) in [("a", "running"), ("b", "failed"), ("c", "waiting")] {
        let job = worker.job(id).await;
        assert_eq!(
            (&job["state"], &job["queue"]),
            (&json!(state), &json!("work"))
        );
        assert_eq!(job["meta"], json!(null), "{job}");
    }
    for path in ["/job/x", "/recurring/s"] {
        assert_eq!(worker.get(path).await.status, 404, "{path}");
    }
    let recurring = worker.get("/recurring/r").await.ok();
    assert_eq!(
        (&recurring["queue"], &recurring["priority"]),
        (&json!("third"), &json!(0))
    );
}

#[tokio::test]
async fn existing_queues_work_at_the_limit() {
    let server = Server::with(&OPTIONS);
    let worker = server.by("w").at(1);
    worker.add_ids("work", &["a", "b", "c"]).await;
    worker.add_ids("other", &["d"]).await;
    worker.add_ids("third", &["e"]).await;
    worker.pop_ids("work", 2).await;
    worker.fail("b", "g").await;
    let on = json!({"id": "a", "meta": 1, "next": "other"});
    assert_eq!(worker.post("/complete/work", on).await.ok(), "a");
    assert_eq!(
        worker
            .post("/unfail/third", json!({"group": "g"}))
            .await
            .ok(),
        1
    );
    let item = json!({"id": "c", "meta": 1});
    assert_eq!(worker.post("/requeue/third", item).await.ok(), "c");
    assert_eq!(worker.post("/pause/other", json!(null)).await.ok(), true);
    // A hidden queue is not new, and keeps its place.
    worker.delete("/queue/work").await.ok();
    let refused = worker.post("/add/new", json!({"meta": 1})).await;
    refused.assert_rejected_field("queue");
    worker.add_ids("work", &["f"]).await;
    assert_eq!(names(worker).await, ["other", "third", "work"]);
}

#[tokio::test]
async fn commands_of_qless_core_create_no_queue_beyond_the_limit() {
    let (server, address) = redis::server(&OPTIONS).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    for (queue, jid) in [("q", "a"), ("q", "b"), ("q", "c"), ("p", "d")] {
        let put = ["put", "w", queue, jid, "K", "{}", "0", "retries", "1"];
        assert_eq!(redis.at(1, &put).await, jid);
    }
    let recur = ["recur", "third", "r", "K", "{}", "interval", "60", "60"];
    assert_eq!(redis.at(1, &recur).await, "r");
    redis.at(2, &["pop", "q", "w", "2"]).await;
    redis.at(2, &["fail", "b", "w", "g", "why", "{}"]).await;
    for command in [
        &["put", "w", "new", "x", "K", "{}", "0"][..],
        &["requeue", "w", "new", "c", "K", "{}", "0"],
        &["recur", "new", "s", "K", "{}", "interval", "60", "0"],
        &["recur.update", "r", "queue", "new"],
        &["complete", "a", "w", "q", "{}", "next", "new"],
        &["unfail", "new", "g"],
        &["pause", "p", "new"],
        &["unpause", "new"],
    ] {
        let refused = redis.at(3, command).await;
        let words = refused["error"].as_str().unwrap_or_default();
        assert!(
            words.starts_with("ERR ") && words.ends_with(WORDS),
            "{command:?}: {refused}"
        );
    }
    let client = server.at(3);
    assert_eq!(names(client).await, ["p", "q", "third"]);
    for (id, state) in [("a", "running"), ("b", "failed"), ("c", "waiting")] {
        let job = client.job(id).await;
        assert_eq!((&job["state"], &job["queue"]), (&json!(state), &json!("q")));
    }
    assert_eq!(
        client.get("/queue/p").await.ok()["paused"],
        false,
        "all or none"
    );
    assert_eq!(redis.at(4, &["pause", "p", "q"]).await, json!(null));
    assert_eq!(
        redis.at(4, &["put", "w", "p", "y", "K", "{}", "0"]).await,
        "y"
    );
}

#[tokio::test]
async fn lmstfy_publishes_create_no_queue_beyond_the_limit() {
    let server = Server::with(&OPTIONS);
    let lmstfy = Lmstfy::new(&server, "ns");
    let other = Lmstfy::new(&server, "other");
    for queue in ["a", "b"] {
        lmstfy.publish(queue, "x").await;
    }
    let id = other.publish("a", "x").await;
    for (client, path) in [
        (&lmstfy, "/new".to_owned()),
        (&lmstfy, "/new/bulk".to_owned()),
        (&other, "/b".to_owned()),
        (&other, format!("/b/job/{id}")),
    ] {
        let refused = client.put(&path, "[1, 2]").await;
        refused.assert_rejected(400, "too many queues");
    }
    assert_eq!(lmstfy.size("new").await, 0);
    assert_eq!(other.size("b").await, 0);
    assert_eq!(other.republish("a", &id, "y").await.len(), id.len());
    assert_eq!(lmstfy.bulk("b", "[1, 2]").await.len(), 2);
    assert_eq!(lmstfy.size("b").await, 3);
    assert_eq!(other.take("a").await.data, b"y");
}

#[tokio::test]
async fn relay_enqueues_all_or_nothing_at_the_limit() {
    let server = Server::with(&OPTIONS);
    let relay = Relay::new(&server);
    relay.put_ids("a", &["1"]).await;
    relay.put_ids("b", &["1"]).await;
    let run = relay.take("a").await;
    let two_new = json!([
        relay::new("a", "2"),
        relay::new("c", "2"),
        relay::new("d", "2")
    ]);
    for mode in ["", "unique", "ignore", "replace"] {
        let refused = relay.enqueue(mode, &two_new).await;
        refused.assert_rejected(422, &[WORDS]);
        let refused = relay.requeue(&run, mode, &two_new).await;
        refused.assert_rejected(422, &[WORDS]);
    }
    for queue in ["a", "c", "d"] {
        assert!(!relay.exists(queue, "2").await, "{queue}");
    }
    relay.heartbeat(&run).await.only(202);
    // One new queue has room, however many jobs name it.
    let one_new = json!([
        relay::new("c", "3"),
        relay::new("c", "4"),
        relay::new("c", "5")
    ]);
    relay.enqueue("unique", &one_new).await.only(202);
    let refused = relay
        .enqueue("unique", &json!([relay::new("d", "3")]))
        .await;
    refused.assert_rejected(422, &[WORDS]);
    let again = json!([
        relay::new("a", "3"),
        relay::new("b", "3"),
        relay::new("c", "6")
    ]);
    relay.requeue(&run, "unique", &again).await.only(202);
    assert!(!relay.exists("a", "1").await);
    assert_eq!(relay.next_ids("c", 9).await, ["3", "4", "5", "6"]);
}

#[tokio::test]
async fn a_deleted_jobq_queue_leaves_its_place_to_another() {
    let server = Server::with(&["--max-queues", "2", "--empty-queue-age", "0"]);
    let jobq = Jobq::new(&server);
    let create = async || jobq.post("/queue", &json!({"name": "new"})).await;
    jobq.create("a").await;
    jobq.create("b").await;
    let words = "too many queues; the limit is 2";
    create().await.assert_rejected(422, &[words]);
    // Without a name, the queue `default` would be created.
    let refused = jobq.send(Method::GET, "/job").await;
    refused.assert_rejected(422, &[words]);
    let exists = jobq.post("/queue", &json!({"name": "a"})).await;
    exists.assert_rejected(409, &["already exists"]);
    jobq.put("b", &json!(1)).await;
    assert_eq!(jobq.queues().await.len(), 2);
    jobq.delete_queue("a").await;
    let is_created = async || {
        let reply = create().await;
        assert!([200, 422].contains(&reply.status), "{reply:?}");
        reply.status == 200
    };
    eventually("the deleted queue has a place", is_created).await;
    assert_eq!(jobq.all("b").await.len(), 1);
    jobq.put("new", &json!(2)).await;
}
