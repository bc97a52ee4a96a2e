//! The qless HTTP documentation: every example works as printed.

use serde_json::{Value, json};

use crate::support::Server;

/// Posts a body exactly as printed in the documentation.
async fn post(server: &Server, path: &str, body: &str) -> Value {
    let response = server
        .send(reqwest::Method::POST, path, Some(body.to_owned()))
        .await;
    response.ok()
}

#[tokio::test]
async fn adding_jobs_returns_their_ids_and_generates_missing_ones() {
    let server = Server::with(&[]);
    let added = post(
        &server,
        "/add/work",
        r#"{
            "host": "worker-1",
            "data": [{
                "meta": "foo",
                "id"  : "deedee"
            }, {
                "meta": "bar"
            }]
        }"#,
    )
    .await;
    assert_eq!(added[0], "deedee");
    let made_up = added[1].as_str().unwrap();
    assert!(!made_up.is_empty());
    let job = server.client().job(made_up).await;
    assert_eq!(job["meta"], "bar");
}

#[tokio::test]
async fn getting_two_jobs_returns_meta_id_and_queue_of_both() {
    let server = Server::with(&[]);
    let items = r#"{"data": [{"meta": "foo", "id": "deadbeef1"},
                             {"meta": {"name": "howdy"}, "id": "aed292fed"}]}"#;
    post(&server, "/add/work", items).await;
    let got = server.client().get("/get/work/2").await.ok();
    let jobs = got.as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    let expected = [
        json!({"meta": "foo", "id": "deadbeef1", "queue": "work"}),
        json!({"meta": {"name": "howdy"}, "id": "aed292fed", "queue": "work"}),
    ];
    for (job, expected) in jobs.iter().zip(expected) {
        for key in ["meta", "id", "queue"] {
            assert_eq!(job[key], expected[key], "{key}");
        }
    }
}

#[tokio::test]
async fn one_job_is_an_object_and_several_are_an_array() {
    let server = Server::with(&[]);
    server.client().add_ids("crawl", &["a", "b", "c"]).await;
    assert!(server.client().get("/get/crawl").await.ok().is_object());
    assert!(server.client().get("/get/crawl/1").await.ok().is_object());
    assert!(server.client().get("/get/crawl/5").await.ok().is_array());
}

#[tokio::test]
async fn a_job_has_the_time_of_its_heartbeat_in_whole_seconds() {
    let server = Server::with(&[]);
    server.client().add_ids("work", &["a"]).await;
    let response = server.client().get("/get/work").await;
    let text = response.results_text();
    assert!(
        text.contains(r#""heartbeat":60,"#) || text.contains(r#""heartbeat":60}"#),
        "{text}"
    );
}

#[tokio::test]
async fn a_heartbeat_renews_a_valid_lease_and_reports_an_expired_one() {
    let server = Server::start();
    let first = server.by("worker-1");
    first
        .at(0)
        .add_ids("work", &["deadbeef1", "aed292fed"])
        .await;
    // worker-1 claims both; much later another worker claims the first again, and the second is renewed.
    assert_eq!(
        first.at(0).pop_ids("work", 2).await,
        ["deadbeef1", "aed292fed"]
    );
    let taken_over = server.by("worker-2").at(100).pop("work").await;
    assert_eq!(taken_over["id"], "deadbeef1");
    let beat = server
        .send(
            reqwest::Method::POST,
            "/heartbeat/work",
            Some(
                r#"{
                    "host": "worker-1",
                    "now": 100,
                    "data": [
                        "aed292fed",
                        "deadbeef1"
                    ]
                }"#
                .to_owned(),
            ),
        )
        .await;
    // As printed: whole seconds, and `false`.
    assert_eq!(
        beat.results_text().replace(char::is_whitespace, ""),
        "[60,false]"
    );
}

#[tokio::test]
async fn completing_two_jobs_returns_the_completed_ids() {
    let server = Server::with(&[]);
    let worker = server.by("worker-1");
    worker.add_ids("work", &["deadbeef1", "aed292fed"]).await;
    worker.pop_ids("work", 2).await;
    let completed = post(
        &server,
        "/complete/work",
        r#"{
            "host": "worker-1",
            "data": [{
                "meta": {"done": true},
                "id"  : "deadbeef1"
            }, {
                "meta": null,
                "id"  : "aed292fed"
            }]
        }"#,
    )
    .await;
    assert_eq!(completed, json!(["deadbeef1", "aed292fed"]));
}

#[tokio::test]
async fn queues_lists_waiting_and_running_jobs() {
    let server = Server::with(&[]);
    server.client().add_ids("work", &["a", "b", "c"]).await;
    server.client().pop("work").await;
    let queues = server.client().get("/queues").await.ok();
    assert_eq!(queues[0]["name"], "work");
    assert_eq!(queues[0]["waiting"], 2);
    assert_eq!(queues[0]["running"], 1);
}

#[tokio::test]
async fn job_returns_state_queue_and_metadata() {
    let server = Server::with(&[]);
    let id = server.client().add("work", json!({"meta": {"k": 1}})).await;
    let job = server.client().job(&id).await;
    assert_eq!(job["state"], "waiting");
    assert_eq!(job["queue"], "work");
    assert_eq!(job["meta"], json!({"k": 1}));
}

#[tokio::test]
async fn without_host_the_worker_is_the_client_address() {
    let server = Server::with(&[]);
    server.client().add_ids("work", &["a"]).await;
    let job = server.client().pop("work").await;
    assert_eq!(job["worker"], "127.0.0.1");
    server.client().complete("work", "a").await;
}

#[tokio::test]
async fn the_dashboard_is_at_ui() {
    let server = Server::with(&[]);
    // Follows the redirect, if any.
    let url = format!("http://{}/ui/", server.address);
    let page = server.http.get(url).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let kind = page.headers()["content-type"].to_str().unwrap().to_owned();
    assert!(kind.starts_with("text/html"), "{kind}");
}
