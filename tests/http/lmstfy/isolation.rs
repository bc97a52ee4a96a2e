//! Namespaces are isolated from each other, and so are protocols.

use serde_json::{Value, json};

use super::{assert_consistent, client, start};
use crate::support::Server;
use crate::support::isolation::{assert_hidden_from_qless, assert_unchanged_by_qless};
use crate::support::lmstfy::Lmstfy;
use crate::support::metrics::wait_until_polling;

#[tokio::test]
async fn queues_of_the_same_name_in_two_namespaces_are_different() {
    let server = start();
    let (one, other) = (Lmstfy::new(&server, "one"), Lmstfy::new(&server, "other"));
    let on_one = one.publish("work", "mine").await;
    let on_other = other.publish("work", "yours").await;
    let waiting = other.poll(&server, "new?timeout=50").await;
    wait_until_polling(&server, 1).await;
    one.publish("new", "x").await;
    let own = other.publish("new", "y").await;
    assert_eq!(waiting.take().await.id, own);
    assert_eq!((one.size("work").await, other.size("work").await), (1, 1));
    assert_eq!(one.job("work", &on_other).await, None);
    assert_eq!(one.peek("work").await.expect("a job").id, on_one);
    assert_eq!(other.peek("work").await.expect("a job").id, on_other);
    one.ack("work", &on_other).await;
    one.destroy("work").await;
    assert_eq!(one.consume("work").await, None);
    let job = other.take("work").await;
    assert_eq!((&job.id, job.text()), (&on_other, "yours"));
    assert_consistent(&server).await;
}

/// A character that careless code could use as a separator, in both names.
#[tokio::test]
async fn namespace_and_queue_names_cannot_be_confused() {
    let server = start();
    for (namespace, queue, others) in [
        ("a", "b-c", [("a-b", "c"), ("a-", "b-c"), ("A", "b-c")]),
        ("a", "b_c", [("a_b", "c"), ("a_", "b_c"), ("a", "B_C")]),
        ("n", "axb", [("n", "a_b"), ("_", "axb"), ("n", "AXB")]),
    ] {
        let lmstfy = Lmstfy::new(&server, namespace);
        let id = lmstfy.publish(queue, "x").await;
        for (namespace, queue) in others {
            let other = Lmstfy::new(&server, namespace);
            assert_eq!(other.consume(queue).await, None);
            assert_eq!(other.job(queue, &id).await, None);
            other.destroy(queue).await;
        }
        assert_eq!(lmstfy.drain(queue).await, [id]);
    }
}

/// A job of the namespace `ns` in each state, in queues with names that qless uses, too.
async fn fill(server: &Server) -> Vec<String> {
    let lmstfy = client(server);
    let mut ids = vec![lmstfy.publish_dead("work", "dead").await];
    ids.push(lmstfy.publish("work?tries=2", "working").await);
    lmstfy.take("work").await;
    ids.push(lmstfy.publish("work", "ready").await);
    ids.push(lmstfy.publish("work?delay=3600", "delayed").await);
    ids.extend(lmstfy.bulk("other", "[1, 2]").await);
    ids
}

#[tokio::test]
async fn qless_does_not_show_lmstfy_jobs() {
    let server = start();
    let ids = fill(&server).await;
    let queues = ["ns", "ns/work", "ns:work", "lmstfy"];
    assert_hidden_from_qless(&server, &ids, &queues, &ids).await;
    assert_consistent(&server).await;
}

/// Clients of qless cannot affect lmstfy jobs by ID.
#[tokio::test]
async fn qless_verbs_do_not_affect_lmstfy_jobs() {
    let server = start();
    let lmstfy = client(&server);
    let ids = fill(&server).await;
    assert_unchanged_by_qless(&server, &ids).await;
    let worker = server.by("w");
    for path in ["/unfail/work", "/pause/work"] {
        worker.post(path, json!({"group": "dead-letter"})).await;
    }
    for (id, text) in ids.iter().zip(["dead", "working", "ready", "delayed"]) {
        assert_eq!(lmstfy.existing_job("work", id).await.text(), text);
    }
    assert_eq!(lmstfy.dead("work").await, (1, ids[0].clone()));
    assert_eq!(lmstfy.drain("work").await, [ids[2].clone()]);
    assert_eq!(lmstfy.drain("other").await, ids[4..]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn lmstfy_does_not_show_qless_jobs() {
    let server = start();
    let lmstfy = client(&server);
    let worker = server.by("w");
    let waiting = lmstfy.poll(&server, "work,other?timeout=50").await;
    wait_until_polling(&server, 1).await;
    worker.add_ids("work", &["a", "b", "c"]).await;
    worker.pop("work").await;
    worker.fail("a", "dead-letter").await;
    let own = lmstfy.publish("other", "x").await;
    assert_eq!(waiting.take().await.id, own);
    lmstfy.ack("other", &own).await;
    for namespace in ["ns", "work", "qless", "default"] {
        let lmstfy = Lmstfy::new(&server, namespace);
        assert_eq!(lmstfy.size("work").await, 0);
        assert_eq!(lmstfy.consume("work").await, None);
        assert_eq!(lmstfy.peek("work").await, None);
        assert_eq!(lmstfy.dead("work").await, (0, String::new()));
        assert_eq!(lmstfy.respawn("work?limit=9").await, 0);
        lmstfy.delete_dead("work?limit=9").await;
        lmstfy.destroy("work").await;
        for id in ["a", "b", "c"] {
            assert_eq!(lmstfy.job("work", id).await, None);
            lmstfy.ack("work", id).await;
            let new = lmstfy.republish("work", id, "x").await;
            lmstfy.ack("work", &new).await;
        }
    }
    assert_eq!(worker.state("a").await, "failed");
    assert_eq!(worker.pop_ids("work", 9).await, ["b", "c"]);
    // qless can use an ID of lmstfy.
    let id = lmstfy.publish("work", "x").await;
    worker.add("work", json!({"id": id, "meta": 1})).await;
    lmstfy.ack("work", &id).await;
    assert_eq!(worker.state(&id).await, "waiting");
    assert_consistent(&server).await;
}

/// qless commands do not affect an lmstfy queue of the same name.
#[tokio::test]
async fn qless_options_and_pauses_do_not_affect_lmstfy_queues() {
    let server = start();
    let lmstfy = client(&server);
    let qless = server.client();
    qless.add_ids("work", &["a", "b"]).await;
    qless.post("/pause/work", Value::Null).await.accepted();
    qless.set("work-max-concurrency", json!(1)).await.accepted();
    qless.set("work-heartbeat", json!(1)).await.accepted();
    let ids = lmstfy.bulk("work?tries=2", "[1, 2, 3]").await;
    assert_eq!(lmstfy.drain("work").await, ids);
    qless.post("/unpause/work", Value::Null).await.accepted();
    assert_eq!(server.by("w").pop("work").await["id"], "a");
    assert_eq!(server.by("w").pop("work").await, Value::Null);
    assert_consistent(&server).await;
}
