//! The jobs that recurring jobs make.

use serde_json::{Value, json};

use crate::support::{Caller, Server};

/// Makes `r` in the queue `work`, every 60 seconds unless `extra` says otherwise.
async fn recur(who: Caller<'_>, extra: Value) {
    let mut item = json!({"id": "r", "meta": {"x": 1}, "interval": 60});
    for (key, value) in extra.as_object().unwrap() {
        item[key] = value.clone();
    }
    assert_eq!(who.post("/recur/work", item).await.ok(), "r");
}

async fn count(server: &Server) -> Value {
    let recurring = server.at(0).get("/recurring/r").await.ok();
    recurring["count"].clone()
}

/// When a job was put, by its history.
async fn put_at(server: &Server, id: &str) -> Value {
    server.at(0).job(id).await["history"][0]["when"].take()
}

#[tokio::test]
async fn a_child_that_was_made_for_whoever_took_it_is_worked_on_like_any_job() {
    let server = Server::start();
    let worker = server.by("w");
    let nightly = json!({"id": "r", "meta": 1, "interval": 60});
    worker.at(0).post("/recur/work", nightly).await.ok();
    for (now, child) in [(0, "r-1"), (60, "r-2"), (120, "r-3")] {
        assert_eq!(worker.at(now).pop("work").await["id"], child);
        let beat = worker.at(now).post("/heartbeat", json!(child)).await;
        assert_eq!(beat.ok(), 60);
        worker.at(now).complete("work", child).await;
    }
    let done = worker.at(120).get("/jobs/complete").await.ok();
    assert_eq!(done, json!(["r-3", "r-2", "r-1"]));
    let found = worker.at(120).get("/check").await.ok();
    assert_eq!(found, json!({"problems": []}));
}

#[tokio::test]
async fn a_child_is_a_job_like_any_other_that_knows_its_parent() {
    let server = Server::start();
    let worker = server.by("w");
    let extra =
        json!({"klass": "K", "priority": 2, "tags": ["t", "u"], "retries": 3, "offset": 10});
    recur(worker.at(0), extra).await;
    assert_eq!(worker.at(9.9).pop("work").await, Value::Null);
    assert_eq!(count(&server).await, 0);
    let job = worker.at(15).pop("work").await;
    for (key, value) in [
        ("id", json!("r-1")),
        ("spawned_from", json!("r")),
        ("queue", json!("work")),
        ("meta", json!({"x": 1})),
        ("klass", json!("K")),
        ("state", json!("running")),
        ("worker", json!("w")),
        ("expires", json!(75)),
        ("priority", json!(2)),
        ("tags", json!(["t", "u"])),
        ("retries", json!(3)),
        ("remaining", json!(3)),
    ] {
        assert_eq!(job[key], value, "{key}");
    }
    let put = json!({"what": "put", "when": 10, "q": "work"});
    assert_eq!(job["history"][0], put, "when it was due");
    assert_eq!(job["history"][1]["when"], 15);
    let stats = worker.at(15).get("/stats/work").await.ok();
    assert_eq!(stats["wait"]["mean"], 5, "it has waited since then");
    let tagged = worker.at(15).get("/tag/t").await.ok();
    assert_eq!(tagged["jobs"], json!(["r-1"]));
    worker.at(20).complete("work", "r-1").await;
    assert_eq!(worker.at(20).job("r-1").await["spawned_from"], "r");
    assert_eq!(count(&server).await, 1);
}

#[tokio::test]
async fn the_first_child_is_due_at_once_and_the_next_after_the_interval() {
    let server = Server::start();
    let worker = server.by("w");
    recur(worker.at(100), json!({})).await;
    assert_eq!(worker.at(99).pop("work").await, Value::Null);
    assert_eq!(worker.at(100).pop("work").await["id"], "r-1");
    assert_eq!(worker.at(159.9).pop_ids("work", 9).await, [""; 0]);
    worker.at(159.9).complete("work", "r-1").await;
    // Popped late, it is due no later the next time.
    assert_eq!(worker.at(200).pop("work").await["id"], "r-2");
    assert_eq!(worker.at(219.9).pop("work").await, Value::Null);
    assert_eq!(worker.at(220).pop("work").await["id"], "r-3");
}

