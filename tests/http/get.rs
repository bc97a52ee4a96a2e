//! `/get` and `/peek`.

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Server, eventually};

#[tokio::test]
async fn get_without_jobs_returns_null_or_an_empty_array() {
    let server = Server::start();
    for verb in ["get", "peek"] {
        assert_eq!(
            server.client().get(&format!("/{verb}/q")).await.ok(),
            Value::Null
        );
        assert_eq!(
            server.client().get(&format!("/{verb}/q/1")).await.ok(),
            Value::Null
        );
        assert_eq!(
            server.client().get(&format!("/{verb}/q/2")).await.ok(),
            json!([])
        );
    }
}

#[tokio::test]
async fn get_claims_a_job_for_the_worker() {
    let server = Server::start();
    server
        .at(100)
        .add("work", json!({"id": "a", "meta": {"x": 1}}))
        .await;
    let job = server.by("worker-1").at(101.5).pop("work").await;
    assert_eq!(job["id"], "a");
    assert_eq!(job["queue"], "work");
    assert_eq!(job["meta"], json!({"x": 1}));
    assert_eq!(job["state"], "running");
    assert_eq!(job["worker"], "worker-1");
    assert_eq!(job["expires"], 161.5);
    assert_eq!(job["heartbeat"], 60);
    assert_eq!(job.get("cutoff"), None, "none is configured");
    assert_eq!(job["remaining"], 5, "the first attempt uses no retry");
    assert_eq!(job["history"][1]["what"], "popped");
    assert_eq!(job["history"][1]["worker"], "worker-1");
    assert_eq!(server.by("worker-2").at(102).pop("work").await, Value::Null);
    let same = server.at(102).job("a").await;
    for key in ["state", "worker", "expires", "history"] {
        assert_eq!(same[key], job[key], "{key}");
    }
}

#[tokio::test]
async fn post_claims_like_get_with_the_host_in_the_body() {
    let server = Server::start();
    server.client().add_ids("work", &["a", "b", "c", "d"]).await;
    let worker = server.by("worker-1");
    let one = worker.post_whole("/get/work", json!({})).await.ok();
    assert_eq!(
        (&one["id"], &one["worker"]),
        (&json!("a"), &json!("worker-1"))
    );
    let two = worker.post_whole("/get/work/2", json!({})).await.ok();
    assert_eq!((&two[0]["id"], &two[1]["id"]), (&json!("b"), &json!("c")));
    let one = server
        .client()
        .post_whole("/get/work/1", json!({}))
        .await
        .ok();
    assert_eq!(
        (&one["id"], &one["worker"]),
        (&json!("d"), &json!("127.0.0.1"))
    );
    for body in ["[]", "{", "17", "{\"host\": 17}"] {
        let response = server
            .send(Method::POST, "/get/work", Some(body.to_owned()))
            .await;
        response.assert_rejected(400, "bad_request");
    }
}

#[tokio::test]
async fn a_count_of_1_returns_a_job_and_more_an_array() {
    let server = Server::start();
    server.client().add_ids("work", &["a", "b"]).await;
    for verb in ["peek", "get"] {
        let one = server.client().get(&format!("/{verb}/work/1")).await.ok();
        assert_eq!(one["id"], "a", "{verb}");
    }
    for verb in ["peek", "get"] {
        let many = server.client().get(&format!("/{verb}/work/10")).await.ok();
        assert_eq!(many.as_array().map(Vec::len), Some(1), "{verb}");
        assert_eq!(many[0]["id"], "b", "{verb}");
    }
}

#[tokio::test]
async fn a_count_must_be_a_whole_number_from_1_to_10000() {
    let server = Server::start();
    server.client().add_ids("work", &["a"]).await;
    for verb in ["get", "peek"] {
        for count in [
            "0",
            "10001",
            "-1",
            "1.5",
            "1e3",
            "abc",
            "0x10",
            "%201",
            "1%20",
            "99999999999999999999",
            "NaN",
            "%D9%A1",
        ] {
            let response = server.client().get(&format!("/{verb}/work/{count}")).await;
            response.assert_rejected_field("count");
        }
    }
    let path = "/get/work/10001";
    server
        .client()
        .post_whole(path, json!({}))
        .await
        .assert_rejected_field("count");
    assert_eq!(server.client().state("a").await, "waiting");
    let most = server.client().get("/peek/work/10000").await.ok();
    assert_eq!(most[0]["id"], "a");
    let most = server.client().get("/get/work/10000").await.ok();
    assert_eq!(most[0]["id"], "a");
}

#[tokio::test]
async fn one_response_can_have_10000_jobs() {
    let server = Server::start();
    let items = vec![json!({"meta": 1}); 2501];
    for _ in 0..4 {
        server
            .client()
            .post("/add/work", items.clone().into())
            .await
            .ok();
    }
    assert_eq!(server.client().pop_ids("work", 10_000).await.len(), 10_000);
    assert_eq!(server.client().pop_ids("work", 10_000).await.len(), 4);
}

#[tokio::test]
async fn get_claims_only_from_the_named_queue() {
    let server = Server::start();
    server.client().add_ids("one", &["a"]).await;
    server.client().add_ids("two", &["b"]).await;
    assert_eq!(server.client().pop_ids("two", 10).await, ["b"]);
    assert_eq!(server.client().pop_ids("two", 10).await, [""; 0]);
    assert_eq!(server.client().pop_ids("ONE", 10).await, [""; 0]);
    assert_eq!(server.client().pop_ids("one", 10).await, ["a"]);
}

