//! Children of recurring jobs.

use serde_json::{Value, json};

use crate::support::{Caller, Server};

/// Creates the recurring job `r` in the queue `work`, with an interval of 60 s unless `extra` overrides it.
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

/// The time at which a job was put, according to its history.
async fn put_at(server: &Server, id: &str) -> Value {
    server.at(0).job(id).await["history"][0]["when"].take()
}

#[tokio::test]
async fn a_claimed_child_can_be_processed_like_any_job() {
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
async fn a_child_is_an_ordinary_job_that_names_its_parent() {
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
    // A late claim does not delay the next child.
    assert_eq!(worker.at(200).pop("work").await["id"], "r-2");
    assert_eq!(worker.at(219.9).pop("work").await, Value::Null);
    assert_eq!(worker.at(220).pop("work").await["id"], "r-3");
}

#[tokio::test]
async fn a_child_is_created_for_every_elapsed_interval() {
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
async fn a_claim_creates_only_as_many_children_as_requested() {
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
async fn peek_creates_children_and_other_reads_do_not() {
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
    assert_eq!(
        who.peek_ids("work").await,
        ["r-1"],
        "no child is created twice"
    );
    assert_eq!(server.by("w").at(0).pop_ids("work", 9).await, ["r-1"]);
}

#[tokio::test]
async fn backlog_limits_the_children_created_for_missed_intervals() {
    let server = Server::start();
    let worker = server.by("w");
    recur(worker.at(0), json!({"backlog": 2})).await;
    // Due at 0, 60, … 600: the current child and two of the missed ones.
    let children = ["r-1", "r-2", "r-3"];
    assert_eq!(worker.at(600).pop_ids("work", 100).await, children);
    for (when, id) in [480, 540, 600].into_iter().zip(children) {
        assert_eq!(put_at(&server, id).await, when, "{id}");
    }
    // Within the limit, no child is skipped.
    assert_eq!(worker.at(659).pop_ids("work", 100).await, [""; 0]);
    let made = worker.at(720).peek_ids("work").await;
    assert_eq!(made[made.len() - 2..], ["r-4", "r-5"]);
    assert_eq!(put_at(&server, "r-4").await, 660);
}

#[tokio::test]
async fn recurring_again_keeps_the_count_and_restarts_the_schedule() {
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
async fn recurring_again_in_another_queue_moves_the_job() {
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
async fn changing_the_interval_shifts_the_next_due_time() {
    let server = Server::start();
    let worker = server.by("w");
    recur(worker.at(0), json!({})).await;
    assert_eq!(worker.at(0).pop("work").await["id"], "r-1");
    worker.at(0).complete("work", "r-1").await;
    let set = async |now: i32, interval: i32| {
        let change = json!({"interval": interval});
        worker.at(now).post("/recurring/r", change).await.ok();
    };
    // Due at 60 before the change, and at 100 after it.
    set(50, 100).await;
    assert_eq!(worker.at(99).peek_ids("work").await, [""; 0]);
    assert_eq!(worker.at(100).peek_ids("work").await, ["r-2"]);
    // Due at 200 before the change, and at 110 after it.
    set(101, 10).await;
    assert_eq!(worker.at(109).peek_ids("work").await, ["r-2"]);
    assert_eq!(worker.at(120).peek_ids("work").await, ["r-2", "r-3", "r-4"]);
    assert_eq!(put_at(&server, "r-3").await, 110);
}

#[tokio::test]
async fn an_id_that_is_in_use_is_skipped() {
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
async fn children_outlive_their_parent_and_no_more_are_created() {
    let server = Server::start();
    let worker = server.by("w");
    recur(worker.at(0), json!({})).await;
    assert_eq!(worker.at(0).peek_ids("work").await, ["r-1"]);
    assert_eq!(worker.at(1).delete("/recurring/r").await.ok(), true);
    assert_eq!(worker.at(1000).pop_ids("work", 9).await, ["r-1"]);
    worker.at(1000).complete("work", "r-1").await;
}

#[tokio::test]
async fn recurring_jobs_survive_a_restart() {
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
