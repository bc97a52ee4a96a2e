//! Consumers that wait on one server are woken by changes on the other.

use std::time::Duration;

use serde_json::json;
use sqlx::Connection;
use sqlx::postgres::{PgConnection, PgListener};
use tokio::time::timeout;

use super::Pair;
use crate::support::metrics::wait_until_polling;
use crate::support::{Server, Stream, database};

/// A guard against an event that never happens; no test waits this long. Shorter than the timeouts of the polls.
const WAIT_MAX: Duration = Duration::from_secs(45);

/// Within this time, notifications would arrive if servers with `--no-notify` sent any.
const SILENCE: Duration = Duration::from_secs(2);

async fn polls_wake(pair: &Pair) {
    for (round, (one, other)) in pair.both().into_iter().enumerate() {
        // A queue that the first server knows, and a new one.
        for queue in ["known".to_owned(), format!("new{round}")] {
            let name = format!("w-{queue}-{round}");
            one.client().add_ids("known", &["gone"]).await;
            one.client().post("/cancel", json!("gone")).await.ok();
            let path = format!("/get/{queue}?wait=60");
            let put = async {
                one.client().wait_until_seen(&name).await;
                other.client().add(&queue, json!({"meta": null})).await
            };
            let worker = one.by(&name);
            // The poll's own timeout is longer, so a response within the guard means that it was woken.
            let poll = timeout(WAIT_MAX, worker.get(&path));
            let (put, woken) = tokio::join!(put, poll);
            let woken = woken.unwrap_or_else(|_| panic!("{queue}: not woken"));
            assert_eq!(woken.ok()["id"], put);
        }
    }
}

#[tokio::test]
async fn a_poll_on_one_server_is_woken_by_a_job_put_on_the_other() {
    let Some(pair) = Pair::start(&[]) else { return };
    polls_wake(&pair).await;
}

