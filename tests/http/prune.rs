//! How long statistics are kept, and the options for that.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::Server;
use crate::support::lmstfy::Lmstfy;

const DAY: f64 = 86_400.0;

/// The statistics of a queue on the day with this number; 1970-01-01 is 0.
async fn stats(server: &Server, queue: &str, day: i32) -> Value {
    let date = f64::from(day) * DAY;
    let path = format!("/stats/{queue}/{date}");
    server.at(0).get(&path).await.ok()
}

/// A job that waits 5 s and runs 7 s on this day, and completes.
async fn one_job(server: &Server, queue: &str, day: i32) {
    let worker = server.by("w");
    let begin = f64::from(day) * DAY;
    let id = worker.at(begin).add(queue, json!({"meta": 1})).await;
    worker.at(begin + 5.0).pop(queue).await;
    worker.at(begin + 12.0).complete(queue, &id).await;
}

/// The sums of the statistics of such a job: count, durations, and histogram total.
fn sums(stats: &Value) -> Value {
    let of = |kind: &str| {
        let histogram = stats[kind]["histogram"].as_array().unwrap();
        assert_eq!(histogram.len(), 148);
        let counted: i64 = histogram.iter().filter_map(Value::as_i64).sum();
        json!([stats[kind]["total"], stats[kind]["mean"], counted])
    };
    json!([of("wait"), of("run")])
}

#[tokio::test]
async fn statistics_are_deleted_by_day_after_the_configured_time() {
    let server = Server::start();
    server.client().set("stats-history", json!(3)).await.ok();
    server
        .client()
        .set("histogram-history", json!(2))
        .await
        .ok();
    let whole = json!([[1, 5, 1], [1, 7, 1]]);
    let without_histogram = json!([[1, 5, 0], [1, 7, 0]]);
    let none = json!([[0, 0, 0], [0, 0, 0]]);
    one_job(&server, "quiet", 10).await;
    for day in 10..13 {
        one_job(&server, "work", day).await;
    }
    // On day 12, days 10 to 12 are kept, and the histograms of days 11 and 12.
    for (day, expected) in [(10, &without_histogram), (11, &whole), (12, &whole)] {
        assert_eq!(sums(&stats(&server, "work", day).await), *expected, "{day}");
    }
    // Statistics are deleted by the next completion in any queue, not by the passage of time.
    let later = server.at(20.0 * DAY).get("/stats/work/864000").await.ok();
    assert_eq!(sums(&later), without_histogram);
    one_job(&server, "work", 13).await;
    for (day, expected) in [
        (10, &none),
        (11, &without_histogram),
        (12, &whole),
        (13, &whole),
    ] {
        assert_eq!(sums(&stats(&server, "work", day).await), *expected, "{day}");
    }
    assert_eq!(sums(&stats(&server, "quiet", 10).await), none);
    one_job(&server, "work", 100).await;
    for day in 10..14 {
        assert_eq!(sums(&stats(&server, "work", day).await), none, "{day}");
    }
    assert_eq!(sums(&stats(&server, "work", 100).await), whole);
}

/// The options belong to qless, and clients of qless must not affect other protocols.
#[tokio::test]
async fn options_of_qless_do_not_delete_recent_statistics_of_other_protocols() {
    let server = Server::with(&["--no-auth", "--trust-client-clock"]);
    let lmstfy = Lmstfy::new(&server, "ns");
    let id = lmstfy.publish("q?ttl=0&tries=1", "x").await;
    lmstfy.take("q").await;
    lmstfy.ack("q", &id).await;
    for option in ["stats-history", "histogram-history"] {
        server.client().set(option, json!(0)).await.ok();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let today = i32::try_from(now.as_secs() / 86_400).unwrap();
    let page = async || {
        let address = format!("http://{}/ui/lmstfy/ns/q/stats", server.address);
        server
            .http
            .get(address)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    };
    let none = "No activity in this queue";
    for (days, is_kept) in [(1, true), (29, true), (31, false)] {
        one_job(&server, "work", today + days).await;
        let is_shown = !page().await.contains(none);
        assert_eq!(is_shown, is_kept, "{days}");
    }
}

#[tokio::test]
async fn failure_counts_are_deleted_with_the_statistics_of_their_day() {
    let server = Server::start();
    server.client().set("stats-history", json!(2)).await.ok();
    let worker = server.by("w").at(0);
    let counts = async || {
        let stats = stats(&server, "work", 0).await;
        json!([stats["failures"], stats["failed"], stats["retries"]])
    };
    for id in ["a", "b"] {
        worker.add_and_pop(json!({"id": id, "meta": 1})).await;
        worker.fail(id, "g").await;
    }
    one_job(&server, "work", 1).await;
    assert_eq!(counts().await, json!([2, 2, 0]));
    one_job(&server, "work", 2).await;
    assert_eq!(counts().await, json!([0, 0, 0]));
    // The jobs are still failed, and changes of them do not affect deleted days.
    assert_eq!(
        server.at(3.0 * DAY).get("/failed").await.ok(),
        json!({"g": 2})
    );
    worker.at(3.0 * DAY).post("/cancel", json!("a")).await.ok();
    worker.at(3.0 * DAY).add_ids("other", &["b"]).await;
    assert_eq!(counts().await, json!([0, 0, 0]));
}

#[tokio::test]
async fn counts_of_jobs_are_not_deleted_with_statistics() {
    let server = Server::start();
    server.client().set("stats-history", json!(1)).await.ok();
    server
        .client()
        .set("histogram-history", json!(1))
        .await
        .ok();
    server.at(0).add_ids("kept", &["a", "b"]).await;
    server.by("w").at(0).pop("kept").await;
    one_job(&server, "work", 50).await;
    let queue = server.at(1).get("/queue/kept").await.ok();
    assert_eq!(json!([queue["waiting"], queue["running"]]), json!([1, 1]));
}

#[tokio::test]
async fn all_options_are_shown_with_their_defaults() {
    let server = Server::start();
    let client = server.client();
    let all = client.get("/config").await.ok();
    for (option, value) in [
        ("application", json!("qless")),
        ("heartbeat", json!(60)),
        ("grace-period", json!(0)),
        ("stats-history", json!(30)),
        ("histogram-history", json!(7)),
        ("jobs-history-count", json!(50_000)),
        ("jobs-history", json!(604_800)),
        ("max-job-history", json!(100)),
        ("max-worker-age", json!(86_400)),
    ] {
        assert_eq!(all[option], value, "{option}");
        let path = format!("/config/{option}");
        assert_eq!(client.get(&path).await.ok(), value, "{option}");
        if option == "application" {
            assert_eq!(client.set(option, json!("mine")).await.ok(), "mine");
            continue;
        }
        client
            .set(option, json!("some"))
            .await
            .assert_rejected_field("data");
    }
}
