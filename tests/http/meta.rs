//! `meta` is returned byte for byte.

use reqwest::Method;

use crate::support::{Server, raw};

const TEXTS: &[&str] = &[
    "null",
    "true",
    "\"foo\"",
    "\"\"",
    "17",
    "[]",
    "{}",
    "[{},[],[[]],{\"a\":{}}]",
    // The order of keys, and duplicate keys.
    r#"{"z":1,"a":2,"m":3}"#,
    r#"{"a":1,"a":2}"#,
    r#"{"":"","id":"x","meta":"y","queue":null}"#,
    // The notation of numbers.
    "[1,1.0,1.00,1e0,1E+0,-0,-0.0,0.1,1e400,-1e-400]",
    "12345678901234567890123",
    "-98765432109876543210.123456789012345678901234567890",
    // Whitespace within the value.
    "{ \"a\" :\t[ 1 ,\n 2 ] ,\r\n \"b\" : { } }",
    // Escapes in strings.
    r#""\u0000""#,
    r#""a\u0000b\u001f""#,
    r#""\ud800""#,
    r#"["\udc00\ud800","\uDBFF\uDFFF"]"#,
    r#""\u00e9é\/\/\"\\\b\f\n\r\t""#,
    r#"{"\u0061":1,"\ud800":2}"#,
    "\"日本 🦀 \u{2028}\u{7f}\u{feff}\"",
    "\"<script>alert(1)</script> ' -- %s {} $1 ?\"",
];

fn add(id: &str, meta: &str) -> String {
    format!("{{\"now\":0,\"host\":\"w\",\"data\":{{\"id\":\"{id}\",\"meta\":{meta}}}}}")
}

#[tokio::test]
async fn meta_is_returned_unchanged() {
    let server = Server::start();
    for (index, meta) in TEXTS.iter().enumerate() {
        let id = format!("job{index}");
        let response = server
            .send(Method::POST, "/add/work", Some(add(&id, meta)))
            .await;
        assert_eq!(response.ok(), *id, "{meta}");
        for path in [
            format!("/job/{id}?now=0"),
            "/peek/work?now=0".to_owned(),
            "/get/work?now=0&host=w".to_owned(),
        ] {
            let response = server.send(Method::GET, &path, None).await;
            assert_eq!(response.meta_text(), *meta, "{path}");
        }
        let list = server
            .client()
            .get("/jobs/running/work?now=0&full=true&limit=1")
            .await;
        assert_eq!(only(list.results_text()), *meta);
        let done = server
            .send(Method::POST, "/complete/work", Some(add(&id, "null")))
            .await;
        assert_eq!(done.ok(), *id);
    }
}

/// The `meta` of the only job of a list.
fn only(list: &str) -> &str {
    crate::support::meta_text(
        list.strip_prefix('[')
            .and_then(|list| list.strip_suffix(']'))
            .unwrap(),
    )
}

#[tokio::test]
async fn meta_in_an_array_is_returned_unchanged() {
    let server = Server::start();
    let items: Vec<String> = TEXTS
        .iter()
        .map(|meta| format!("{{\"meta\" : {meta} , \"klass\":\"K\"}}"))
        .collect();
    let body = format!("{{\"data\": [{}]}}", items.join(" ,\n"));
    let ids = server
        .send(Method::POST, "/add/work", Some(body))
        .await
        .ok();
    for (id, meta) in ids.as_array().unwrap().iter().zip(TEXTS) {
        let job = server
            .client()
            .get(&format!("/job/{}", id.as_str().unwrap()))
            .await;
        assert_eq!(job.meta_text(), *meta);
    }
}

#[tokio::test]
async fn meta_of_heartbeats_completions_and_failures_is_returned_unchanged() {
    let server = Server::start();
    for meta in TEXTS {
        server
            .send(Method::POST, "/add/work", Some(add("a", "1")))
            .await
            .ok();
        let look = async || server.client().get("/job/a").await;
        server
            .send(Method::GET, "/get/work?host=w&now=0", None)
            .await
            .accepted();
        let beat = server
            .send(Method::POST, "/heartbeat", Some(add("a", meta)))
            .await;
        assert_eq!(beat.ok(), 60);
        assert_eq!(look().await.meta_text(), *meta, "heartbeat");
        let body = format!(
            "{{\"host\":\"w\",\"now\":0,\"data\":{{\"id\":\"a\",\"meta\":{meta},\"next\":\"work\"}}}}"
        );
        server
            .send(Method::POST, "/complete/work", Some(body))
            .await
            .ok();
        assert_eq!(look().await.meta_text(), *meta, "complete");
        server
            .send(Method::GET, "/get/work?host=w&now=0", None)
            .await
            .accepted();
        let body = format!(
            "{{\"host\":\"w\",\"now\":0,\"data\":{{\"id\":\"a\",\"group\":\"g\",\"message\":\"m\",\"meta\":{meta}}}}}"
        );
        server.send(Method::POST, "/fail", Some(body)).await.ok();
        assert_eq!(look().await.meta_text(), *meta, "fail");
    }
}

#[tokio::test]
async fn deeply_nested_meta_is_returned_unchanged() {
    let server = Server::start();
    for depth in [100, 1000, 10_000, 100_000] {
        let meta = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let (status, response) =
            raw::request(&server, "POST", "/add/deep", add("deep", &meta).as_bytes()).await;
        assert_eq!(status, 200, "{depth}: {response}");
        let job = server.client().get("/job/deep").await;
        assert_eq!(job.meta_text(), meta, "{depth}");
    }
    // Elsewhere it is rejected, and the server continues.
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for body in [
        format!("{{\"data\":{deep}}}"),
        format!("{{\"data\":{{\"id\":{deep},\"meta\":1}}}}"),
        format!("{{\"host\":{deep},\"data\":{{\"meta\":1}}}}"),
        deep.clone(),
    ] {
        let (status, response) = raw::request(&server, "POST", "/add/deep", body.as_bytes()).await;
        assert!([200, 400].contains(&status), "{status}: {response}");
    }
    server.client().get("/job/deep").await.accepted();
}