/// Pauses a queue for a second.
fn pause(server: &Server, queue: &str) {
    let mut command = Server::program();
    command.args(["queue", "pause", queue, "--for", "1s"]);
    command.env("SWITCHYARD_SERVER", format!("http://{}", server.address));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn a_poll_on_one_server_wakes_at_the_end_of_a_pause_that_began_on_the_other() {
    let Some(pair) = Pair::start(&[]) else { return };
    for (round, (one, other)) in pair.both().into_iter().enumerate() {
        let (queue, name) = (format!("paused{round}"), format!("waits-{round}"));
        let id = one.client().add(&queue, json!({"meta": null})).await;
        let path = format!("/pause/{queue}");
        one.client().post(&path, json!(null)).await.ok();
        let paused = async {
            other.client().wait_until_seen(&name).await;
            pause(one, &queue);
        };
        // A claim of a paused queue alone would not list the worker.
        let path = format!("/get?queue={queue}&queue=idle&wait=60");
        let worker = other.by(&name);
        let (woken, ()) = tokio::join!(timeout(WAIT_MAX, worker.get(&path)), paused);
        assert_eq!(woken.expect("the poll wakes").ok()["id"], id);
        let shown = one.client().get(&format!("/queue/{queue}")).await.ok();
        assert_eq!(shown["paused"], false);
    }
    pair.assert_both_consistent().await;
}

#[tokio::test]
async fn a_poll_on_one_server_is_woken_when_a_concurrency_limit_is_raised_on_the_other() {
    let Some(pair) = Pair::start(&[]) else { return };
    for (round, (one, other)) in pair.both().into_iter().enumerate() {
        let (queue, name) = (format!("limited{round}"), format!("waits-{round}"));
        let limit = format!("{queue}-max-concurrency");
        one.client().set(&limit, json!(1)).await.accepted();
        let items = json!([{"meta": 1}, {"meta": 2}]);
        let path = format!("/add/{queue}");
        one.client().post(&path, items).await.accepted();
        assert_eq!(other.by("w").pop_ids(&queue, 2).await.len(), 1);
        let raised = async {
            other.client().wait_until_seen(&name).await;
            one.client().set(&limit, json!(2)).await.accepted();
        };
        let path = format!("/get/{queue}?wait=60");
        let worker = other.by(&name);
        let (woken, ()) = tokio::join!(timeout(WAIT_MAX, worker.get(&path)), raised);
        assert_eq!(woken.expect("the poll wakes").ok()["meta"], 2);
    }
}

#[tokio::test]
async fn a_poll_is_woken_without_notifications() {
    let Some(pair) = Pair::start(&["--no-notify"]) else {
        return;
    };
    polls_wake(&pair).await;
}

/// A notification can be lost, and lmstfy and Relay jobs create no event that is seen later.
#[tokio::test]
async fn a_poll_is_served_although_its_notification_was_lost() {
    let Some(pair) = Pair::start(&["--no-auth"]) else {
        return;
    };
    let mut admin = PgConnection::connect(&pair.database).await.unwrap();
    let silence = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    for (round, (one, other)) in pair.both().into_iter().enumerate() {
        let queue = format!("lost{round}");
        let here = format!("http://{}/api/shop/{queue}?timeout=50", one.address);
        let there = format!("http://{}/api/shop/{queue}", other.address);
        let waiting = timeout(WAIT_MAX, one.http.get(here).send());
        let publish = async {
            wait_until_polling(one, 1).await;
            sqlx::raw_sql(silence).execute(&mut admin).await.unwrap();
            let published = other.http.put(there).body("x").send().await.unwrap();
            assert_eq!(published.status(), 201);
        };
        let (woken, ()) = tokio::join!(waiting, publish);
        let woken = woken.expect("the waiter is woken").unwrap();
        assert_eq!(woken.status(), 200);
    }
}

/// Reading the database once a second would hide missing notifications.
#[tokio::test]
async fn servers_notify_each_other_unless_disabled() {
    // All tests may be run with this option.
    let heard = !database::options().contains(&"--no-notify".to_owned());
    for (options, is_notified) in [(&[][..], heard), (&["--no-notify"][..], false)] {
        let Some(pair) = Pair::start(options) else {
            return;
        };
        let mut listener = PgListener::connect(&pair.database).await.unwrap();
        listener.listen("switchyard").await.unwrap();
        let put = async {
            // Waits until each server knows of the other.
            loop {
                pair.one.client().add("work", json!({"meta": 1})).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let heard = async {
            tokio::select! {
                () = put => unreachable!("the stream never ends"),
                word = listener.recv() => word.unwrap(),
            }
        };
        let patience = if is_notified { WAIT_MAX } else { SILENCE };
        assert_eq!(timeout(patience, heard).await.is_ok(), is_notified);
    }
}

/// Waits for an event of the live feed with this count of waiting jobs.
async fn feed_shows(feed: &mut reqwest::Response, waiting: u64) {
    let wanted = format!("\"waiting\":{waiting},");
    let mut text = String::new();
    while !text.contains(&wanted) {
        let chunk = feed.chunk().await.unwrap().expect("the feed is open");
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
}

async fn feed(server: &Server) -> reqwest::Response {
    let address = format!("http://{}/ui/events", server.address);
    server.http.get(address).send().await.unwrap()
}

#[tokio::test]
async fn live_pages_of_one_server_show_changes_on_the_other() {
    for options in [&[][..], &["--no-notify"]] {
        let Some(pair) = Pair::start(options) else {
            return;
        };
        let mut feed = feed(&pair.one).await;
        let shown = timeout(WAIT_MAX, feed_shows(&mut feed, 0)).await;
        assert!(shown.is_ok(), "the first event has the current counts");
        for n in 1..=3 {
            pair.other.client().add("work", json!({"meta": 1})).await;
            let shown = timeout(WAIT_MAX, feed_shows(&mut feed, n)).await;
            assert!(shown.is_ok(), "{options:?}: {n} jobs are not shown");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_streams_of_both_servers_have_all_events_in_the_same_order() {
    const EACH: usize = 150;
    let Some(pair) = Pair::start(&[]) else { return };
    let write = async |server: &Server, name: &str| {
        for n in 0..EACH {
            let id = format!("{name}{n}");
            server.client().add_ids(name, &[&id]).await;
        }
    };
    let read = async |server: &Server, channel: &str| {
        let query = format!("?after=0{channel}");
        let mut stream = Stream::open(server, &query, None).await;
        let mut events = Vec::new();
        while events.len() < 3 * EACH {
            events.push(stream.next().await);
        }
        events
    };
    let (one, other) = (&pair.one, &pair.other);
    let (.., on_one, on_other, log) = tokio::join!(
        write(one, "a"),
        write(other, "b"),
        write(other, "c"),
        read(one, ""),
        read(other, ""),
        read(one, "&channel=log"),
    );
    assert_eq!(on_one, on_other);
    assert_eq!(on_one, log);
    let numbers: Vec<i64> = on_one.iter().map(|(number, _)| *number).collect();
    let expected: Vec<i64> = (1..).take(3 * EACH).collect();
    assert_eq!(numbers, expected);
    for name in ["a", "b", "c"] {
        let of_one = on_one
            .iter()
            .filter(|(_, event)| event["data"]["queue"] == name);
        let ids: Vec<_> = of_one
            .map(|(_, event)| event["data"]["id"].clone())
            .collect();
        let expected: Vec<_> = (0..EACH).map(|n| json!(format!("{name}{n}"))).collect();
        assert_eq!(ids, expected);
    }
}