#[tokio::test]
async fn peek_changes_nothing() {
    let server = Server::start();
    server.at(0).add_ids("work", &["a", "b"]).await;
    server.by("w").at(0).pop("work").await;
    let look = async |now: f64| {
        let who = server.at(now);
        (
            who.job("a").await,
            who.job("b").await,
            who.get("/queues").await.ok(),
            who.get("/workers").await.ok(),
        )
    };
    // It does not end the expired lease, either.
    for now in [1.0, 1000.0] {
        let before = look(now).await;
        let one = server.by("ghost").at(now).get("/peek/work").await.ok();
        assert_eq!(one["id"], if now < 60.0 { "b" } else { "a" });
        server.by("ghost").at(now).get("/peek/work/10").await.ok();
        assert_eq!(look(now).await, before);
    }
}

#[tokio::test]
async fn claiming_an_expired_lease_uses_a_retry() {
    let server = Server::start();
    server.at(0).add_ids("work", &["a"]).await;
    server.by("first").at(0).pop("work").await;
    let second = server.by("second");
    assert_eq!(
        second.at(59.999).pop("work").await,
        Value::Null,
        "the lease has not expired yet"
    );
    let job = second.at(60).pop("work").await;
    assert_eq!(job["id"], "a");
    assert_eq!(job["worker"], "second");
    assert_eq!(job["expires"], 120);
    assert_eq!(job["remaining"], 4);
    let what: Vec<&str> = job["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["what"].as_str().unwrap())
        .collect();
    assert_eq!(what, ["put", "popped", "timed-out", "popped"]);
}

#[tokio::test]
async fn the_old_owner_of_an_expired_lease_is_rejected() {
    let server = Server::start();
    server.at(0).add_ids("work", &["a"]).await;
    let (old, new) = (server.by("old").at(61), server.by("new").at(61));
    old.at(0).pop("work").await;
    new.pop("work").await;
    let failure = json!({"id": "a", "group": "g", "message": "m"});
    for (path, data) in [
        ("/complete/work", json!({"id": "a", "meta": "old"})),
        (
            "/complete/work",
            json!({"id": "a", "meta": "old", "next": "other"}),
        ),
        ("/heartbeat", json!({"id": "a", "meta": "old"})),
        ("/fail", failure),
        ("/retry/work", json!({"id": "a"})),
    ] {
        let refused = old
            .post(path, data.clone())
            .await
            .assert_rejected(409, "wrong_worker");
        assert_eq!(
            (&refused["id"], &refused["worker"]),
            (&json!("a"), &json!("new")),
            "{path}"
        );
        let whole = old.post(path, json!([data])).await.whole();
        assert_eq!(whole["errors"][0]["code"], "wrong_worker", "{path}");
        assert_eq!(whole["errors"][0]["worker"], "new", "{path}");
    }
    let job = server.at(61).job("a").await;
    assert_eq!(
        (&job["state"], &job["meta"]),
        (&json!("running"), &Value::Null)
    );
    new.complete("work", "a").await;
}

#[tokio::test]
async fn an_expired_lease_without_retries_left_fails_the_job() {
    let server = Server::start();
    server
        .at(0)
        .add("work", json!({"id": "a", "meta": 1, "retries": 2}))
        .await;
    // Two retries allow three claims.
    for (now, remaining) in [(0, 2), (60, 1), (120, 0)] {
        let job = server.by("w").at(now).pop("work").await;
        assert_eq!(job["remaining"], remaining);
    }
    assert_eq!(server.by("v").at(180.5).pop("work").await, Value::Null);
    let job = server.at(181).job("a").await;
    assert_eq!(job["state"], "failed");
    assert_eq!(job["remaining"], -1);
    assert_eq!(job["worker"], Value::Null);
    assert_eq!(job["expires"], Value::Null);
    assert_eq!(job["queue"], "work");
    assert_eq!(job["failure"]["group"], "failed-retries-work");
    assert_eq!(
        job["failure"]["message"],
        "Job exhausted retries in queue \"work\""
    );
    assert_eq!(
        job["failure"]["worker"], "w",
        "the last worker that held it"
    );
    assert_eq!(job["failure"]["when"].as_f64().map(f64::floor), Some(180.0));
    let last = job["history"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["what"], &last["group"]),
        (&json!("failed"), &json!("failed-retries-work"))
    );
    assert_eq!(
        server.at(181).get("/failed").await.ok(),
        json!({"failed-retries-work": 1})
    );
}

#[tokio::test]
async fn a_delay_ends_by_the_servers_clock() {
    let server = Server::with(&[]);
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let before = before.as_secs_f64();
    server
        .client()
        .add("work", json!({"id": "a", "meta": 1, "delay": 0.2}))
        .await;
    let job = std::cell::RefCell::new(Value::Null);
    eventually("the job is due", async || {
        job.replace(server.client().pop("work").await);
        *job.borrow() != Value::Null
    })
    .await;
    let job = job.into_inner();
    assert_eq!(job["id"], "a");
    // A busy machine may ask late, so the time of the claim counts, not the time of the response.
    let claimed = job["expires"].as_f64().unwrap() - job["heartbeat"].as_f64().unwrap();
    assert!(
        claimed - before >= 0.2,
        "claimed after {}",
        claimed - before
    );
}
