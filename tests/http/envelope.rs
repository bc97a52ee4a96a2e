//! What all requests and responses have in common. `Response::checked` checks in all tests that a response is JSON with
//! `results`, a time and `no-store`.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Server, raw};

#[tokio::test]
async fn an_unknown_path_is_no_such_endpoint() {
    let server = Server::start();
    for path in [
        "/nope",
        "/get/",
        "/get//5",
        "/get/q/",
        "/get/q/1/2",
        "//get/q",
        "/peek//1",
        "/job/",
        "/jobs//q",
        "/jobs/running/",
        "/queue/",
        "/queues/",
        "/worker/",
        "/failed/",
        "/job/a/b",
        "/tag/",
        "/tags/",
        "/recurring/",
        "/events/",
    ] {
        let (status, body) = raw::request(&server, "GET", path, b"").await;
        let body: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{path}: {body}"));
        assert_eq!(
            (status, &body["code"]),
            (404, &json!("no_such_endpoint")),
            "{path}"
        );
        assert_eq!(body["results"], Value::Null, "{path}");
    }
    for path in [
        "/add",
        "/add/",
        "/complete/",
        "/retry/",
        "/unfail/",
        "/fail/",
        "/requeue",
        "/requeue/",
        "/pause",
        "/unpause/",
        "/recur",
        "/recur/",
    ] {
        let response = server
            .client()
            .post(path, json!({"meta": 1, "id": "a"}))
            .await;
        response.assert_rejected(404, "no_such_endpoint");
    }
}

#[tokio::test]
async fn a_wrong_method_is_rejected_with_the_allowed_methods() {
    let server = Server::start();
    for (method, path, allowed) in [
        (Method::GET, "/add/q", "POST"),
        (Method::GET, "/complete/q", "POST"),
        (Method::GET, "/cancel", "POST"),
        (Method::GET, "/flush", "POST"),
        (Method::PUT, "/unfail/q", "POST"),
        (Method::POST, "/queues", "GET"),
        (Method::POST, "/peek/q", "GET"),
        (Method::DELETE, "/get/q", "GET"),
        (Method::DELETE, "/get/q", "POST"),
        (Method::DELETE, "/job/x", "GET"),
        (Method::PUT, "/failed", "GET"),
        (Method::PUT, "/get", "POST"),
        (Method::GET, "/requeue/q", "POST"),
        (Method::GET, "/depends", "POST"),
        (Method::GET, "/tag", "POST"),
        (Method::POST, "/tag/t", "GET"),
        (Method::POST, "/tags", "GET"),
        (Method::GET, "/track", "POST"),
        (Method::GET, "/untrack", "POST"),
        (Method::POST, "/tracked", "GET"),
        (Method::GET, "/timeout", "POST"),
        (Method::GET, "/log", "POST"),
        (Method::GET, "/pause/q", "POST"),
        (Method::GET, "/unpause/q", "POST"),
        (Method::POST, "/queue/q", "DELETE"),
        (Method::POST, "/worker/w", "DELETE"),
        (Method::GET, "/recur/q", "POST"),
        (Method::PUT, "/recurring/r", "GET"),
        (Method::PUT, "/recurring/r", "DELETE"),
        (Method::POST, "/events", "GET"),
    ] {
        let response = server.send(method.clone(), path, None).await;
        let allow = response
            .headers
            .get("allow")
            .map(|allow| allow.to_str().unwrap().to_owned());
        response.assert_rejected(405, "method_not_allowed");
        let allow = allow.unwrap_or_else(|| panic!("{method} {path}: no Allow"));
        assert!(
            allow.split(',').any(|method| method.trim() == allowed),
            "{method} {path}: {allow}"
        );
    }
}

