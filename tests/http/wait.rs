//! Blocking claims. These tests use the real clock; none requires an upper bound on time.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::log::Logged;
use crate::support::metrics::wait_until_polling;
use crate::support::{Caller, Server, ids, raw::Connection};

#[tokio::test]
async fn a_blocking_claim_gets_a_job_put_later() {
    let server = Server::with(&[]);
    // A new queue and an existing one.
    for queue in ["new", "old"] {
        if queue == "old" {
            let gone = server.client().add(queue, json!({"meta": 1})).await;
            server.client().post("/cancel", json!(gone)).await.ok();
        }
        let name = format!("waits for {queue}");
        let worker = server.by(&name);
        let path = format!("/get/{queue}?wait=60");
        let put = async {
            server.client().wait_until_seen(&name).await;
            server.client().add(queue, json!({"meta": queue})).await
        };
        let (job, id) = tokio::join!(worker.get(&path), put);
        let job = job.ok();
        assert_eq!((&job["id"], &job["meta"]), (&json!(id), &json!(queue)));
        assert_eq!(
            (&job["state"], &job["worker"]),
            (&json!("running"), &json!(name))
        );
        assert_eq!(job["heartbeat"], 60);
        worker.complete(queue, &id).await;
    }
}

#[tokio::test]
async fn every_way_to_claim_can_block() {
    let server = Server::with(&[]);
    for (way, several) in [
        ("/get/work?wait=60", false),
        ("/get/work/1?wait=60", false),
        ("/get/work/5?wait=60", true),
        ("/get?queue=idle&queue=work&wait=60", false),
        ("/get?queue=idle&queue=work&wait=60&count=5", true),
        (
            "/get?queue=idle&queue=work&wait=60&order=round-robin",
            false,
        ),
        ("/get", false),
    ] {
        let worker = server.by(way);
        let ask = async {
            if way == "/get" {
                let data = json!({"queues": ["idle", "work"], "wait": 60});
                return worker.post(way, data).await.ok();
            }
            worker.get(way).await.ok()
        };
        let put = async {
            server.client().wait_until_seen(way).await;
            server.client().add_ids("work", &[way]).await;
        };
        let (got, ()) = tokio::join!(ask, put);
        // A claim of several jobs ends as soon as there is one.
        let got = if several { got } else { json!([got]) };
        assert_eq!(ids(&got), [way]);
    }
}

#[tokio::test]
async fn a_blocking_claim_ends_empty_after_its_timeout() {
    let server = Server::with(&[]);
    server
        .client()
        .add("work", json!({"id": "a", "meta": 1, "delay": 1000}))
        .await;
    for (path, nothing) in [
        ("/get/work?wait=0.1", Value::Null),
        ("/get/work/5?wait=0.1", json!([])),
        ("/get/nowhere?wait=0", Value::Null),
        ("/get?queue=work&queue=nowhere&wait=0.1", Value::Null),
        ("/get?queue=work&queue=nowhere&wait=0.1&count=5", json!([])),
    ] {
        assert_eq!(server.client().get(path).await.ok(), nothing, "{path}");
    }
    assert_eq!(server.client().state("a").await, "scheduled");
}

#[tokio::test]
async fn invalid_waits_are_rejected() {
    let server = Server::with(&[]);
    server.client().add_ids("work", &["a"]).await;
    for wait in [
        "-1", "-0.001", "60.001", "61", "x", "", "NaN", "inf", "1e999",
    ] {
        for path in ["/get/work", "/get/work/5"] {
            let response = server.client().get(&format!("{path}?wait={wait}")).await;
            response.assert_rejected_field("wait");
        }
    }
    let head = server
        .try_send(Method::HEAD, "/get/work?wait=60", None)
        .await;
    assert_eq!(head.unwrap().status, 405);
    assert_eq!(server.client().state("a").await, "waiting");
    for wait in ["0", "0.5", "59.999", "60", "60.0"] {
        let job = server
            .client()
            .get(&format!("/get/work?wait={wait}"))
            .await
            .ok();
        assert_eq!(job["id"], "a");
        let back = json!({"id": "a"});
        server.client().post("/retry/work", back).await.ok();
    }
}

/// Prepares the queue that is named after a way in which jobs become available. Returns the request that makes one
/// available.
async fn prepare(holder: Caller<'_>, way: &str) -> (String, Value) {
    let item = json!({"id": way, "meta": 1});
    let at = |verb: &str| format!("/{verb}/{way}");
    match way {
        "put" => (at("add"), item),
        "requeue" => {
            holder.add("elsewhere", item.clone()).await;
            (at("requeue"), item)
        }
        "next" => {
            holder.add_and_pop(item).await;
            let next = json!({"id": way, "meta": 1, "next": way});
            ("/complete/work".to_owned(), next)
        }
        "retry" | "unfail" | "timeout" => {
            holder.add(way, item).await;
            holder.pop(way).await;
            match way {
                "retry" => (at("retry"), json!({"id": way})),
                "timeout" => ("/timeout".to_owned(), json!(way)),
                _ => {
                    holder.fail(way, "g").await;
                    (at("unfail"), json!({"group": "g"}))
                }
            }
        }
        "freed" | "depends" => {
            let first = format!("before {way}");
            holder.add_and_pop(json!({"id": first, "meta": 1})).await;
            let held = json!({"id": way, "meta": 1, "depends": [first]});
            holder.add(way, held).await;
            if way == "freed" {
                let done = json!({"id": first, "meta": 1});
                return ("/complete/work".to_owned(), done);
            }
            ("/depends".to_owned(), json!({"id": way, "off": "all"}))
        }
        "recur" => (at("recur"), json!({"id": way, "meta": 1, "interval": 1000})),
        "unpause" => {
            holder.add(way, item).await;
            holder.post(&at("pause"), Value::Null).await.ok();
            (at("unpause"), Value::Null)
        }
        "slot" => {
            holder.set("slot-max-concurrency", json!(1)).await.ok();
            holder.add_ids(way, &["first", way]).await;
            holder.pop(way).await;
            (
                "/complete/slot".to_owned(),
                json!({"id": "first", "meta": 1}),
            )
        }
        _ => panic!("no such way: {way}"),
    }
}

