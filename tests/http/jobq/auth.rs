//! `--jobq-token`.

use reqwest::Method;
use serde_json::json;

use super::client;
use crate::support::Server;
use crate::support::api_client::wrong_authorizations;
use crate::support::jobq::Jobq;
use crate::support::keys::{ADMIN, QLESS, RELAY};

const TOKEN: &str = "the-token-of-jobq";

/// Every endpoint, and an unknown path: method, path and body.
const ENDPOINTS: [(&str, &str, &str); 13] = [
    ("GET", "/queue", ""),
    ("HEAD", "/queue", ""),
    ("POST", "/queue", r#"{"name":"new"}"#),
    ("DELETE", "/queue/q", ""),
    ("GET", "/queue/q/job", ""),
    ("POST", "/queue/q/job", r#"{"payload":1}"#),
    ("POST", "/queue/q/query_jobs", "{}"),
    ("POST", "/queue/q/poll_job", r#"{"query":[],"state":1}"#),
    ("GET", "/queue/q/job/1", ""),
    ("DELETE", "/queue/q/job/1", ""),
    ("POST", "/queue/q/job/1/state", r#"{"old":null,"new":1}"#),
    ("POST", "/queue/q/job/1/event", "1"),
    ("GET", "/nope", ""),
];

/// Checks that all endpoints reject this client.
async fn assert_rejected(jobq: &Jobq, shown: &str) {
    for (method, path, body) in ENDPOINTS {
        let asked = format!("{method} {path} by {shown:?}");
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = jobq.request(method, path).body(body);
        if !shown.is_empty() {
            request = request.header("authorization", shown);
        }
        let reply = jobq.ask(&asked, request).await;
        assert_eq!(reply.status, 401, "{reply:?}");
        let challenge = r#"Bearer realm="Switchyard""#;
        assert_eq!(reply.header("www-authenticate"), challenge);
    }
}

#[tokio::test]
async fn the_token_protects_all_of_jobq_and_nothing_else() {
    let options = [
        "--jobq-token",
        TOKEN,
        "--admin-token",
        ADMIN,
        "--qless-token",
        QLESS,
        "--relay-token",
        RELAY,
    ];
    let server = Server::with(&options);
    let jobq = client(&server).with_token(TOKEN);
    jobq.create("q").await;
    let job = jobq.put("q", &json!(1)).await;
    let missing = client(&server);
    let of_others = [QLESS, RELAY].map(|token| format!("Bearer {token}"));
    for shown in wrong_authorizations(TOKEN).iter().chain(&of_others) {
        assert_rejected(&missing, shown).await;
    }
    let path = format!("/queue?token={TOKEN}");
    missing.get(&path).await.assert_rejected(401, &[]);
    assert_eq!(jobq.all("q").await, [job]);
    for (number, token) in [TOKEN, ADMIN].into_iter().enumerate() {
        let jobq = client(&server).with_token(token);
        assert_eq!(jobq.queues().await.len(), 1);
        let polled = jobq.poll("q", &json!([]), &json!(number)).await;
        assert_eq!(polled.map(|job| job.id), Some(1));
        jobq.event("q", 1, &json!(1)).await.job();
        jobq.put("q", &json!(1)).await;
        jobq.get("/nope").await.assert_rejected(404, &[]);
    }
    // The token is valid for Jobq only.
    for path in ["/queues", "/ui", "/token/ns", "/v2/queues/q/jobs"] {
        let url = format!("http://{}{path}", server.address);
        let request = server.http.get(url).bearer_auth(TOKEN);
        assert_eq!(request.send().await.unwrap().status(), 401, "{path}");
    }
}

#[tokio::test]
async fn without_a_token_all_requests_are_accepted() {
    for options in [&[][..], &["--qless-token", QLESS, "--admin-token", ADMIN]] {
        let server = Server::with(options);
        let jobq = client(&server);
        jobq.create("q").await;
        assert_eq!(jobq.put("q", &json!(1)).await.id, 1);
    }
}
