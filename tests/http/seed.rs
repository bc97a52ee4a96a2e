//! The qless HTTP document: every example works as it reads.

use serde_json::{Value, json};

use crate::support::Server;

/// Sends a body exactly as the document writes it.
async fn post(server: &Server, path: &str, body: &str) -> Value {
    let answer = server
        .send(reqwest::Method::POST, path, Some(body.to_owned()))
        .await;
    answer.ok()
}

#[tokio::test]
async fn adding_work_returns_the_ids_and_makes_up_those_that_are_missing() {
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
    let job = server.anyone().job(made_up).await;
    assert_eq!(job["meta"], "bar");
}

#[tokio::test]
async fn getting_two_returns_both_with_meta_id_and_queue() {
    let server = Server::with(&[]);
    let items = r#"{"data": [{"meta": "foo", "id": "deadbeef1"},
                             {"meta": {"name": "howdy"}, "id": "aed292fed"}]}"#;
    post(&server, "/add/work", items).await;
    let got = server.anyone().get("/get/work/2").await.ok();
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
async fn a_single_item_is_a_dictionary_and_more_are_an_array() {
    let server = Server::with(&[]);
    server.anyone().add_ids("crawl", &["a", "b", "c"]).await;
    assert!(server.anyone().get("/get/crawl").await.ok().is_object());
    assert!(server.anyone().get("/get/crawl/1").await.ok().is_object());
    assert!(server.anyone().get("/get/crawl/5").await.ok().is_array());
}

#[tokio::test]
async fn a_work_unit_says_in_whole_seconds_when_its_heartbeat_is_due() {
    let server = Server::with(&[]);
    server.anyone().add_ids("work", &["a"]).await;
    let answer = server.anyone().get("/get/work").await;
    let text = answer.results_text();
    assert!(
        text.contains(r#""heartbeat":60,"#) || text.contains(r#""heartbeat":60}"#),
        "{text}"
    );
}

#[tokio::test]
async fn a_heartbeat_renews_one_lock_and_reports_the_lost_other() {
    let server = Server::start();
    let first = server.by("worker-1");
    first
        .at(0)
        .add_ids("work", &["deadbeef1", "aed292fed"])
        .await;
    // worker-1 takes both; much later another worker takes over the first, and the second is renewed.
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
    // As it is written: whole seconds, and `false`.
    assert_eq!(
        beat.results_text().replace(char::is_whitespace, ""),
        "[60,false]"
    );
}

#[tokio::test]
async fn completing_two_returns_the_ids_that_were_completed() {
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
async fn queues_lists_what_is_enqueued_and_what_is_worked_on() {
    let server = Server::with(&[]);
    server.anyone().add_ids("work", &["a", "b", "c"]).await;
    server.anyone().pop("work").await;
    let queues = server.anyone().get("/queues").await.ok();
    assert_eq!(queues[0]["name"], "work");
    assert_eq!(queues[0]["waiting"], 2);
    assert_eq!(queues[0]["running"], 1);
}

#[tokio::test]
async fn job_tells_state_stage_and_metadata() {
    let server = Server::with(&[]);
    let id = server.anyone().add("work", json!({"meta": {"k": 1}})).await;
    let job = server.anyone().job(&id).await;
    assert_eq!(job["state"], "waiting");
    assert_eq!(job["queue"], "work");
    assert_eq!(job["meta"], json!({"k": 1}));
}

#[tokio::test]
async fn without_host_the_worker_is_the_senders_address() {
    let server = Server::with(&[]);
    server.anyone().add_ids("work", &["a"]).await;
    let job = server.anyone().pop("work").await;
    assert_eq!(job["worker"], "127.0.0.1");
    server.anyone().complete("work", "a").await;
}

#[tokio::test]
async fn the_user_interface_is_at_ui() {
    let server = Server::with(&[]);
    // Follows the redirect, if there is one.
    let url = format!("http://{}/ui/", server.address);
    let page = server.http.get(url).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let kind = page.headers()["content-type"].to_str().unwrap().to_owned();
    assert!(kind.starts_with("text/html"), "{kind}");
}
