//! Two servers on one PostgreSQL database have the same jobs.

use serde_json::json;

use super::concurrency::{
    a_poll_and_a_state_change_do_not_both_succeed, concurrent_changes_are_all_kept,
    each_job_is_claimed_once_by_polls, names_and_numbers_are_unique,
    writes_to_deleted_objects_are_rejected,
};
use super::{assert_consistent, client};
use crate::support::pair::Pair;

#[tokio::test]
async fn changes_on_one_server_apply_to_the_other() {
    for options in [&[][..], &["--no-notify"]] {
        let Some(pair) = Pair::start(options) else {
            return;
        };
        for (here, there) in pair.both() {
            let (on_one, on_other) = (client(here), client(there));
            let queue = on_one.create("q").await;
            assert_eq!(on_other.queues().await, [queue]);
            let taken = on_other.post("/queue", &json!({"name": "q"})).await;
            taken.assert_rejected(409, &["q"]);
            let job = on_one.put("q", &json!(1)).await;
            assert_eq!(on_other.existing_job("q", job.id).await, job);
            assert_eq!(on_other.put("q", &json!(2)).await.id, job.id + 1);
            let free = json!([["IS", "state", null]]);
            let polled = on_other.poll("q", &free, &json!(["A"])).await;
            assert_eq!(polled, on_one.job("q", job.id).await);
            let late = on_one.advance("q", job.id, &json!(null), &json!(1)).await;
            assert_eq!(Some(late.conflict()), polled);
            let seen = on_one.event("q", job.id, &json!("seen")).await.job();
            assert_eq!(on_other.all("q").await[0], seen);
            assert_eq!(on_one.matching("q", &json!([])).await, [2, 1]);
            assert_eq!(on_other.matching("q", &json!([])).await, [2, 1]);
            on_other.delete("q", 2).await;
            assert_eq!(on_one.job("q", 2).await, None);
            assert_eq!(on_one.put("q", &json!(3)).await.id, 3);
            on_other.delete_queue("q").await;
            on_one.get("/queue/q/job").await.assert_rejected(404, &[]);
            // A server that has cached the old queue finds the new one.
            let new = on_other.create("q").await;
            assert_eq!(on_one.queues().await, [new]);
            assert_eq!(on_one.put("q", &json!(1)).await.id, 1);
            assert_eq!(on_other.put("q", &json!(1)).await.id, 2);
            on_one.delete_queue("q").await;
        }
        pair.assert_both_consistent().await;
    }
}

#[tokio::test]
async fn acknowledged_writes_of_a_killed_server_are_on_the_other() {
    let Some(mut pair) = Pair::start(&[]) else {
        return;
    };
    let (on_one, on_other) = (client(&pair.one), client(&pair.other));
    let queue = on_one.create("q").await;
    for number in 0..3 {
        on_one.put("q", &json!(number)).await;
    }
    let polled = on_one.poll("q", &json!([]), &json!(["A"])).await;
    pair.one.kill();
    assert_eq!(on_other.queues().await, [queue]);
    assert_eq!(on_other.job("q", 1).await, polled);
    assert_eq!(on_other.matching("q", &json!([])).await, [2, 3, 1]);
    assert_eq!(on_other.put("q", &json!(4)).await.id, 4);
    assert_consistent(&pair.other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_of_both_servers_behave_like_those_of_one() {
    for options in [&[][..], &["--no-skip-locked"]] {
        let Some(pair) = Pair::start(options) else {
            return;
        };
        let clients = [client(&pair.one), client(&pair.other)];
        names_and_numbers_are_unique(&clients).await;
        each_job_is_claimed_once_by_polls(&clients).await;
        a_poll_and_a_state_change_do_not_both_succeed(&clients).await;
        concurrent_changes_are_all_kept(&clients).await;
        writes_to_deleted_objects_are_rejected(&clients).await;
        pair.assert_both_consistent().await;
    }
}
