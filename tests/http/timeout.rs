//! `/timeout`: takes a job from its worker.

use serde_json::{Value, json};

use crate::support::{STATES, Server, one_in_each_state};

#[tokio::test]
async fn a_timed_out_job_has_no_worker_and_keeps_its_retries() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1, "retries": 3}))
        .await;
    // Any client can time out a job, not only its worker.
    let response = server.by("boss").at(5).post("/timeout", json!("a")).await;
    assert_eq!(response.ok(), "a");
    let job = server.at(5).job("a").await;
    for (key, value) in [
        ("state", json!("stalled")),
        ("worker", Value::Null),
        ("expires", Value::Null),
        ("queue", json!("work")),
        ("remaining", json!(3)),
        ("failure", Value::Null),
    ] {
        assert_eq!(job[key], value, "{key}");
    }
    let last = job["history"].as_array().unwrap().last().unwrap();
    assert_eq!(*last, json!({"what": "timed-out", "when": 5}));
    assert_eq!(
        server.at(5).get("/worker/w").await.ok(),
        json!({"jobs": [], "stalled": []})
    );
    let job = worker.at(6).pop("work").await;
    assert_eq!(
        json!([job["id"], job["state"], job["remaining"], job["expires"]]),
        json!(["a", "running", 3, 66])
    );
    worker.at(7).complete("work", "a").await;
    let stats = server.at(7).get("/stats/work").await.ok();
    assert_eq!(
        json!([stats["retries"], stats["failures"], stats["failed"]]),
        json!([0, 0, 0])
    );
}

#[tokio::test]
async fn a_timed_out_job_counts_as_waiting() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker.post("/timeout", json!({"id": "a"})).await.ok();
    // At 1000 s its lease would have expired.
    for now in [1, 1000] {
        let who = server.at(now);
        let queue = who.get("/queue/work").await.ok();
        for (state, count) in [
            ("waiting", 1),
            ("running", 0),
            ("stalled", 0),
            ("length", 1),
        ] {
            assert_eq!(queue[state], count, "{state} at {now}: {queue}");
        }
        for (state, jobs) in [
            ("waiting", json!(["a"])),
            ("running", json!([])),
            ("stalled", json!([])),
        ] {
            let path = format!("/jobs/{state}/work");
            assert_eq!(who.get(&path).await.ok(), jobs, "{state} at {now}");
        }
    }
    let whole = server.at(1).get("/jobs/waiting/work?full=true").await.ok();
    assert_eq!(whole[0]["state"], "stalled");
}

#[tokio::test]
async fn timed_out_jobs_are_claimed_after_expired_leases_and_before_other_jobs() {
    let server = Server::start();
    let worker = server.by("w");
    worker.at(0).add_ids("work", &["lost"]).await;
    worker.at(0).pop("work").await;
    for id in ["late", "early"] {
        let item = json!({"id": id, "meta": 1, "priority": 100});
        worker.at(50).add("work", item).await;
    }
    worker.at(50).pop_ids("work", 2).await;
    worker.at(55).post("/timeout", json!("late")).await.ok();
    worker.at(52).post("/timeout", json!("early")).await.ok();
    for (id, priority) in [("urgent", -100), ("plain", 0)] {
        let item = json!({"id": id, "meta": 1, "priority": priority});
        worker.at(40).add("work", item).await;
    }
    let order = ["lost", "early", "late", "urgent", "plain"];
    assert_eq!(worker.at(60).peek_ids("work").await, order);
    assert_eq!(
        worker.at(60).get("/jobs/waiting/work").await.ok(),
        json!(order[1..])
    );
    assert_eq!(worker.at(60).pop_ids("work", 2).await, order[..2]);
    assert_eq!(worker.at(60).pop_ids("work", 9).await, order[2..]);
}

#[tokio::test]
async fn the_old_worker_of_a_timed_out_job_is_rejected() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": "old"})).await;
    worker.post("/timeout", json!("a")).await.ok();
    for (path, data) in [
        ("/heartbeat", json!({"id": "a", "meta": "new"})),
        ("/complete/work", json!({"id": "a", "meta": "new"})),
        ("/fail", json!({"id": "a", "group": "g", "message": "m"})),
        ("/retry/work", json!({"id": "a"})),
        ("/timeout", json!("a")),
    ] {
        let refused = worker
            .post(path, data)
            .await
            .assert_rejected(409, "not_running");
        assert_eq!(
            (&refused["id"], &refused["state"]),
            (&json!("a"), &json!("stalled")),
            "{path}"
        );
    }
    assert_eq!(worker.job("a").await["meta"], "old");
}

#[tokio::test]
async fn only_running_jobs_can_be_timed_out() {
    let server = Server::start();
    one_in_each_state(&server).await;
    let client = server.at(100);
    let idle = |state: &str| !["running", "stalled"].contains(&state);
    for state in STATES.into_iter().filter(|state| idle(state)) {
        let refused = client.post("/timeout", json!(state)).await;
        let refused = refused.assert_rejected(409, "not_running");
        assert_eq!(
            (&refused["id"], &refused["state"]),
            (&json!(state), &json!(state))
        );
        assert_eq!(client.state(state).await, state);
    }
    // A job with an expired lease is running until another claim; timing it out uses no retry.
    let data = json!(["stalled", "waiting", "nobody", {}, "running"]);
    let whole = client.post("/timeout", data).await.whole();
    let results = json!(["stalled", false, false, false, "running"]);
    assert_eq!(whole["results"], results);
    assert_eq!(whole["errors"][0], Value::Null);
    assert_eq!(whole["errors"][1]["code"], "not_running");
    assert_eq!(whole["errors"][2]["code"], "no_such_job");
    assert_eq!(whole["errors"][3]["field"], "id");
    assert_eq!(client.job("stalled").await["remaining"], 5);
    client
        .post("/timeout", json!("nobody"))
        .await
        .assert_rejected(404, "no_such_job");
    for item in [json!({"id": 1}), json!(""), json!({})] {
        client
            .post("/timeout", item)
            .await
            .assert_rejected_field("id");
    }
}

#[tokio::test]
async fn a_timed_out_job_can_be_put_again_and_canceled() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    for id in ["moved", "gone"] {
        worker.add_and_pop(json!({"id": id, "meta": 1})).await;
    }
    worker.post("/timeout", json!(["moved", "gone"])).await.ok();
    assert_eq!(worker.post("/cancel", json!("gone")).await.ok(), "gone");
    worker.add_ids("other", &["first"]).await;
    let later = server.by("w").at(1);
    later.add("other", json!({"id": "moved", "meta": 2})).await;
    assert_eq!(later.state("moved").await, "waiting");
    assert_eq!(
        later.peek_ids("other").await,
        ["first", "moved"],
        "a job like any other"
    );
    assert_eq!(worker.get("/queue/work").await.ok()["waiting"], 0);
    assert_eq!(worker.pop("work").await, Value::Null);
}
