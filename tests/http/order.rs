//! The order of claims and lists.

use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn jobs_are_claimed_by_priority_then_availability_then_insertion() {
    let server = Server::start();
    let add = async |now: f64, id: &str, priority: f64| {
        server
            .at(now)
            .add("work", json!({"id": id, "meta": 1, "priority": priority}))
            .await;
    };
    add(10.0, "plain-10-first", 0.0).await;
    add(10.0, "plain-10-second", 0.0).await;
    add(5.0, "plain-5", 0.0).await;
    add(20.0, "urgent", -1.0).await;
    add(30.0, "most-urgent", -1.5).await;
    add(0.0, "late", 100.0).await;
    let order = [
        "most-urgent",
        "urgent",
        "plain-5",
        "plain-10-first",
        "plain-10-second",
        "late",
    ];
    assert_eq!(server.at(40).peek_ids("work").await, order);
    assert_eq!(
        server.at(40).get("/jobs/waiting/work").await.ok(),
        json!(order)
    );
    for id in order {
        assert_eq!(server.at(40).pop("work").await["id"], id, "one by one");
    }
}

#[tokio::test]
async fn jobs_with_equal_times_keep_their_order() {
    let server = Server::start();
    let ids: Vec<String> = (0..200)
        .map(|index| format!("{:03}", (index * 37) % 200))
        .collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    for part in ids.chunks(50) {
        server.at(7).add_ids("work", part).await;
    }
    assert_eq!(
        server.at(7).get("/jobs/waiting/work?limit=200").await.ok(),
        json!(ids)
    );
    let mut taken = Vec::new();
    for _ in 0..4 {
        taken.extend(server.at(7).pop_ids("work", 50).await);
    }
    assert_eq!(taken, ids);
}

#[tokio::test]
async fn expired_leases_are_claimed_first_oldest_first() {
    let server = Server::start();
    let item = |id: &str, priority: i32| json!({"id": id, "meta": 1, "priority": priority});
    server.at(0).add("work", item("x", 9)).await;
    server.at(10).add("work", item("y", 9)).await;
    // y is claimed first and x after it, so the lease of y expires first.
    server.at(10).add("work", item("y", 8)).await;
    assert_eq!(server.by("w").at(10).pop("work").await["id"], "y");
    assert_eq!(server.by("w").at(20).pop("work").await["id"], "x");
    server.at(30).add("work", item("urgent", -9)).await;
    assert_eq!(server.at(69).peek_ids("work").await, ["urgent"]);
    assert_eq!(server.at(70).peek_ids("work").await, ["y", "urgent"]);
    assert_eq!(server.at(80).peek_ids("work").await, ["y", "x", "urgent"]);
    assert_eq!(server.by("v").at(80).pop_ids("work", 2).await, ["y", "x"]);
    assert_eq!(server.by("v").at(80).pop("work").await["id"], "urgent");
}

#[tokio::test]
async fn a_job_is_ordered_by_the_time_at_which_it_became_available() {
    let server = Server::start();
    let worker = server.by("w");
    // Jobs that become due, are retried, made to wait again or advanced are behind the jobs that waited before.
    worker
        .at(0)
        .add("work", json!({"id": "scheduled", "meta": 1, "delay": 15}))
        .await;
    worker
        .at(0)
        .add_and_pop(json!({"id": "retried", "meta": 1}))
        .await;
    worker.at(10).add_ids("work", &["ten"]).await;
    worker
        .at(12)
        .post("/retry/work", json!({"id": "retried"}))
        .await
        .ok();
    worker.at(14).add_ids("work", &["fourteen"]).await;
    worker.at(16).add_ids("work", &["sixteen"]).await;
    let order = ["ten", "retried", "fourteen", "scheduled", "sixteen"];
    assert_eq!(server.at(20).peek_ids("work").await, order);
    assert_eq!(server.at(20).pop_ids("work", 10).await, order);
}

#[tokio::test]
async fn a_due_job_with_a_better_priority_is_claimed_before_waiting_jobs() {
    let server = Server::start();
    server
        .at(0)
        .add(
            "work",
            json!({"id": "due", "meta": 1, "delay": 5, "priority": -1}),
        )
        .await;
    server.at(0).add_ids("work", &["a", "b"]).await;
    assert_eq!(server.at(4).peek_ids("work").await, ["a", "b"]);
    assert_eq!(server.at(5).peek_ids("work").await, ["due", "a", "b"]);
    assert_eq!(server.at(5).pop("work").await["id"], "due");
}

#[tokio::test]
async fn a_failed_expired_job_does_not_count_as_a_job_of_the_claim() {
    let server = Server::start();
    server
        .at(0)
        .add("work", json!({"id": "spent", "meta": 1, "retries": 0}))
        .await;
    server.by("w").at(0).pop("work").await;
    server.at(1).add_ids("work", &["a", "b"]).await;
    assert_eq!(server.at(60).pop_ids("work", 2).await, ["a", "b"]);
    assert_eq!(server.at(60).state("spent").await, "failed");
}
