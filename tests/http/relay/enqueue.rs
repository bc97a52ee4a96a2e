//! Enqueue: all jobs or none, and the modes for keys that are in use.

use serde_json::json;

use super::{assert_consistent, client, start};
use crate::support::relay::{Relay, new, with};

#[tokio::test]
async fn a_job_is_enqueued_with_the_given_fields() {
    let server = start();
    let relay = client(&server);
    relay.put(&json!([new("q", "plain")])).await;
    let job = relay.existing_job("q", "plain").await;
    assert_eq!((job.timeout, &*job.payload), (3600, "null"));
    assert_eq!((job.max_retries, job.retries_remaining), (None, None));
    assert_eq!((job.state, job.run_id), (None, None));
    assert_eq!(job.run_at, job.created_at, "it may run at once");
    assert_eq!(job.updated_at, job.created_at);
    let all = json!({"timeout": 0, "max_retries": 32767, "payload": [1], "state": {"n": 1},
        "run_at": "2022-09-05T04:37:23Z"});
    let null =
        json!({"timeout": 2_147_483_647, "max_retries": null, "state": null, "run_at": null});
    relay
        .put(&json!([with("q", "all", all), with("q", "null", null)]))
        .await;
    let job = relay.existing_job("q", "all").await;
    assert_eq!((job.timeout, &*job.payload), (0, "[1]"));
    assert_eq!(
        (job.max_retries, job.retries_remaining),
        (Some(32767), Some(32767))
    );
    assert_eq!(job.state.as_deref(), Some("{\"n\":1}"));
    assert_eq!(job.run_at.to_rfc3339(), "2022-09-05T04:37:23+00:00");
    let job = relay.existing_job("q", "null").await;
    assert_eq!((job.timeout, job.max_retries), (2_147_483_647, None));
    assert_eq!((job.state, job.run_at), (None, job.created_at));
    let whole = json!({"timeout": 5.0, "max_retries": 2.0});
    relay.put(&json!([with("q", "whole", whole)])).await;
    let job = relay.existing_job("q", "whole").await;
    assert_eq!((job.timeout, job.max_retries), (5, Some(2)));
    assert_consistent(&server).await;
}

#[tokio::test]
async fn an_empty_list_enqueues_nothing_in_every_mode() {
    let server = start();
    let relay = client(&server);
    for mode in ["", "unique", "ignore", "replace"] {
        relay.enqueue(mode, &json!([])).await.only(202);
        relay.enqueue_text(mode, " [ ] \n").await.only(202);
    }
    assert_consistent(&server).await;
}

/// A job in each state of a key: waiting, scheduled, running, and waiting after a timeout.
async fn one_in_each_state(relay: &Relay) -> [&'static str; 4] {
    let later = json!({"run_at": "2100-01-01T00:00:00Z"});
    relay.put_with("q", "back", json!({"timeout": 0})).await;
    relay.take("q").await;
    relay.wait_until_timed_out("q", "back").await;
    // This job is claimed before the one that timed out.
    let early = json!({"run_at": "2001-01-01T00:00:00Z"});
    relay.put_with("q", "running", early).await;
    assert_eq!(relay.take("q").await.id, "running");
    relay.put_with("q", "scheduled", later).await;
    relay.put_ids("q", &["waiting"]).await;
    ["waiting", "scheduled", "running", "back"]
}

#[tokio::test]
async fn unique_rejects_all_jobs_if_one_key_is_in_use() {
    let server = start();
    let relay = client(&server);
    for id in one_in_each_state(&relay).await {
        let before = relay.existing_job("q", id).await;
        // A missing mode, an unknown one, and one with another case are equivalent.
        for mode in [
            "", "unique", "UNIQUE", "Replace", "IGNORE", "nonsense", "%20",
        ] {
            let jobs = json!([
                new("q", "first"),
                with("q", id, json!({"payload": 1})),
                new("q", "last")
            ]);
            let reply = relay.enqueue(mode, &jobs).await;
            reply.assert_rejected(409, &[&format!("\"{id}\""), "\"q\""]);
        }
        assert_eq!(relay.existing_job("q", id).await, before);
    }
    for id in ["first", "last"] {
        assert!(!relay.exists("q", id).await, "{id} is there");
    }
    assert_consistent(&server).await;
}

