//! Removing queues and workers from the lists.

use serde_json::{Value, json};

use crate::support::Server;

async fn names(server: &Server, path: &str) -> Vec<String> {
    let list = server.at(10).get(path).await.ok();
    let names = list.as_array().unwrap().iter();
    names
        .map(|entry| entry["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn forget(server: &Server, path: &str) {
    assert_eq!(server.at(5).delete(path).await.ok(), true, "{path}");
}

#[tokio::test]
async fn a_forgotten_queue_is_not_listed_and_keeps_its_jobs() {
    let server = Server::start();
    let worker = server.by("w").at(1);
    worker.add_ids("work", &["a", "b", "c"]).await;
    worker.add_ids("other", &["x"]).await;
    worker.pop("work").await;
    forget(&server, "/queue/work").await;
    assert_eq!(names(&server, "/queues").await, ["other"]);
    let queue = worker.get("/queue/work").await.ok();
    assert_eq!(
        json!([queue["waiting"], queue["running"], queue["length"]]),
        json!([2, 1, 3])
    );
    assert_eq!(worker.job("b").await["queue"], "work");
    assert_eq!(worker.peek_ids("work").await, ["b", "c"]);
    assert_eq!(worker.pop("work").await["id"], "b");
    worker.complete("work", "a").await;
    assert_eq!(
        names(&server, "/queues").await,
        ["other"],
        "only a put lists the queue again"
    );
}

#[tokio::test]
async fn a_forgotten_queue_is_listed_again_after_a_put() {
    let server = Server::start();
    let worker = server.by("w");
    for (now, queue) in [(1, "work"), (2, "other")] {
        worker.at(now).add_ids(queue, &[queue]).await;
    }
    forget(&server, "/queue/work").await;
    forget(&server, "/queue/work").await;
    worker.at(6).add_ids("work", &["a"]).await;
    assert_eq!(
        names(&server, "/queues").await,
        ["other", "work"],
        "as if it were new"
    );
    let queues = worker.at(6).get("/queues").await.ok();
    assert_eq!(queues[1]["waiting"], 2, "with all its jobs");
    // Every way to add a job has this effect.
    forget(&server, "/queue/work").await;
    worker.at(7).pop("other").await;
    let on = json!({"id": "other", "meta": 1, "next": "work"});
    worker.at(7).post("/complete/other", on).await.ok();
    assert_eq!(names(&server, "/queues").await, ["other", "work"]);
}

#[tokio::test]
async fn unknown_queues_and_workers_can_be_forgotten() {
    let server = Server::start();
    forget(&server, "/queue/nowhere").await;
    forget(&server, "/worker/nobody").await;
    assert_eq!(names(&server, "/queues").await, [""; 0]);
    assert_eq!(names(&server, "/workers").await, [""; 0]);
}

#[tokio::test]
async fn a_forgotten_worker_is_not_listed_and_keeps_its_leases() {
    let server = Server::start();
    let worker = server.by("w").at(1);
    worker.add_ids("work", &["a", "b"]).await;
    worker.pop_ids("work", 2).await;
    server.by("v").at(2).pop("work").await;
    forget(&server, "/worker/w").await;
    assert_eq!(names(&server, "/workers").await, ["v"]);
    let job = worker.job("a").await;
    assert_eq!(
        json!([job["state"], job["worker"], job["expires"]]),
        json!(["running", "w", 61])
    );
    assert_eq!(server.by("v").at(3).pop("work").await, Value::Null);
    worker.complete("work", "a").await;
    assert_eq!(names(&server, "/workers").await, ["v"]);
}

#[tokio::test]
async fn a_forgotten_worker_is_listed_again_after_a_request() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(1)
        .add_and_pop(json!({"id": "a", "meta": 1}))
        .await;
    forget(&server, "/worker/w").await;
    worker.at(2).post("/heartbeat", json!("a")).await.ok();
    let workers = server.at(2).get("/workers").await.ok();
    assert_eq!(workers, json!([{"name": "w", "jobs": 1, "stalled": 0}]));
    forget(&server, "/worker/w").await;
    assert_eq!(names(&server, "/workers").await, [""; 0]);
    worker.at(3).pop("work").await;
    assert_eq!(names(&server, "/workers").await, ["w"]);
}

#[tokio::test]
async fn the_page_of_a_forgotten_worker_counts_its_leases() {
    let server = Server::with(&[]);
    let worker = server.by("w");
    worker.add_ids("work", &["a", "b"]).await;
    worker.pop_ids("work", 2).await;
    forget(&server, "/worker/w").await;
    let address = format!("http://{}/ui/fn/worker", server.address);
    let request = server.http.post(address).form(&[("name", "w")]);
    let request = request
        .header("sec-fetch-site", "same-origin")
        .header("accept", "application/json");
    let view: Value = request.send().await.unwrap().json().await.unwrap();
    let counts = (&view["worker"]["running"], &view["worker"]["stalled"]);
    assert_eq!(counts, (&json!(2), &json!(0)), "{view}");
}
