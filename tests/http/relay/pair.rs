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
            let (mine, yours) = (client(here), client(there));
            mine.put_with("q", "a", json!({"state": 1})).await;
            let jobs = json!([new("q", "a")]);
            yours
                .enqueue("", &jobs)
                .await
                .assert_rejected(409, &["\"a\"", "\"q\""]);
            assert!(yours.exists("q", "a").await);
            let job = yours.take("q").await;
            assert_eq!(mine.next_ids("q", 9).await, [""; 0]);
            assert_eq!(mine.existing_job("q", "a").await, job);
            // A run that started on one server is valid on the other.
            mine.beat_with(&job, "2").await.only(202);
            assert_eq!(
                yours.existing_job("q", "a").await.state.as_deref(),
                Some("2")
            );
            let conflict = json!([new("q", "x"), new("q", "x")]);
            mine.requeue(&job, "", &conflict)
                .await
                .assert_rejected(409, &["\"x\""]);
            let next = json!([new("q", "b"), new("q", "a")]);
            mine.requeue(&job, "", &next).await.only(202);
            yours.beat(&job).await.assert_rejected(404, &["\"a\""]);
            let old = yours.take("q").await;
            assert_eq!(old.id, "b");
            let replaced = json!([with("q", "b", json!({"payload": "new"}))]);
            mine.enqueue("replace", &replaced).await.only(202);
            yours.beat(&old).await.assert_rejected(404, &["\"b\""]);
            yours.complete(&old).await;
            assert_eq!(yours.existing_job("q", "b").await.payload, "\"new\"");
            for job in yours.next("q", 9).await {
                mine.complete(&job).await;
                assert!(!yours.exists("q", &job.id).await);
            }
            mine.put_ids("q", &["a", "b"]).await;
            for id in ["a", "b"] {
                yours.delete("q", id).await;
            }
            assert_eq!(mine.next_ids("q", 9).await, [""; 0]);
        }
        pair.is_sound().await;
    }
}

#[tokio::test]
async fn runs_time_out_on_both_servers() {
    let Some(pair) = Pair::start(&[]) else { return };
    for (here, there) in pair.both() {
        let (mine, yours) = (client(here), client(there));
        let jobs = json!([
            with("q", "dies", json!({"timeout": 0, "max_retries": 0})),
            with("q", "back", json!({"timeout": 1, "max_retries": 1})),
        ]);
        mine.put(&jobs).await;
        let runs = yours.next("q", 2).await;
        mine.wait_until_gone("q", "dies").await;
        let back = mine.wait_until_timed_out("q", "back").await;
        assert_eq!(back.retries_remaining, Some(0));
        for job in &runs {
            let named = format!("\"{}\"", job.id);
            yours.beat(job).await.assert_rejected(404, &[&named]);
        }
        // The key is free on both.
        yours.put_ids("q", &["dies"]).await;
        assert!(mine.exists("q", "dies").await);
        assert_eq!(mine.next_ids("q", 9).await, ["back", "dies"]);
        for id in ["back", "dies"] {
            mine.delete("q", id).await;
        }
    }
    pair.is_sound().await;
}

/// A server is killed while its clients have runs. The other server knows these runs.
#[tokio::test]
async fn runs_of_a_killed_server_continue_on_the_other() {
    let Some(mut pair) = Pair::start(&[]) else {
        return;
    };
    let (mine, yours) = (client(&pair.one), client(&pair.other));
    let short = json!({"timeout": 2, "max_retries": 0});
    mine.put(&json!([
        new("q", "a"),
        with("q", "dies", short),
        new("q", "c")
    ]))
    .await;
    let runs = mine.next("q", 2).await;
    pair.one.kill();
    yours.beat_with(&runs[0], "1").await.only(202);
    assert_eq!(yours.next_ids("q", 9).await, ["c"]);
    yours.wait_until_gone("q", "dies").await;
    yours.beat(&runs[0]).await.only(202);
    yours.complete(&runs[0]).await;
    assert!(!yours.exists("q", "a").await);
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
        pair.is_sound().await;
    }
}
