//! Requeue: ends the run and enqueues other jobs, or has no effect at all.

use reqwest::Method;
use serde_json::{Value, json};

use super::{NO_RUN, assert_consistent, client, start};
use crate::support::relay::{new, run_path, with};

const MODES: [&str; 4] = ["", "unique", "ignore", "replace"];

#[tokio::test]
async fn a_requeue_with_the_same_key_starts_a_new_job() {
    let server = start();
    let relay = client(&server);
    let old = json!({"timeout": 9, "max_retries": 5, "payload": "old", "state": "old"});
    relay.put_with("q", "a", old).await;
    for (step, mode) in MODES.into_iter().enumerate() {
        let before = relay.take("q").await;
        relay.heartbeat_with(&before, "\"beaten\"").await.only(202);
        let next = json!({"timeout": 7, "max_retries": 2, "payload": step});
        let jobs = json!([with("q", "a", next)]);
        relay.requeue(&before, mode, &jobs).await.only(202);
        let job = relay.existing_job("q", "a").await;
        assert_eq!(
            (job.timeout, &*job.payload),
            (7, &*step.to_string()),
            "{mode}"
        );
        assert_eq!((job.max_retries, job.retries_remaining), (Some(2), Some(2)));
        assert_eq!((job.run_id, &job.state), (None, &None));
        assert!(job.created_at > before.updated_at, "{mode}: {job:?}");
        assert_eq!(
            (job.updated_at, job.run_at),
            (job.created_at, job.created_at)
        );
        relay
            .heartbeat(&before)
            .await
            .assert_rejected(404, &["\"a\""]);
        relay.complete(&before).await;
        assert_eq!(relay.existing_job("q", "a").await, job);
    }
    assert_eq!(relay.next_ids("q", 9).await, ["a"]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_requeue_can_enqueue_other_keys_and_queues_in_order() {
    let server = start();
    let relay = client(&server);
    for mode in MODES {
        relay.put_ids("q", &["a", "last"]).await;
        let job = relay.take("q").await;
        let later = json!({"run_at": "2100-01-01T00:00:00Z"});
        let jobs = json!([
            new("q", "b"),
            new("other", "a"),
            new("q", "c"),
            with("third", "x", later),
            new("other", "z"),
            new("q", "a")
        ]);
        relay.requeue(&job, mode, &jobs).await.only(202);
        assert_eq!(
            relay.next_ids("q", 9).await,
            ["last", "b", "c", "a"],
            "{mode}"
        );
        assert_eq!(relay.next_ids("other", 9).await, ["a", "z"], "{mode}");
        assert_eq!(relay.next_ids("third", 9).await, [""; 0], "{mode}");
        for (queue, id) in [
            ("q", "a"),
            ("q", "b"),
            ("q", "c"),
            ("q", "last"),
            ("other", "a"),
            ("other", "z"),
            ("third", "x"),
        ] {
            relay.delete(queue, id).await;
        }
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_requeue_of_an_empty_list_completes_the_job() {
    let server = start();
    let relay = client(&server);
    for mode in MODES {
        relay.put_ids("q", &["a"]).await;
        let job = relay.take("q").await;
        relay.requeue(&job, mode, &json!([])).await.only(202);
        assert!(!relay.exists("q", "a").await, "{mode}");
        relay.heartbeat(&job).await.assert_rejected(404, &["\"a\""]);
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_requeue_with_a_conflict_keeps_the_run() {
    let server = start();
    let relay = client(&server);
    let later = json!({"run_at": "2100-01-01T00:00:00Z"});
    relay
        .put(&json!([
            with("q", "a", json!({"state": 1})),
            new("q", "running"),
            with("q", "later", later)
        ]))
        .await;
    let job = relay.take("q").await;
    let running = relay.take("q").await;
    relay.put_ids("q", &["waiting"]).await;
    let conflicts = [
        ("running", json!([new("q", "x"), new("q", "running")])),
        ("later", json!([new("q", "later"), new("q", "x")])),
        ("waiting", json!([new("q", "a"), new("q", "waiting")])),
        ("x", json!([new("q", "x"), new("q", "a"), new("q", "x")])),
        ("a", json!([new("q", "a"), new("q", "a")])),
    ];
    for (id, jobs) in conflicts {
        let before = relay.existing_job("q", "a").await;
        for mode in ["", "unique", "unknown"] {
            let reply = relay.requeue(&job, mode, &jobs).await;
            reply.assert_rejected(409, &[&format!("\"{id}\""), "\"q\""]);
            assert_eq!(relay.existing_job("q", "a").await, before, "{jobs}");
        }
        relay.heartbeat_with(&job, "1").await.only(202);
        let after = relay.existing_job("q", "a").await;
        assert_eq!(after.run_id, job.run_id);
        relay.heartbeat(&running).await.only(202);
    }
    assert!(!relay.exists("q", "x").await);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn the_other_modes_resolve_conflicts_as_in_enqueue() {
    let server = start();
    let relay = client(&server);
    let set_up = async || {
        relay
            .put(&json!([
                new("q", "a"),
                with("q", "b", json!({"payload": "old"})),
                with("q", "c", json!({"payload": "old"}))
            ]))
            .await;
        (relay.take("q").await, relay.take("q").await)
    };
    let jobs: Value = ["a", "b", "c", "d"]
        .iter()
        .map(|id| with("q", id, json!({"payload": "new"})))
        .collect();
    let (a, b) = set_up().await;
    relay.requeue(&a, "ignore", &jobs).await.only(202);
    for (id, payload) in [("a", "new"), ("b", "old"), ("c", "old"), ("d", "new")] {
        assert_eq!(
            relay.existing_job("q", id).await.payload,
            format!("\"{payload}\""),
            "{id}"
        );
    }
    relay.heartbeat(&b).await.only(202);
    assert_eq!(relay.next_ids("q", 9).await, ["c", "a", "d"]);
    for id in ["a", "b", "c", "d"] {
        relay.delete("q", id).await;
    }
    let (a, b) = set_up().await;
    relay.requeue(&a, "replace", &jobs).await.only(202);
    relay.heartbeat(&b).await.assert_rejected(404, &["\"b\""]);
    let all = relay.next("q", 9).await;
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|job| job.payload == "\"new\""), "{all:?}");
    assert_consistent(&server).await;
}

#[tokio::test]
async fn a_requeue_without_the_run_enqueues_nothing_and_succeeds() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a", "b"]).await;
    let job = relay.take("q").await;
    relay.put_ids("other", &["a"]).await;
    let run = job.run().to_string();
    let waiting = relay.existing_job("q", "b").await;
    for (queue, id, run) in [
        ("q", "a", NO_RUN),
        ("q", "b", &*run),
        ("q", "b", NO_RUN),
        ("other", "a", &*run),
        ("q", "never", &*run),
        ("never", "a", &*run),
    ] {
        for mode in MODES {
            let path = format!("{}?mode={mode}", run_path(queue, id, run));
            // Not even a conflict is reported.
            let jobs = json!([
                new("q", "x"),
                with("q", "b", json!({"payload": 1})),
                new("new", "y")
            ])
            .to_string();
            relay.send_json(Method::PUT, &path, jobs).await.only(202);
        }
    }
    assert_eq!(relay.existing_job("q", "a").await, job);
    assert_eq!(relay.existing_job("q", "b").await, waiting);
    assert!(!relay.exists("q", "x").await && !relay.exists("new", "y").await);
    // A run that has ended counts as missing.
    let jobs = json!([new("q", "c")]);
    relay.requeue(&job, "", &jobs).await.only(202);
    let again = json!([new("q", "d")]);
    relay.requeue(&job, "", &again).await.only(202);
    assert!(relay.exists("q", "c").await && !relay.exists("q", "d").await);
    assert_consistent(&server).await;
}
