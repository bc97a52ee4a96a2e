//! The paths of upstream's own clients, which support a single queue.

use reqwest::Method;
use serde_json::{Value, json};

use super::assert_consistent;
use crate::support::Server;

async fn call(server: &Server, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    let url = format!("http://{}/api/v0/job{path}", server.address);
    let mut request = server.http.request(method, url);
    if let Some(body) = body {
        request = request.body(body.to_string());
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (
        status,
        serde_json::from_str(&response.text().await.unwrap()).unwrap(),
    )
}

#[tokio::test]
async fn paths_of_upstream_clients_use_the_default_queue() {
    let server = Server::with(&[]);
    let post = async |path: &str, body: Value| call(&server, Method::POST, path, Some(body)).await;
    assert_eq!(
        call(&server, Method::GET, "", None).await,
        (200, json!({"jobs": []}))
    );
    let (status, job) = post(
        "/create",
        json!({"payload": {"a": 1}, "state": ["CREATED"]}),
    )
    .await;
    assert_eq!(
        (status, &job["id"], &job["state"]),
        (200, &json!(1), &json!(["CREATED"]))
    );
    // The first client sends only the payload.
    let (status, other) = post("/create", json!({"msg": "hello"})).await;
    assert_eq!(
        (status, &other["payload"], &other["state"]),
        (200, &json!({"msg": "hello"}), &Value::Null)
    );
    assert_eq!(post("/create", json!([1])).await.1["payload"], json!([1]));
    let (status, found) = post("", json!({"query": [["IS", "id", 2]], "limit": 10})).await;
    assert_eq!((status, &found["jobs"][0]["id"]), (200, &json!(2)));
    let query = json!([["IS", "json_extract(state, '$[0]')", "CREATED"]]);
    let (status, taken) = post("/poll", json!({"query": query, "state": ["TAKEN"]})).await;
    assert_eq!((status, &taken["id"]), (200, &json!(1)));
    assert_eq!(
        post("/poll", json!({"query": query, "state": 1})).await.0,
        404
    );
    let (status, moved) = post("/1/state", json!({"old": ["TAKEN"], "new": "done"})).await;
    assert_eq!((status, &moved["state"]), (200, &json!("done")));
    assert_eq!(
        post("/1/state", json!({"old": ["TAKEN"], "new": "done"}))
            .await
            .0,
        409
    );
    assert_eq!(post("/1/event", json!({"said": true})).await.0, 200);
    assert_eq!(
        call(&server, Method::GET, "/1", None).await.1["state"],
        "done"
    );
    assert_eq!(
        call(&server, Method::DELETE, "/1", None).await,
        (200, json!({}))
    );
    assert_eq!(call(&server, Method::GET, "/1", None).await.0, 404);
    assert_eq!(call(&server, Method::GET, "/x", None).await.0, 404);
    assert_eq!(call(&server, Method::PUT, "/create", None).await.0, 405);
    // It is an ordinary queue.
    let url = format!("http://{}/api/v0/queue/default/job", server.address);
    let listed: Value = serde_json::from_str(
        &server
            .http
            .get(url)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap(),
    )
    .unwrap();
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(2));
    assert_consistent(&server).await;
}
