//! Two servers on one PostgreSQL database act as one queue server.

use super::client;
use super::concurrency::{dead_jobs_are_processed_once, each_job_once, one_job_is_consumed_once};
use super::tokens::{revoke, token};
use crate::support::lmstfy::Lmstfy;
use crate::support::metrics::wait_until_polling;
use crate::support::pair::Pair;

#[tokio::test]
async fn a_job_that_becomes_ready_wakes_a_consumer_on_the_other_server() {
    for options in [&["--no-auth"][..], &["--no-auth", "--no-notify"]] {
        let Some(pair) = Pair::start(options) else {
            return;
        };
        for (round, (here, there)) in pair.both().into_iter().enumerate() {
            let (on_one, on_other) = (client(here), client(there));
            let mut polls = Vec::new();
            for way in ["publish", "bulk", "delay", "respawn", "ttr"] {
                let queue = format!("{way}{round}");
                let id = match way {
                    "respawn" => on_other.publish_dead(&queue, "x").await,
                    "ttr" => {
                        // Last, because this job is ready after 2 s even if the other polls are not waiting yet.
                        wait_until_polling(here, polls.len()).await;
                        let id = on_other.publish(&format!("{queue}?tries=2"), "x").await;
                        on_other.take(&format!("{queue}?ttr=2")).await;
                        id
                    }
                    _ => String::new(),
                };
                let poll = on_one.poll(here, &format!("{queue}?timeout=50")).await;
                polls.push((way, queue, id, poll));
            }
            for (way, queue, mut id, poll) in polls {
                match way {
                    "publish" => id = on_other.publish(&queue, "x").await,
                    "bulk" => id = on_other.bulk(&queue, "[1]").await.remove(0),
                    "delay" => id = on_other.publish(&format!("{queue}?delay=1"), "x").await,
                    "respawn" => assert_eq!(on_other.respawn(&queue).await, 1),
                    _ => {}
                }
                assert_eq!(poll.take().await.id, id, "{queue}");
                on_other.ack(&queue, &id).await;
                assert_eq!(on_one.job(&queue, &id).await, None);
            }
        }
        pair.assert_both_consistent().await;
    }
}

#[tokio::test]
async fn changes_on_one_server_apply_to_the_other() {
    let Some(pair) = Pair::start(&["--no-auth"]) else {
        return;
    };
    for (here, there) in pair.both() {
        let (on_one, on_other) = (client(here), client(there));
        let id = on_one.publish("work?tries=2", "x").await;
        assert_eq!(on_other.size("work").await, 1);
        assert_eq!(on_other.peek("work").await.expect("a job").id, id);
        assert_eq!(on_other.take("work").await.id, id);
        assert_eq!(on_one.size("work").await, 0);
        assert_eq!(on_one.existing_job("work", &id).await.remain_tries, 1);
        let new = on_one.republish("work", &id, "y").await;
        assert_eq!(on_other.job("work", &id).await, None);
        assert_eq!(on_other.take("work?ttr=0").await.id, new);
        on_one.wait_until_dead("work", 1).await;
        assert_eq!(on_other.dead("work").await, (1, new.clone()));
        assert_eq!(on_other.respawn("work").await, 1);
        on_one.bulk("work", "[1, 2]").await;
        on_other.destroy("work").await;
        assert_eq!(on_one.size("work").await, 0);
        assert_eq!(on_one.job("work", &new).await, None);
    }
    pair.assert_both_consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_job_is_consumed_once() {
    for options in [&["--no-auth"][..], &["--no-auth", "--no-skip-locked"]] {
        let Some(pair) = Pair::start(options) else {
            return;
        };
        let clients = [client(&pair.one), client(&pair.other)];
        each_job_once(&clients).await;
        one_job_is_consumed_once(&clients).await;
        pair.assert_both_consistent().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_dead_letter_calls_on_both_servers_process_each_job_once() {
    for options in [&["--no-auth"][..], &["--no-auth", "--no-skip-locked"]] {
        let Some(pair) = Pair::start(options) else {
            return;
        };
        dead_jobs_are_processed_once(&[client(&pair.one), client(&pair.other)]).await;
        pair.assert_both_consistent().await;
    }
}

#[tokio::test]
async fn a_token_is_valid_and_revoked_on_both_servers_at_once() {
    let Some(pair) = Pair::start(&[]) else { return };
    for (here, there) in pair.both() {
        for _ in 0..5 {
            let token = token(here, "ns").await;
            for server in [there, here] {
                let lmstfy = Lmstfy::new(server, "ns").with_token(&token);
                lmstfy.publish("work", "x").await;
            }
            revoke(here, "ns", &token).await;
            for server in [there, here] {
                let lmstfy = Lmstfy::new(server, "ns").with_token(&token);
                let reply = lmstfy.put("/work", "x").await;
                reply.assert_rejected(401, "invalid token");
            }
        }
    }
}
