//! `/job` and `/jobs/…`.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn an_unknown_job_is_not_found() {
    let server = Server::start();
    let refused = server
        .client()
        .get("/job/nope")
        .await
        .assert_rejected(404, "no_such_job");
    assert_eq!(refused["id"], "nope");
}

#[tokio::test]
async fn a_job_with_an_expired_lease_is_stalled_and_keeps_its_worker() {
    let server = Server::start();
    server
        .by("w")
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1}))
        .await;
    let job = server.at(59).job("a").await;
    assert_eq!(
        (&job["state"], &job["worker"]),
        (&json!("running"), &json!("w"))
    );
    // A lease has expired at exactly its expiry time.
    let job = server.at(60).job("a").await;
    assert_eq!(
        (&job["state"], &job["worker"]),
        (&json!("stalled"), &json!("w"))
    );
    assert_eq!(
        server.at(60).get("/jobs/stalled/work").await.ok(),
        json!(["a"])
    );
    assert_eq!(
        server.at(60).get("/jobs/running/work").await.ok(),
        json!([])
    );
    assert_eq!(
        server.at(59).get("/jobs/stalled/work").await.ok(),
        json!([])
    );
    assert_eq!(
        server.at(59).get("/jobs/running/work").await.ok(),
        json!(["a"])
    );
    let whole = server.at(60).get("/jobs/stalled/work?full=true").await.ok();
    assert_eq!(whole[0]["state"], "stalled");
    let queue = server.at(60).get("/queue/work").await.ok();
    assert_eq!(
        (&queue["running"], &queue["stalled"]),
        (&json!(0), &json!(1))
    );
}

#[tokio::test]
async fn each_state_has_a_list_in_its_order() {
    let server = Server::start();
    let worker = server.by("w");
    let at = |now: f64| server.at(now);
    worker
        .at(-10)
        .add_ids("work", &["s2", "s1", "r1", "r2"])
        .await;
    worker.at(-4).pop("work").await;
    worker.at(-2).pop("work").await;
    worker.at(3).pop_ids("work", 2).await;
    for (id, delay) in [("d9", 9), ("d7", 7), ("d8", 8)] {
        at(50.0)
            .add("work", json!({"id": id, "meta": 1, "delay": delay}))
            .await;
    }
    for (now, id) in [(52.0, "p2"), (51.0, "p1"), (53.0, "p3")] {
        at(now)
            .add("work", json!({"id": id, "meta": 1, "depends": ["r1"]}))
            .await;
    }
    // At this time, the leases of -4 and -2 have expired, and those of 3 have not; a heartbeat moves r1 behind r2.
    worker.at(55).post("/heartbeat", json!("r1")).await.ok();
    let list = async |state: &str| at(58.5).get(&format!("/jobs/{state}/work")).await.ok();
    assert_eq!(list("running").await, json!(["r2", "r1"]));
    assert_eq!(list("stalled").await, json!(["s2", "s1"]));
    assert_eq!(list("scheduled").await, json!(["d9"]));
    assert_eq!(list("waiting").await, json!(["d7", "d8"]));
    assert_eq!(list("depends").await, json!(["p1", "p2", "p3"]));
    assert_eq!(list("recurring").await, json!([]));
    let other = at(58.5).get("/jobs/running/other").await.ok();
    assert_eq!(other, json!([]));
}

#[tokio::test]
async fn complete_jobs_are_listed_newest_first() {
    let server = Server::start();
    let worker = server.by("w");
    worker.at(0).add_ids("work", &["a", "b"]).await;
    worker.at(0).add_ids("other", &["c"]).await;
    worker.at(0).pop_ids("work", 2).await;
    worker.at(0).pop("other").await;
    worker.at(2).complete("work", "b").await;
    worker.at(1).complete("work", "a").await;
    worker.at(3).complete("other", "c").await;
    assert_eq!(
        server.at(3).get("/jobs/complete").await.ok(),
        json!(["c", "b", "a"])
    );
    assert_eq!(
        server
            .at(3)
            .get("/jobs/complete?offset=1&limit=1")
            .await
            .ok(),
        json!(["b"])
    );
    let whole = server
        .at(3)
        .get("/jobs/complete?full=true&limit=1")
        .await
        .ok();
    assert_eq!(whole[0]["id"], "c");
    assert_eq!(
        (&whole[0]["queue"], &whole[0]["state"]),
        (&Value::Null, &json!("complete"))
    );
}

#[tokio::test]
async fn lists_have_pages() {
    let server = Server::start();
    let ids: Vec<String> = (0..30).map(|index| format!("j{index:02}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    server.at(0).add_ids("work", &ids).await;
    let page = async |query: &str| {
        server
            .at(0)
            .get(&format!("/jobs/waiting/work{query}"))
            .await
            .ok()
    };
    assert_eq!(
        page("").await,
        json!(ids[..25]),
        "25 unless a limit is given"
    );
    assert_eq!(page("?offset=20").await, json!(ids[20..]));
    assert_eq!(page("?offset=1&limit=2").await, json!(ids[1..3]));
    assert_eq!(page("?limit=100").await, json!(ids));
    assert_eq!(page("?offset=30").await, json!([]));
    assert_eq!(page("?limit=0").await, json!([]));
    assert_eq!(page("?full=false&limit=1").await, json!(["j00"]));
    assert_eq!(
        page("?full=true&limit=1").await[0],
        server.at(0).job("j00").await
    );
}

#[tokio::test]
async fn invalid_pages_are_rejected() {
    let server = Server::start();
    for path in ["/jobs/waiting/work", "/jobs/complete"] {
        for (query, field) in [
            ("offset=x", "offset"),
            ("offset=-1", "offset"),
            ("offset=1.5", "offset"),
            ("offset=99999999999999999999", "offset"),
            ("limit=x", "limit"),
            ("limit=-1", "limit"),
            ("limit=", "limit"),
            ("full=maybe", "full"),
        ] {
            server
                .client()
                .get(&format!("{path}?{query}"))
                .await
                .assert_rejected_field(field);
        }
    }
}

#[tokio::test]
async fn an_unknown_state_is_rejected() {
    let server = Server::start();
    for state in ["nonsense", "RUNNING", "failed%20", "'"] {
        let response = server.client().get(&format!("/jobs/{state}/work")).await;
        assert!([400, 404].contains(&response.status), "{response:?}");
    }
}

#[tokio::test]
async fn long_histories_keep_their_first_entry() {
    let server = Server::start();
    for now in 0..120 {
        server
            .at(now)
            .add("work", json!({"id": "a", "meta": now}))
            .await;
    }
    let history = server.at(120).job("a").await["history"].take();
    let times: Vec<i64> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["when"].as_i64().unwrap())
        .collect();
    let newest: Vec<i64> = (21..120).collect();
    assert_eq!(times[0], 0);
    assert_eq!(
        times[1..],
        newest,
        "a hundred events: the first, and the newest"
    );
}