#[tokio::test]
async fn a_waiting_worker_gets_a_job_however_it_becomes_available() {
    let server = Server::with(&[]);
    let holder = server.by("holder");
    for way in [
        "put", "requeue", "next", "retry", "unfail", "timeout", "freed", "depends", "recur",
        "unpause", "slot",
    ] {
        let (path, data) = prepare(holder, way).await;
        let name = format!("waits for {way}");
        // A claim of a paused queue does not list the worker; the second queue does.
        let wait = format!("/get?queue={way}&queue=idle&wait=60");
        let act = async {
            server.client().wait_until_seen(&name).await;
            holder.post(&path, data).await.ok();
        };
        let (job, ()) = tokio::join!(server.by(&name).get(&wait), act);
        let expected = if way == "recur" { "recur-1" } else { way };
        assert_eq!(job.ok()["id"], expected, "{way}");
    }
}

#[tokio::test]
async fn a_blocking_claim_gets_jobs_that_become_available_with_time() {
    let server = Server::with(&[]);
    let worker = server.by("w");
    server
        .client()
        .add("due", json!({"id": "due", "meta": 1, "delay": 0.2}))
        .await;
    assert_eq!(worker.get("/get/due?wait=60").await.ok()["id"], "due");
    worker.set("lost-heartbeat", json!(0.2)).await.ok();
    server.client().add_ids("lost", &["lost"]).await;
    server.by("v").pop("lost").await;
    let job = worker.get("/get/lost?wait=60").await.ok();
    assert_eq!(
        json!([job["id"], job["worker"], job["remaining"]]),
        json!(["lost", "w", 4])
    );
    let item = json!({"id": "r", "meta": 1, "interval": 1000, "offset": 0.2});
    worker.post("/recur/again", item).await.ok();
    assert_eq!(worker.get("/get/again?wait=60").await.ok()["id"], "r-1");
}

#[tokio::test]
async fn a_blocking_claim_gets_a_delayed_job_put_while_it_waits() {
    let server = Server::with(&[]);
    let act = async {
        server.client().wait_until_seen("w").await;
        let item = json!({"id": "a", "meta": 1, "delay": 0.2});
        server.client().add("work", item).await;
    };
    let (job, ()) = tokio::join!(server.by("w").get("/get/work?wait=60"), act);
    assert_eq!(job.ok()["id"], "a");
}

#[tokio::test]
async fn all_waiting_workers_get_jobs() {
    let server = Server::with(&[]);
    let get = async |name: &str| {
        let job = server.by(name).get("/get/work?wait=60").await.ok();
        job["id"].as_str().expect("a job").to_owned()
    };
    let put = async {
        for name in ["one", "other", "third"] {
            server.client().wait_until_seen(name).await;
        }
        server.client().add_ids("work", &["a"]).await;
        // Two valid items in a request with an invalid one.
        let items = json!([{"id": "b", "meta": 1}, {"id": "bad"}, {"id": "c", "meta": 1}]);
        server.client().post("/add/work", items).await.whole();
    };
    let (one, other, third, ()) = tokio::join!(get("one"), get("other"), get("third"), put);
    let mut got = [one, other, third];
    got.sort_unstable();
    assert_eq!(got, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_worker_that_disconnects_while_waiting_claims_no_job() {
    let server = Server::with(&[]);
    let mut ghosts = Vec::new();
    for round in 0..5 {
        let mut connection = Connection::to(&server).await;
        let request =
            format!("GET /get/work{round}?wait=60&host=ghost HTTP/1.1\r\nhost: localhost\r\n\r\n");
        connection.write(request).await;
        ghosts.push(connection);
    }
    wait_until_polling(&server, ghosts.len()).await;
    drop(ghosts);
    wait_until_polling(&server, 0).await;
    for round in 0..5 {
        let queue = format!("work{round}");
        let id = format!("job{round}");
        server.client().add_ids(&queue, &[&id]).await;
        let job = server.by("w").pop(&queue).await;
        assert_eq!((&job["id"], &job["worker"]), (&json!(id), &json!("w")));
        let history = job["history"].as_array().unwrap();
        let popped = history.iter().filter(|entry| entry["what"] == "popped");
        assert_eq!(popped.count(), 1, "{job}");
    }
}

#[tokio::test]
async fn the_test_clock_wakes_waiting_claims_when_a_job_is_put() {
    let server = Server::start();
    let act = async {
        server.at(5).wait_until_seen("w").await;
        server.at(5).add_ids("work", &["a"]).await;
    };
    let (job, ()) = tokio::join!(server.by("w").at(5).get("/get/work?wait=60"), act);
    let job = job.ok();
    assert_eq!((&job["id"], &job["expires"]), (&json!("a"), &json!(65)));
}

#[tokio::test]
async fn a_stop_does_not_wait_for_blocking_claims() {
    let mut logged = Logged::with("warn", &[]);
    let server = &logged.server;
    let mut connection = Connection::to(server).await;
    let request = "GET /get/work?wait=60&host=w HTTP/1.1\r\nhost: localhost\r\n\r\n";
    connection.write(request).await;
    wait_until_polling(server, 1).await;
    logged.stop_in_time().await;
    // The waiting worker gets any response, or is disconnected.
    connection.read_to_end().await;
}
