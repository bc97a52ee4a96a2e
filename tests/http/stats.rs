//! `/stats`: daily statistics of a queue.

use serde_json::{Value, json};

use crate::support::Server;

const DAY: i64 = 86_400;

#[tokio::test]
async fn waits_and_runs_count_on_the_day_they_end() {
    let server = Server::start();
    let worker = server.by("w");
    let ids: Vec<String> = (0..20).map(|number| format!("job-{number:02}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    worker.at(0).add_ids("work", &ids).await;
    for (number, id) in (0..).zip(&ids) {
        worker.at(f64::from(number)).pop("work").await;
        worker.at(f64::from(2 * number)).complete("work", id).await;
    }
    let stats = worker.at(50).get("/stats/work").await.ok();
    for kind in ["wait", "run"] {
        assert_eq!(stats[kind]["total"], 20, "{stats}");
        assert!((stats[kind]["mean"].as_f64().unwrap() - 9.5).abs() < 1e-9);
        assert!((stats[kind]["variance"].as_f64().unwrap() - 35.0).abs() < 1e-9);
        let histogram = stats[kind]["histogram"].as_array().unwrap();
        assert_eq!(histogram.len(), 148);
        assert!(histogram[..20].iter().all(|count| count == 1));
        assert!(histogram[20..].iter().all(|count| count == 0));
    }
    let empty = worker.at(DAY as f64).get("/stats/work").await.ok();
    assert_eq!(empty["wait"]["total"], 0);
    assert_eq!(empty["run"]["variance"], 0);
}

#[tokio::test]
async fn a_day_is_given_as_a_time_or_a_date() {
    let server = Server::start();
    let worker = server.by("w");
    worker.at(DAY as f64).add_ids("work", &["a"]).await;
    worker.at((DAY + 90) as f64).pop("work").await;
    for date in ["86400", "172799.9", "1970-01-02"] {
        let stats = worker.at(0).get(&format!("/stats/work/{date}")).await.ok();
        assert_eq!(stats["wait"]["total"], 1, "{date}");
        assert_eq!(stats["wait"]["histogram"][60], 1, "{date}");
    }
    assert_eq!(
        worker.get("/stats/work/1970-01-01").await.ok()["wait"]["total"],
        0
    );
    assert_eq!(
        worker.get("/stats/unknown/1970-01-02").await.ok()["run"]["total"],
        0
    );
    for date in ["tomorrow", "1970-13-01", "inf", "1e300"] {
        worker
            .get(&format!("/stats/work/{date}"))
            .await
            .assert_rejected_field("date");
    }
}

#[tokio::test]
async fn failures_stay_counted_after_the_job_is_no_longer_failed() {
    let server = Server::start();
    let worker = server.by("w");
    let sums = async |now: i64| -> Value {
        let stats = worker.at(now as f64).get("/stats/work/0").await.ok();
        json!([stats["failures"], stats["failed"], stats["retries"]])
    };
    worker.at(0).add_ids("work", &["a", "b", "c"]).await;
    worker.at(0).pop_ids("work", 3).await;
    worker.at(0).fail("a", "g").await;
    worker.at(0).fail("b", "g").await;
    worker.at(0).fail("c", "g").await;
    assert_eq!(sums(1).await, json!([3, 3, 0]));
    // If the job is canceled on another day, the count of jobs still failed decreases on the day of the failure.
    worker.at(DAY as f64).post("/cancel", json!("a")).await.ok();
    assert_eq!(sums(2).await, json!([3, 2, 0]));
    worker
        .at(DAY as f64)
        .post("/unfail/other", json!({"group": "g", "count": 1}))
        .await
        .ok();
    assert_eq!(sums(3).await, json!([3, 1, 0]));
    worker.at(DAY as f64).add_ids("elsewhere", &["c"]).await;
    assert_eq!(sums(4).await, json!([3, 0, 0]));
}

#[tokio::test]
async fn an_expired_lease_that_is_claimed_counts_as_a_retry() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add("work", json!({"id": "a", "meta": 1, "retries": 1}))
        .await;
    worker.at(0).pop("work").await;
    worker.at(100).pop("work").await;
    worker.at(200).pop("work").await;
    let stats = worker.at(200).get("/stats/work").await.ok();
    assert_eq!(
        json!([stats["retries"], stats["failures"], stats["failed"]]),
        json!([2, 1, 1])
    );
}