#[tokio::test]
async fn a_child_is_made_for_every_interval_that_has_passed() {
    let server = Server::start();
    let worker = server.by("w");
    recur(worker.at(0), json!({})).await;
    let children = ["r-1", "r-2", "r-3", "r-4"];
    assert_eq!(worker.at(190).pop_ids("work", 10).await, children);
    assert_eq!(count(&server).await, 4);
    for (when, id) in [0, 60, 120, 180].into_iter().zip(children) {
        assert_eq!(put_at(&server, id).await, when, "{id}");
    }
}

#[tokio::test]
async fn only_as_many_children_are_made_as_are_wanted() {
    let server = Server::start();
    let worker = server.by("w");
    recur(worker.at(0), json!({})).await;
    assert_eq!(worker.at(190).pop("work").await["id"], "r-1");
    assert_eq!(count(&server).await, 1);
    assert_eq!(worker.at(190).pop_ids("work", 2).await, ["r-2", "r-3"]);
    assert_eq!(count(&server).await, 3);
    assert_eq!(put_at(&server, "r-3").await, 120);
    assert_eq!(worker.at(190).pop_ids("work", 10).await, ["r-4"]);
    assert_eq!(count(&server).await, 4);
}

#[tokio::test]
async fn peeking_makes_children_and_looking_does_not() {
    let server = Server::start();
    let who = server.at(0);
    recur(who, json!({})).await;
    for path in [
        "/queue/work",
        "/queues",
        "/jobs/waiting/work",
        "/recurring/r",
    ] {
        who.get(path).await.ok();
    }
    assert_eq!(count(&server).await, 0);
    assert_eq!(who.peek_ids("work").await, ["r-1"]);
    assert_eq!(count(&server).await, 1);
    assert_eq!(who.state("r-1").await, "waiting");
    assert_eq!(who.get("/queue/work").await.ok()["waiting"], 1);
    assert_eq!(who.peek_ids("work").await, ["r-1"], "none is made twice");
    assert_eq!(server.by("w").at(0).pop_ids("work", 9).await, ["r-1"]);
}

#[tokio::test]
async fn after_a_long_silence_a_backlog_limits_what_is_made_up_for() {
    let server = Server::start();
    let worker = server.by("w");
    recur(worker.at(0), json!({"backlog": 2})).await;
    // Due at 0, 60, … 600: the one that is due now, and two of those that were missed.
    let children = ["r-1", "r-2", "r-3"];
    assert_eq!(worker.at(600).pop_ids("work", 100).await, children);
    for (when, id) in [480, 540, 600].into_iter().zip(children) {
        assert_eq!(put_at(&server, id).await, when, "{id}");
    }
    // Within the limit nothing is skipped.
    assert_eq!(worker.at(659).pop_ids("work", 100).await, [""; 0]);
    let made = worker.at(720).peek_ids("work").await;
    assert_eq!(made[made.len() - 2..], ["r-4", "r-5"]);
    assert_eq!(put_at(&server, "r-4").await, 660);
}

#[tokio::test]
async fn a_recurring_job_put_again_counts_on_and_starts_its_time_anew() {
    let server = Server::start();
    let worker = server.by("w");
    recur(worker.at(0), json!({"retries": 4})).await;
    assert_eq!(worker.at(60).pop_ids("work", 9).await, ["r-1", "r-2"]);
    recur(
        worker.at(70),
        json!({"meta": "new", "interval": 10, "offset": 20}),
    )
    .await;
    assert_eq!(count(&server).await, 2);
    assert_eq!(worker.at(89).pop("work").await, Value::Null);
    let child = worker.at(90).pop("work").await;
    assert_eq!(
        (&child["id"], &child["meta"]),
        (&json!("r-3"), &json!("new"))
    );
    assert_eq!(worker.at(100).pop("work").await["id"], "r-4");
}