#[tokio::test]
async fn unique_rejects_a_duplicate_key_in_one_request() {
    let server = start();
    let relay = client(&server);
    let jobs = json!([
        new("q", "a"),
        new("q", "b"),
        new("other", "a"),
        new("q", "a")
    ]);
    let reply = relay.enqueue("", &jobs).await;
    reply.assert_rejected(409, &["\"a\"", "\"q\""]);
    for (queue, id) in [("q", "a"), ("q", "b"), ("other", "a")] {
        assert!(!relay.exists(queue, id).await, "{queue} {id}");
    }
    // The key consists of queue and ID.
    let jobs = json!([
        new("q", "a"),
        new("a", "q"),
        new("q", "A"),
        new("qa", ""),
        new("", "qa")
    ]);
    relay.put(&jobs).await;
    assert_consistent(&server).await;
}

#[tokio::test]
async fn ignore_skips_keys_in_use() {
    let server = start();
    let relay = client(&server);
    let ids = one_in_each_state(&relay).await;
    for id in ids {
        let before = relay.existing_job("q", id).await;
        let other = json!({"payload": "other", "state": 1, "timeout": 1, "max_retries": 1});
        let fresh = format!("new-{id}");
        let jobs = json!([with("q", id, other), new("q", &fresh)]);
        relay.enqueue("ignore", &jobs).await.only(202);
        assert_eq!(relay.existing_job("q", id).await, before);
        assert!(relay.exists("q", &fresh).await);
    }
    // Of two jobs with the same key in one request, the first is enqueued.
    let twice = [1, 2].map(|payload| with("q", "twice", json!({"payload": payload})));
    relay.enqueue("ignore", &json!(twice)).await.only(202);
    assert_eq!(relay.existing_job("q", "twice").await.payload, "1");
    let got = relay.next_ids("q", 100).await;
    assert_eq!(got.iter().filter(|id| *id == "twice").count(), 1, "{got:?}");
    assert_consistent(&server).await;
}

/// The run of a job with an ignored duplicate continues.
#[tokio::test]
async fn ignore_does_not_affect_the_run() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a"]).await;
    let job = relay.take("q").await;
    let again = json!([with("q", "a", json!({"state": 2}))]);
    relay.enqueue("ignore", &again).await.only(202);
    relay.heartbeat(&job).await.only(202);
    assert_eq!(relay.next_ids("q", 9).await, [""; 0]);
    relay.complete(&job).await;
    assert!(!relay.exists("q", "a").await);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn the_size_of_a_unique_enqueue_is_limited() {
    let server = start();
    let relay = client(&server);
    let jobs = |count: usize, queues: usize| {
        let job = |n: usize| new(&format!("{count}-{}", n % queues), &n.to_string());
        json!((0..count).map(job).collect::<Vec<_>>())
    };
    for (count, queues) in [(1_599, 1), (1_600, 1), (499, 499), (500, 500)] {
        relay
            .enqueue("unique", &jobs(count, queues))
            .await
            .only(202);
    }
    for (count, queues, most) in [(1_601, 1, "1600"), (501, 501, "500")] {
        let refused = relay.enqueue("unique", &jobs(count, queues)).await;
        refused.assert_rejected(422, &[most]);
        assert!(!relay.exists(&format!("{count}-0"), "0").await);
        // In modes in which jobs are independent, they need not share a transaction.
        relay
            .enqueue("ignore", &jobs(count, queues))
            .await
            .only(202);
    }
    // A requeue is atomic in every mode.
    relay.put_ids("running", &["a"]).await;
    let run = relay.take("running").await;
    let refused = relay.requeue(&run, "ignore", &jobs(1_601, 1)).await;
    refused.assert_rejected(422, &["1600"]);
    relay.complete(&run).await;
    assert_consistent(&server).await;
}

#[tokio::test]
async fn hundreds_of_jobs_are_enqueued_and_claimed_in_one_request() {
    const JOBS: usize = 3_000;
    let server = start();
    let relay = client(&server);
    let ids: Vec<String> = (0..JOBS).map(|n| format!("j{n}")).collect();
    let jobs = ids.iter().map(|id| new("q", id)).collect();
    relay.put(&jobs).await;
    // All or none, for as many jobs as a request may have.
    let mut others: Vec<_> = (0..1_599).map(|n| new("q", &format!("k{n}"))).collect();
    others.push(new("q", "j17"));
    let refused = relay.enqueue("unique", &json!(others)).await;
    refused.assert_rejected(409, &["\"j17\"", "\"q\""]);
    assert!(!relay.exists("q", "k0").await && !relay.exists("q", "k1500").await);
    let mut got = relay.next_ids("q", 700).await;
    assert_eq!(got, ids[..700]);
    loop {
        let more = relay.next_ids("q", 5_000).await;
        if more.is_empty() {
            break;
        }
        assert!(
            more.len() >= 700 || got.len() + more.len() == JOBS,
            "{}",
            more.len()
        );
        got.extend(more);
    }
    assert!(got == ids, "in the order in which they were enqueued");
    assert_consistent(&server).await;
}
