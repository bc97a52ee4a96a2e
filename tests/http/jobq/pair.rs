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
            let (mine, yours) = (client(here), client(there));
            let queue = mine.create("q").await;
            assert_eq!(yours.queues().await, [queue]);
            let taken = yours.post("/queue", &json!({"name": "q"})).await;
            taken.assert_rejected(409, &["q"]);
            let job = mine.put("q", &json!(1)).await;
            assert_eq!(yours.existing_job("q", job.id).await, job);
            assert_eq!(yours.put("q", &json!(2)).await.id, job.id + 1);
            let free = json!([["IS", "state", null]]);
            let polled = yours.poll("q", &free, &json!(["A"])).await;
            assert_eq!(polled, mine.job("q", job.id).await);
            let late = mine.advance("q", job.id, &json!(null), &json!(1)).await;
            assert_eq!(Some(late.conflict()), polled);
            let seen = mine.event("q", job.id, &json!("seen")).await.job();
            assert_eq!(yours.all("q").await[0], seen);
            assert_eq!(mine.matching("q", &json!([])).await, [2, 1]);
            assert_eq!(yours.matching("q", &json!([])).await, [2, 1]);
            yours.delete("q", 2).await;
            assert_eq!(mine.job("q", 2).await, None);
            assert_eq!(mine.put("q", &json!(3)).await.id, 3);
            yours.delete_queue("q").await;
            mine.get("/queue/q/job").await.assert_rejected(404, &[]);
            // A server that has cached the old queue finds the new one.
            let new = yours.create("q").await;
            assert_eq!(mine.queues().await, [new]);
            assert_eq!(mine.put("q", &json!(1)).await.id, 1);
            assert_eq!(yours.put("q", &json!(1)).await.id, 2);
            mine.delete_queue("q").await;
        }
        pair.is_sound().await;
    }
}

#[tokio::test]
async fn acknowledged_writes_of_a_killed_server_are_on_the_other() {
    let Some(mut pair) = Pair::start(&[]) else {
        return;
    };
    let (mine, yours) = (client(&pair.one), client(&pair.other));
    let queue = mine.create("q").await;
    for number in 0..3 {
        mine.put("q", &json!(number)).await;
    }
    let polled = mine.poll("q", &json!([]), &json!(["A"])).await;
    pair.one.kill();
    assert_eq!(yours.queues().await, [queue]);
    assert_eq!(yours.job("q", 1).await, polled);
    assert_eq!(yours.matching("q", &json!([])).await, [2, 3, 1]);
    assert_eq!(yours.put("q", &json!(4)).await.id, 4);
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
        pair.is_sound().await;
    }
}