#[tokio::test]
async fn a_recurring_job_put_into_another_queue_moves_there() {
    let server = Server::start();
    let worker = server.by("w");
    recur(worker.at(0), json!({})).await;
    let item = json!({"id": "r", "meta": 1, "interval": 60});
    worker.at(1).post("/recur/other", item).await.ok();
    assert_eq!(
        worker.at(1).get("/recurring/r").await.ok()["queue"],
        "other"
    );
    for (queue, recurring) in [("work", json!([])), ("other", json!(["r"]))] {
        let path = format!("/jobs/recurring/{queue}");
        assert_eq!(worker.at(1).get(&path).await.ok(), recurring);
        let counts = worker.at(1).get(&format!("/queue/{queue}")).await.ok();
        assert_eq!(counts["recurring"], recurring.as_array().unwrap().len());
    }
    assert_eq!(worker.at(100).pop_ids("work", 9).await, [""; 0]);
    assert_eq!(worker.at(100).pop_ids("other", 9).await, ["r-1", "r-2"]);
}

#[tokio::test]
async fn another_interval_shifts_the_next_time_by_the_difference() {
    let server = Server::start();
    let worker = server.by("w");
    recur(worker.at(0), json!({})).await;
    assert_eq!(worker.at(0).pop("work").await["id"], "r-1");
    worker.at(0).complete("work", "r-1").await;
    let set = async |now: i32, interval: i32| {
        let change = json!({"interval": interval});
        worker.at(now).post("/recurring/r", change).await.ok();
    };
    // Due at 60, and so from now on at 100.
    set(50, 100).await;
    assert_eq!(worker.at(99).peek_ids("work").await, [""; 0]);
    assert_eq!(worker.at(100).peek_ids("work").await, ["r-2"]);
    // Due at 200, and so from now on at 110.
    set(101, 10).await;
    assert_eq!(worker.at(109).peek_ids("work").await, ["r-2"]);
    assert_eq!(worker.at(120).peek_ids("work").await, ["r-2", "r-3", "r-4"]);
    assert_eq!(put_at(&server, "r-3").await, 110);
}

#[tokio::test]
async fn the_id_of_a_child_that_is_taken_already_is_passed_over() {
    let server = Server::start();
    let worker = server.by("w");
    worker.at(0).add_ids("other", &["r-1", "r-3"]).await;
    recur(worker.at(0), json!({})).await;
    assert_eq!(worker.at(60).pop_ids("work", 9).await, ["r-2", "r-4"]);
    assert_eq!(put_at(&server, "r-2").await, 0);
    assert_eq!(put_at(&server, "r-4").await, 60);
    for id in ["r-1", "r-3"] {
        let job = worker.at(60).job(id).await;
        assert_eq!(
            json!([job["queue"], job["state"], job["spawned_from"]]),
            json!(["other", "waiting", null])
        );
    }
}

#[tokio::test]
async fn children_outlive_their_parent_and_none_come_after() {
    let server = Server::start();
    let worker = server.by("w");
    recur(worker.at(0), json!({})).await;
    assert_eq!(worker.at(0).peek_ids("work").await, ["r-1"]);
    assert_eq!(worker.at(1).delete("/recurring/r").await.ok(), true);
    assert_eq!(worker.at(1000).pop_ids("work", 9).await, ["r-1"]);
    worker.at(1000).complete("work", "r-1").await;
}

#[tokio::test]
async fn recurring_jobs_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("jobs.db");
    let server = Server::on(&database, &["--trust-client-clock"]);
    recur(server.at(0), json!({"meta": {"b": 1, "a": 2}})).await;
    assert_eq!(server.at(60).peek_ids("work").await, ["r-1", "r-2"]);
    let before = server.at(60).get("/recurring/r").await.ok();
    server.stop().await;
    let server = Server::on(&database, &["--trust-client-clock"]);
    assert_eq!(server.at(60).get("/recurring/r").await.ok(), before);
    assert_eq!(
        server.at(120).pop_ids("work", 9).await,
        ["r-1", "r-2", "r-3"]
    );
}
