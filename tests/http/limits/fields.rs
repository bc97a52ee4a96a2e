//! Limits of fields and parameters of qless.

use serde_json::{Value, json};

use crate::support::{Response, Server};

/// Checks that a value within its limit is accepted, and a value beyond it is rejected with the name of the field.
#[track_caller]
fn judge(response: Response, fits: bool, field: &str) {
    if fits {
        response.accepted();
    } else {
        response.assert_rejected_field(field);
    }
}

/// One below a limit, the limit, and one above it; and whether each is accepted.
fn around(limit: usize) -> [(usize, bool); 3] {
    [(limit - 1, true), (limit, true), (limit + 1, false)]
}

#[tokio::test]
async fn texts_have_limits() {
    let server = Server::start();
    let client = server.at(0);
    client.add("work", json!({"id": "a", "meta": 1})).await;
    for (bytes, fits) in around(4_096) {
        // The limit applies to message and data together.
        let data = json!({"x": "y".repeat(90)});
        let message = "m".repeat(bytes - data.to_string().len());
        let note = json!({"id": "a", "message": message, "data": data});
        judge(client.post("/log", note).await, fits, "message");
    }
    for (bytes, fits) in around(235) {
        let item = json!({"id": "r".repeat(bytes), "meta": 1, "interval": 60});
        judge(client.post("/recur/work", item).await, fits, "id");
    }
    for (bytes, fits) in around(270) {
        let path = format!("/failed/{}", "g".repeat(bytes));
        judge(client.get(&path).await, fits, "group");
    }
    for (bytes, fits) in around(271) {
        let option = "o".repeat(bytes);
        judge(client.set(&option, json!(1)).await, fits, "option");
    }
    for (bytes, fits) in around(4_096) {
        // As JSON, the value has quotes.
        let value = json!("v".repeat(bytes - 2));
        let response = client.set("option", value).await;
        assert_eq!(response.status, if fits { 200 } else { 400 }, "{bytes}");
    }
}

#[tokio::test]
async fn numbers_have_limits() {
    let server = Server::start();
    let client = server.at(0);
    for (number, fits) in around(2_147_483_647) {
        for (path, field) in [
            ("/add/work", "retries"),
            ("/recur/work", "retries"),
            ("/recur/work", "backlog"),
        ] {
            let mut item = json!({"id": "a", "meta": 1, "interval": 60});
            item[field] = number.into();
            judge(client.post(path, item).await, fits, field);
        }
    }
    for (number, fits) in around(4_294_967_295) {
        let path = format!("/jobs/waiting/work?offset={number}");
        judge(client.get(&path).await, fits, "offset");
    }
    for (number, fits) in around(10_000) {
        for (path, field) in [
            (format!("/get/nowhere/{number}"), "count"),
            (format!("/peek/nowhere/{number}"), "count"),
            (format!("/get?queue=nowhere&count={number}"), "count"),
            (format!("/events?limit={number}"), "limit"),
            (format!("/tags?limit={number}"), "limit"),
        ] {
            judge(client.get(&path).await, fits, field);
        }
        let data = json!({"queues": ["nowhere"], "count": number});
        judge(client.post("/get", data).await, fits, "count");
    }
}

#[tokio::test]
async fn lists_have_limits() {
    let server = Server::start();
    let client = server.at(0);
    for (count, fits) in around(100) {
        let names: Vec<String> = (0..count).map(|n| format!("q{n}")).collect();
        let query: Vec<String> = names.iter().map(|name| format!("queue={name}")).collect();
        let path = format!("/get?{}", query.join("&"));
        judge(client.get(&path).await, fits, "queue");
        let data = json!({"queues": names});
        judge(client.post("/get", data).await, fits, "queues");
    }
    for (count, fits) in around(10_000) {
        let path = format!("/jobs?{}", vec!["id=a"; count].join("&"));
        judge(client.get(&path).await, fits, "id");
        let names: Vec<Value> = vec![json!("a"); count];
        let change = json!({"id": "nobody", "on": names});
        let response = client.post("/depends", change).await;
        if fits {
            response.assert_rejected(404, "no_such_job");
        } else {
            response.assert_rejected_field("on");
        }
    }
}
