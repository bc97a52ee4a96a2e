//! Exports of jobs: `/ui/jobs.csv` and `/ui/jobs.jsonl`.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Response, Server, eventually};

async fn export(server: &Server, address: &str) -> Response {
    server.try_send(Method::GET, address, None).await.unwrap()
}

async fn json_lines(server: &Server, address: &str) -> Vec<Value> {
    let response = export(server, address).await;
    assert_eq!(response.headers["content-type"], "application/jsonl");
    let lines = response.text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Puts jobs with these numbers in their IDs.
async fn put(server: &Server, queue: &str, numbers: std::ops::Range<usize>, id: &str) {
    let numbers: Vec<usize> = numbers.collect();
    for part in numbers.chunks(1_000) {
        let items = part
            .iter()
            .map(|n| json!({"id": format!("{id}{n}"), "meta": n}));
        let items: Vec<Value> = items.collect();
        let path = format!("/add/{queue}");
        server.client().post(&path, items.into()).await.ok();
    }
}

#[tokio::test]
async fn an_export_has_every_job_that_matches_once_and_newest_first() {
    let server = Server::with(&[]);
    put(&server, "work", 0..1_203, "a-").await;
    put(&server, "other", 0..2, "b-").await;
    let jobs = json_lines(&server, "/ui/jobs.jsonl?q=queue:work").await;
    let ids: Vec<&str> = jobs.iter().map(|job| job["id"].as_str().unwrap()).collect();
    let expected: Vec<String> = (0..1_203).rev().map(|n| format!("a-{n}")).collect();
    assert_eq!(ids, expected);
    let after = format!(
        "/ui/jobs.jsonl?q=queue:work&after={}",
        jobs[1_200]["number"]
    );
    assert_eq!(json_lines(&server, &after).await, jobs[1_201..]);
    let csv = export(&server, "/ui/jobs.csv?q=queue:work").await.text;
    assert_eq!(csv.lines().count(), 1_204);
    let none = export(&server, "/ui/jobs.csv?q=queue:missing").await.text;
    assert_eq!(none.lines().count(), 1, "{none}");
    assert_eq!(json_lines(&server, "/ui/jobs.jsonl").await.len(), 1_205);
}

#[tokio::test]
async fn an_exported_job_has_what_the_lists_show() {
    let server = Server::start();
    let item = json!({"id": "=1+1", "meta": {"to": "a, b"}, "tags": ["x", "y"], "priority": 2, "retries": 3});
    server.at(100).add("work", item).await;
    let worker = server.by("host-1");
    worker.at(110).pop("work").await;
    let failed = json!({"id": "=1+1", "group": "timeout", "message": "no \"answer\"\nat all"});
    worker.at(120).post("/fail", failed).await.ok();
    let jobs = json_lines(&server, "/ui/jobs.jsonl?q=state:failed").await;
    let expected = json!({
        "number": jobs[0]["number"],
        "protocol": "qless",
        "namespace": "",
        "queue": "work",
        "id": "=1+1",
        "class": null,
        "state": "failed",
        "state_time": "1970-01-01T00:02:00.000Z",
        "priority": 2.0,
        "attempts_left": 4,
        "attempts": 4,
        "tags": ["x", "y"],
        "worker": null,
        "failure_group": "timeout",
        "failure_message": "no \"answer\"\nat all",
        "failed_by": "host-1",
        "failed_at": "1970-01-01T00:02:00.000Z",
        "expires_at": null,
        "payload": "{\"to\":\"a, b\"}",
    });
    assert_eq!(jobs, [expected]);
    let csv = export(&server, "/ui/jobs.csv?q=state:failed").await;
    assert_eq!(
        csv.headers["content-disposition"],
        "attachment; filename=\"jobs.csv\""
    );
    let line = format!(
        "{},qless,,work,\"'=1+1\",,failed,1970-01-01T00:02:00.000Z,2,4,4,\"[\"\"x\"\",\"\"y\"\"]\",,timeout,\
         \"no \"\"answer\"\"\nat all\",host-1,1970-01-01T00:02:00.000Z,,\"{{\"\"to\"\":\"\"a, b\"\"}}\"\r\n",
        jobs[0]["number"]
    );
    let (titles, rest) = csv.text.split_once("\r\n").unwrap();
    assert_eq!(rest, line);
    assert_eq!(titles.split(',').count(), 19);
}

#[tokio::test]
async fn an_export_of_selected_jobs_has_only_those_that_exist() {
    let server = Server::with(&[]);
    put(&server, "work", 0..4, "a-").await;
    let jobs = json_lines(&server, "/ui/jobs.jsonl").await;
    let number = |index: usize| jobs[index]["number"].to_string();
    let (first, last) = (number(0), number(3));
    let address =
        format!("/ui/jobs.jsonl?q=nothing&of=selected&job={last}&job={first}&job=1&job=x");
    let found = json_lines(&server, &address).await;
    assert_eq!(found, [jobs[0].clone(), jobs[3].clone()]);
    let csv = export(&server, &format!("/ui/jobs.csv?of=selected&job={first}")).await;
    assert_eq!(csv.text.lines().count(), 2);
    let none = export(&server, "/ui/jobs.csv?of=selected").await;
    assert_eq!(none.status, 400);
    assert!(none.text.starts_with("No jobs are selected."), "{none:?}");
    let many: String = (0..1_001).map(|n| format!("&job={n}")).collect();
    let many = export(&server, &format!("/ui/jobs.csv?of=selected{many}")).await;
    assert_eq!(many.status, 400);
    assert!(many.text.contains("the limit is 1000"), "{many:?}");
}

#[tokio::test]
async fn an_invalid_search_is_explained() {
    let server = Server::with(&[]);
    let response = export(&server, "/ui/jobs.csv?q=state:asleep").await;
    assert_eq!(response.status, 400);
    assert!(
        response.text.starts_with("Invalid search at column "),
        "{response:?}"
    );
}

/// Dashboard keys of three users.
const KEYS: &str =
    "viewer:ada:secret-of-ada-0001,viewer:bob:secret-of-bob-0001,viewer:cyd:secret-of-cyd-0001";

#[tokio::test]
async fn a_user_has_two_exports_and_a_fifth_of_all_is_rejected() {
    let server = Server::with(&["--ui-key", KEYS]);
    // More than the buffers of a connection hold.
    put(&server, "work", 0..12_000, &"long".repeat(50)).await;
    let url = format!("http://{}/ui/jobs.jsonl", server.address);
    let begin = async |name: &str| {
        let request = server.http.get(&url);
        let secret = format!("secret-of-{name}-0001");
        request.basic_auth(name, Some(secret)).send().await.unwrap()
    };
    let mut running = Vec::new();
    for name in ["ada", "ada", "bob"] {
        let response = begin(name).await;
        assert_eq!(response.status(), 200, "{name}");
        running.push(response);
    }
    assert_eq!(begin("ada").await.status(), 429, "a third one of a user");
    running.push(begin("bob").await);
    assert_eq!(begin("cyd").await.status(), 503);
    running.pop();
    // The server notices that the connection is closed.
    let admitted = async || begin("cyd").await.status() != 503;
    eventually("another export is admitted", admitted).await;
}