#[tokio::test]
async fn a_body_must_be_a_json_object() {
    let server = Server::start();
    for body in [
        "",
        " ",
        "{",
        "null",
        "[]",
        "17",
        "\"data\"",
        "[{\"data\": {\"meta\": 1}}]",
        "{\"data\": {\"meta\": 1}} trailing",
        "\u{feff}{\"data\": {\"meta\": 1}}",
        "{'data': {'meta': 1}}",
        "{\"data\": {\"meta\": 1,}}",
        "{\"data\": {\"meta\": 01}}",
        "{\"data\": {\"meta\": NaN}}",
        "{\"data\": {\"meta\": \"\n\"}}",
        "data=1",
    ] {
        let response = server
            .send(Method::POST, "/add/q", Some(body.to_owned()))
            .await;
        response.assert_rejected(400, "bad_request");
    }
    assert_eq!(
        server.client().pop("q").await,
        Value::Null,
        "nothing was added"
    );
}

#[tokio::test]
async fn a_truncated_body_is_rejected() {
    let server = Server::start();
    let body = r#"{"host":"w","data":[{"id":"日","meta":{"a":[1,"\u00e9"]}}],"now":1.5}"#;
    for end in 0..body.len() {
        let (status, response) =
            raw::request(&server, "POST", "/add/q", &body.as_bytes()[..end]).await;
        assert_eq!(status, 400, "{end}: {response}");
    }
    let (status, _) = raw::request(&server, "POST", "/add/q", body.as_bytes()).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn invalid_utf_8_is_rejected() {
    let server = Server::start();
    for body in [
        &b"{\"data\": {\"meta\": \"\xff\"}}"[..],
        &b"{\"data\": {\"meta\": 1, \"id\": \"\xc3\"}}"[..],
        &b"{\"host\": \"\xed\xa0\x80\", \"data\": {\"meta\": 1}}"[..],
    ] {
        let (status, response) = raw::request(&server, "POST", "/add/q", body).await;
        assert_eq!(status, 400, "{response}");
        assert!(response.contains("\"bad_request\""), "{response}");
    }
    for path in [
        "/job/%FF",
        "/get/%C3",
        "/get/q?host=%FF",
        "/get/q?host=%EF%BF%BD%FF",
    ] {
        let (status, response) = raw::request(&server, "GET", path, b"").await;
        assert_eq!(status, 400, "{path}: {response}");
        assert!(response.contains("\"bad_request\""), "{path}: {response}");
    }
    // A U+FFFD that the client sends is a valid character.
    let worker = server.by("\u{fffd}").pop("q").await;
    assert_eq!(worker, Value::Null);
    let workers = server.client().get("/workers").await.ok();
    assert_eq!(workers[0]["name"], "\u{fffd}");
}

/// Paths of commands that take one item or an array.
const ITEM_PATHS: [&str; 15] = [
    "/add/q",
    "/heartbeat",
    "/complete/q",
    "/fail",
    "/retry/q",
    "/cancel",
    "/requeue/q",
    "/depends",
    "/tag",
    "/untag",
    "/track",
    "/untrack",
    "/timeout",
    "/log",
    "/recur/q",
];

#[tokio::test]
async fn missing_data_is_reported() {
    let server = Server::start();
    let others = ["/heartbeat/q", "/fail/q", "/unfail/q", "/get"];
    for path in ITEM_PATHS.iter().copied().chain(others) {
        let response = server.client().post_whole(path, json!({})).await;
        response.assert_rejected_field("data");
        for data in [json!(null), json!(17), json!(true)] {
            let response = server.client().post(path, data).await;
            response.assert_rejected(400, "bad_request");
        }
    }
}

#[tokio::test]
async fn an_invalid_host_is_rejected() {
    let server = Server::start();
    let long = "h".repeat(256);
    for host in [
        json!(17),
        json!(["a"]),
        json!({}),
        json!(""),
        json!("a\nb"),
        json!(long),
    ] {
        let body = json!({"host": host, "data": {"meta": 1}});
        server
            .client()
            .post_whole("/add/q", body)
            .await
            .assert_rejected_field("host");
    }
    for host in ["%00", "a%0Ab", &"h".repeat(256)] {
        let response = server.client().get(&format!("/get/q?host={host}")).await;
        response.assert_rejected_field("host");
    }
}

#[tokio::test]
async fn unknown_members_are_ignored() {
    let server = Server::start();
    let body = json!({"data": {"meta": 1, "id": "a", "colour": "red"}, "load": {"cpu": 1}});
    let added = server.client().post_whole("/add/q", body).await;
    assert_eq!(added.ok(), "a");
    let job = server.client().get("/get/q?colour=red").await.ok();
    assert_eq!(job["id"], "a");
    assert_eq!(job.get("colour"), None);
}

#[tokio::test]
async fn an_item_can_be_posted_as_it_was_returned() {
    let server = Server::start();
    let worker = server.by("w");
    let item = json!({"id": "a", "meta": {"x": [1]}, "priority": 2.5, "tags": ["t"], "retries": 3});
    let job = worker.add_and_pop(item).await;
    let completed = worker.post("/complete/work", job.clone()).await;
    assert_eq!(completed.ok(), "a");
    let again = worker.post("/add/work", job.clone()).await;
    assert_eq!(again.ok(), "a");
    let as_array = worker.post("/add/work", json!([job, job])).await;
    assert_eq!(as_array.ok(), json!(["a", "a"]));
    let job = worker.pop("work").await;
    assert_eq!(job["meta"], json!({"x": [1]}));
    assert_eq!(job["priority"], 2.5);
    assert_eq!(job["tags"], json!(["t"]));
    assert_eq!(job["retries"], 3);
}

#[tokio::test]
async fn an_empty_array_gives_an_empty_array() {
    let server = Server::start();
    for path in ITEM_PATHS {
        let whole = server.client().post(path, json!([])).await.whole();
        assert_eq!(whole["results"], json!([]), "{path}");
        assert_eq!(whole.get("errors"), None, "{path}");
    }
}

#[tokio::test]
async fn an_error_is_a_sentence_that_names_the_job() {
    let server = Server::start();
    let refused = server
        .client()
        .get("/job/deadbeef")
        .await
        .assert_rejected(404, "no_such_job");
    assert_eq!(refused["id"], "deadbeef");
    let sentence = refused["error"].as_str().unwrap();
    assert!(sentence.contains("deadbeef"), "{sentence}");
}

#[tokio::test]
async fn head_and_options_claim_no_job() {
    let server = Server::start();
    server.client().add_ids("q", &["a"]).await;
    let before = server.client().get("/queues").await.ok();
    for method in [Method::HEAD, Method::OPTIONS] {
        for path in [
            "/get/q",
            "/get/q/10",
            "/get/q?host=ghost",
            "/peek/q",
            "/peek/q/10",
        ] {
            // Any response is accepted.
            let response = server.try_send(method.clone(), path, None).await;
            assert!(response.is_ok(), "{method} {path}");
        }
    }
    assert_eq!(server.client().state("a").await, "waiting");
    assert_eq!(server.client().get("/queues").await.ok(), before);
    assert_eq!(server.client().get("/workers").await.ok(), json!([]));
}

/// In a message of serde, each of these characters would have six.
#[tokio::test]
async fn an_error_does_not_repeat_a_long_text_of_the_wrong_type() {
    let server = Server::start();
    server.client().add_ids("q", &["a"]).await;
    let jobq = crate::support::jobq::Jobq::new(&server);
    jobq.create("q").await;
    let query = "/api/v0/queue/q/query_jobs";
    let text = format!("\"{}\"", "\u{7f}".repeat(100_000));
    let in_data = |name: &str| format!(r#"{{"data":{{"{name}":{text}}}}}"#);
    for (path, body) in [
        ("/add/q", text.clone()),
        ("/add/q", format!(r#"{{"data":[{text}]}}"#)),
        (
            "/add/q",
            format!(r#"{{"data":{{"id":"b","meta":1,"priority":{text}}}}}"#),
        ),
        ("/get", in_data("queues")),
        ("/unfail/q", in_data("count")),
        (query, format!(r#"{{"query":[],"limit":{text}}}"#)),
        (query, text.clone()),
        (
            "/add/q",
            format!(r#"{{"data":{{"id":"b","meta":1}},"now":{text}}}"#),
        ),
    ] {
        let (status, answer) = raw::request(&server, "POST", path, body.as_bytes()).await;
        assert!(status < 500, "{path}: {status}");
        assert!(answer.len() < 1_000, "{path}: {} bytes", answer.len());
    }
}
