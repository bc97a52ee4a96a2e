//! The protocols are isolated from each other, even if their queues and jobs have the same names.

use serde_json::{Value, json};

use super::{assert_consistent, client, start};
use crate::support::Server;
use crate::support::isolation::{assert_hidden_from_qless, assert_unchanged_by_qless};
use crate::support::lmstfy::Lmstfy;
use crate::support::relay::{Relay, new, with};

const IDS: [&str; 5] = [
    "relay-waiting",
    "relay-running",
    "relay-scheduled",
    "relay-back",
    "relay-dead",
];

/// A job in each state, in queues with names that qless uses, too; and one that is dead because it has no retries left.
async fn fill(relay: &Relay) {
    relay
        .put_with("work", IDS[4], json!({"timeout": 0, "max_retries": 0}))
        .await;
    relay.take("work").await;
    relay.wait_until_gone("work", IDS[4]).await;
    relay.put_with("work", IDS[3], json!({"timeout": 0})).await;
    relay.take("work").await;
    relay.wait_until_timed_out("work", IDS[3]).await;
    let early = json!({"run_at": "2001-01-01T00:00:00Z"});
    relay.put_with("work", IDS[1], early).await;
    assert_eq!(relay.take("work").await.id, IDS[1]);
    let later = json!({"run_at": "2100-01-01T00:00:00Z"});
    relay
        .put(&json!([new("work", IDS[0]), with("work", IDS[2], later)]))
        .await;
    relay.put_ids("other", &["relay-x", "relay-y"]).await;
}

/// Checks that all jobs are as [`fill`] created them.
async fn assert_unchanged(relay: &Relay) {
    let running = relay.existing_job("work", IDS[1]).await;
    relay.heartbeat(&running).await.only(202);
    assert!(relay.exists("work", IDS[2]).await);
    assert_eq!(relay.next_ids("work", 9).await, [IDS[3], IDS[0]]);
    assert_eq!(relay.next_ids("other", 9).await, ["relay-x", "relay-y"]);
}

#[tokio::test]
async fn qless_does_not_show_relay_jobs() {
    let server = start();
    let relay = client(&server);
    fill(&relay).await;
    let queues = ["relay", "relay/work", "relay:work"];
    assert_hidden_from_qless(&server, &IDS, &queues, &["relay-"]).await;
    assert_unchanged(&relay).await;
    assert_consistent(&server).await;
}

#[tokio::test]
async fn qless_verbs_do_not_affect_relay_jobs() {
    let server = start();
    let relay = client(&server);
    fill(&relay).await;
    assert_unchanged_by_qless(&server, &IDS).await;
    let worker = server.by("w");
    // qless commands on queues affect qless queues only.
    worker.post("/pause/work", Value::Null).await.accepted();
    worker
        .set("other-max-concurrency", json!(1))
        .await
        .accepted();
    worker.set("work-heartbeat", json!(1)).await.accepted();
    worker.post("/unfail/work", json!({"group": "g"})).await;
    assert_unchanged(&relay).await;
    assert_consistent(&server).await;
}

#[tokio::test]
async fn relay_does_not_show_jobs_of_other_protocols() {
    let server = start();
    let relay = client(&server);
    let worker = server.by("w");
    worker.add_ids("work", &["a", "b", "c"]).await;
    worker.pop("work").await;
    worker.fail("a", "g").await;
    let lmstfy = Lmstfy::new(&server, "ns");
    let id = lmstfy.publish("work?tries=2", "x").await;
    for queue in ["work", "ns", "ns/work", "qless"] {
        assert_eq!(relay.next_ids(queue, 9).await, [""; 0], "{queue}");
        for id in ["a", "b", "c", &*id] {
            assert_eq!(relay.job(queue, id).await, None);
            assert!(!relay.exists(queue, id).await);
            relay.delete(queue, id).await;
        }
    }
    // Relay can use their names.
    relay.put_ids("work", &["a", "b", &id]).await;
    assert_eq!(relay.next_ids("work", 1).await, ["a"]);
    relay.delete("work", "a").await;
    assert_eq!(worker.state("a").await, "failed");
    assert_eq!(worker.pop_ids("work", 9).await, ["b", "c"]);
    assert_eq!(lmstfy.drain("work").await, std::slice::from_ref(&id));
    assert_eq!(relay.next_ids("work", 9).await, ["b".to_owned(), id]);
    assert_consistent(&server).await;
}

/// Jobs with the same name in three protocols, each of which is completed.
#[tokio::test]
async fn jobs_with_equal_names_in_qless_lmstfy_and_relay_are_independent() {
    let server: Server = start();
    let relay = client(&server);
    let worker = server.by("w");
    let id = Lmstfy::new(&server, "ns").publish("work", "lmstfy").await;
    worker.add("work", json!({"id": id, "meta": "qless"})).await;
    relay
        .put_with("work", &id, json!({"payload": "relay"}))
        .await;
    let job = relay.take("work").await;
    assert_eq!(job.payload, "\"relay\"");
    relay.complete(&job).await;
    assert_eq!(worker.pop("work").await["meta"], "qless");
    relay.put(&json!([new("work", &id)])).await;
    worker.complete("work", &id).await;
    assert_eq!(worker.state(&id).await, "complete");
    assert!(relay.exists("work", &id).await);
    Lmstfy::new(&server, "ns").ack("work", &id).await;
    assert_eq!(relay.next_ids("work", 9).await, [id]);
    assert_consistent(&server).await;
}
