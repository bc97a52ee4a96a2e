//! Two servers on one PostgreSQL database act as one queue server.

use serde_json::json;

use super::concurrency::{
    a_run_ends_once, each_job_once, lists_are_enqueued_completely_or_not_at_all,
    one_enqueue_succeeds_per_key, one_run_at_a_time,
};
use super::{assert_consistent, client};
use crate::support::pair::Pair;
use crate::support::relay::{new, with};

#[tokio::test]
async fn changes_on_one_server_apply_to_the_other() {
    for options in [&[][..], &["--no-notify"]] {
        let Some(pair) = Pair::start(options) else {
            return;
        };
        for (here, there) in pair.both() {
            let (on_one, on_other) = (client(here), client(there));
            on_one.put_with("q", "a", json!({"state": 1})).await;
            let jobs = json!([new("q", "a")]);
            on_other
                .enqueue("", &jobs)
                .await
                .assert_rejected(409, &["\"a\"", "\"q\""]);
            assert!(on_other.exists("q", "a").await);
            let job = on_other.take("q").await;
            assert_eq!(on_one.next_ids("q", 9).await, [""; 0]);
            assert_eq!(on_one.existing_job("q", "a").await, job);
            // A run that started on one server is valid on the other.
            on_one.heartbeat_with(&job, "2").await.only(202);
            assert_eq!(
                on_other.existing_job("q", "a").await.state.as_deref(),
                Some("2")
            );
            let conflict = json!([new("q", "x"), new("q", "x")]);
            on_one
                .requeue(&job, "", &conflict)
                .await
                .assert_rejected(409, &["\"x\""]);
            let next = json!([new("q", "b"), new("q", "a")]);
            on_one.requeue(&job, "", &next).await.only(202);
            on_other
                .heartbeat(&job)
                .await
                .assert_rejected(404, &["\"a\""]);
            let old = on_other.take("q").await;
            assert_eq!(old.id, "b");
            let replaced = json!([with("q", "b", json!({"payload": "new"}))]);
            on_one.enqueue("replace", &replaced).await.only(202);
            on_other
                .heartbeat(&old)
                .await
                .assert_rejected(404, &["\"b\""]);
            on_other.complete(&old).await;
            assert_eq!(on_other.existing_job("q", "b").await.payload, "\"new\"");
            for job in on_other.next("q", 9).await {
                on_one.complete(&job).await;
                assert!(!on_other.exists("q", &job.id).await);
            }
            on_one.put_ids("q", &["a", "b"]).await;
            for id in ["a", "b"] {
                on_other.delete("q", id).await;
            }
            assert_eq!(on_one.next_ids("q", 9).await, [""; 0]);
        }
        pair.assert_both_consistent().await;
    }
}

#[tokio::test]
async fn runs_time_out_on_both_servers() {
    let Some(pair) = Pair::start(&[]) else { return };
    for (here, there) in pair.both() {
        let (on_one, on_other) = (client(here), client(there));
        let jobs = json!([
            with("q", "dies", json!({"timeout": 0, "max_retries": 0})),
            with("q", "back", json!({"timeout": 1, "max_retries": 1})),
        ]);
        on_one.put(&jobs).await;
        let runs = on_other.next("q", 2).await;
        on_one.wait_until_gone("q", "dies").await;
        let back = on_one.wait_until_timed_out("q", "back").await;
        assert_eq!(back.retries_remaining, Some(0));
        for job in &runs {
            let named = format!("\"{}\"", job.id);
            on_other
                .heartbeat(job)
                .await
                .assert_rejected(404, &[&named]);
        }
        // The key is free on both.
        on_other.put_ids("q", &["dies"]).await;
        assert!(on_one.exists("q", "dies").await);
        assert_eq!(on_one.next_ids("q", 9).await, ["back", "dies"]);
        for id in ["back", "dies"] {
            on_one.delete("q", id).await;
        }
    }
    pair.assert_both_consistent().await;
}

/// A server is killed while its clients have runs. The other server knows these runs.
#[tokio::test]
async fn runs_of_a_killed_server_continue_on_the_other() {
    let Some(mut pair) = Pair::start(&[]) else {
        return;
    };
    let (on_one, on_other) = (client(&pair.one), client(&pair.other));
    let short = json!({"timeout": 2, "max_retries": 0});
    on_one
        .put(&json!([
            new("q", "a"),
            with("q", "dies", short),
            new("q", "c")
        ]))
        .await;
    let runs = on_one.next("q", 2).await;
    pair.one.kill();
    on_other.heartbeat_with(&runs[0], "1").await.only(202);
    assert_eq!(on_other.next_ids("q", 9).await, ["c"]);
    on_other.wait_until_gone("q", "dies").await;
    on_other.heartbeat(&runs[0]).await.only(202);
    on_other.complete(&runs[0]).await;
    assert!(!on_other.exists("q", "a").await);
    assert_consistent(&pair.other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_of_both_servers_behave_like_those_of_one() {
    for options in [&[][..], &["--no-skip-locked"]] {
        let Some(pair) = Pair::start(options) else {
            return;
        };
        let clients = [client(&pair.one), client(&pair.other)];
        one_enqueue_succeeds_per_key(&clients).await;
        lists_are_enqueued_completely_or_not_at_all(&clients).await;
        each_job_once(&clients).await;
        a_run_ends_once(&clients).await;
        one_run_at_a_time(&clients).await;
        pair.assert_both_consistent().await;
    }
}
