//! Paths, methods, and the headers of every response.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use super::{assert_consistent, client, start, start_with_queue};
use crate::support::jobq::{Reply, What, ids, plain};

/// Every endpoint below a queue: method, path, and a valid body.
const BELOW_QUEUE: [(&str, &str, &str); 9] = [
    ("GET", "/job", ""),
    ("POST", "/job", r#"{"payload":1}"#),
    ("POST", "/query_jobs", r#"{"query":[]}"#),
    ("POST", "/poll_job", r#"{"query":[],"state":1}"#),
    ("GET", "/job/1", ""),
    ("DELETE", "/job/1", ""),
    ("POST", "/job/1/state", r#"{"old":null,"new":1}"#),
    ("POST", "/job/1/event", "1"),
    ("DELETE", "", ""),
];

fn method(name: &str) -> Method {
    Method::from_bytes(name.as_bytes()).expect("a method")
}

/// All calls of the documentation, in order.
#[tokio::test]
async fn a_job_can_be_created_changed_and_deleted() {
    let server = start();
    let jobq = client(&server);
    assert_eq!(jobq.queues().await, []);
    let queue = jobq.create("hosts").await;
    assert_eq!(jobq.queues().await, [queue]);
    let msg = json!({"msg": "hello, world"});
    let created = json!(["CREATED"]);
    let job = jobq.put_in("hosts", &msg, &created).await;
    let other = jobq.put("hosts", &json!(2)).await;
    assert_eq!((job.id, other.id), (1, 2));
    let query = json!([["IS", "json_extract(state, '$[0]')", "CREATED"]]);
    let path = "/queue/hosts/query_jobs";
    let found = jobq.post(path, &json!({"query": query})).await.jobs();
    assert_eq!(found, std::slice::from_ref(&job));
    let query = json!([["IS", "j.state", null]]);
    let assigned = json!(["ASSIGNED", {"node": 1}]);
    let polled = jobq.poll("hosts", &query, &assigned).await;
    assert_eq!(polled.expect("a job").id, 2);
    assert_eq!(jobq.poll("hosts", &query, &assigned).await, None);
    let finished = json!(["FINISHED"]);
    let done = jobq.advance("hosts", 2, &assigned, &finished).await.job();
    assert_eq!(done.state, plain(&finished));
    let logged = jobq.event("hosts", 2, &json!({"note": "ok"})).await.job();
    let expected = [
        What::Created,
        What::Advanced("null".to_owned(), plain(&assigned)),
        What::Advanced(plain(&assigned), plain(&finished)),
        What::User(plain(&json!({"note": "ok"}))),
    ];
    assert_eq!(logged.log(), expected);
    assert_eq!(jobq.existing_job("hosts", 2).await, logged);
    assert_eq!(jobq.all("hosts").await, [job, logged]);
    jobq.delete("hosts", 1).await;
    assert_eq!(jobq.job("hosts", 1).await, None);
    assert_eq!(ids(&jobq.all("hosts").await), [2]);
    jobq.delete_queue("hosts").await;
    assert_eq!(jobq.queues().await, []);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn unknown_paths_are_404_with_any_method() {
    let (server, jobq) = start_with_queue().await;
    let job = jobq.put("q", &json!(1)).await;
    for path in [
        "/nope",
        "/job/1/nope",
        "/job/1/2/3",
        "/job/poll/1",
        "/jobs",
        "/queues",
        "/queue/q/nope",
        "/queue/q/jobs",
        "/queue/q/query_jobs/1",
        "/queue/q/poll_job/1",
        "/queue/q/job/1/nope",
        "/queue/q/job/1/state/1",
        "/queue/q/job/1/event/1",
        "/queue/q/job/1/2/3/4/5",
        "/queue/q/deadletter",
        "/q/peek",
        "/q/job/1",
        "/%ff",
    ] {
        for name in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PURGE"] {
            let request = jobq.request(method(name), path).body("[1]");
            let reply = jobq.ask(&format!("{name} {path}"), request).await;
            reply.assert_rejected(404, &["api not found"]);
            let whole: Value = serde_json::from_str(&reply.text).unwrap();
            assert_eq!(whole, json!({"error": "api not found"}), "{reply:?}");
        }
    }
    for path in ["/queue/", "/queue//job", "/queue/q/job/", "/"] {
        for name in ["GET", "PUT", "PATCH"] {
            let reply = jobq.send(method(name), path).await;
            assert!([404, 405].contains(&reply.status), "{reply:?}");
        }
    }
    assert_eq!(jobq.all("q").await, [job]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn other_methods_are_405_and_change_nothing() {
    let (server, jobq) = start_with_queue().await;
    let job = jobq.put("q", &json!(1)).await;
    for (path, allowed) in [
        ("/queue", "GET HEAD POST"),
        ("/queue/q", "DELETE"),
        ("/queue/q/job", "GET HEAD POST"),
        ("/queue/q/query_jobs", "POST"),
        ("/queue/q/poll_job", "POST"),
        ("/queue/q/job/1", "GET HEAD DELETE"),
        ("/queue/q/job/1/state", "POST"),
        ("/queue/q/job/1/event", "POST"),
        // Whether the queue exists makes no difference.
        ("/queue/nope", "DELETE"),
        ("/queue/q/job/2/state", "POST"),
    ] {
        for name in [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE",
        ] {
            if allowed.split(' ').any(|one| one == name) {
                continue;
            }
            let body = r#"{"query":[],"state":9,"old":null,"new":9,"payload":9,"name":"n"}"#;
            let request = jobq.request(method(name), path).body(body);
            let reply = jobq.ask(&format!("{name} {path}"), request).await;
            assert_eq!(reply.status, 405, "{reply:?}");
        }
    }
    assert_eq!(jobq.all("q").await, [job]);
    assert_eq!(jobq.queues().await.len(), 1);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn head_has_the_status_of_get() {
    let (server, jobq) = start_with_queue().await;
    let job = jobq.put("q", &json!(1)).await;
    for (path, status) in [
        ("/queue", 200),
        ("/queue/q/job", 200),
        ("/queue/q/job/1", 200),
        ("/queue/q/job/2", 404),
        ("/queue/nope/job", 404),
    ] {
        let reply = jobq.send(Method::HEAD, path).await;
        assert_eq!((reply.status, &*reply.text), (status, ""), "{reply:?}");
    }
    assert_eq!(jobq.all("q").await, [job]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn every_endpoint_is_404_for_an_unknown_queue() {
    let (server, jobq) = start_with_queue().await;
    let job = jobq.put("q", &json!(1)).await;
    let gone = jobq.create("gone").await.id.to_string();
    jobq.delete_queue("gone").await;
    for queue in [
        "nope",
        "Q",
        "q%20",
        "%20q",
        "0",
        "-1",
        "999999",
        "1e0",
        "1.0",
        "gone",
        &gone,
        "%00",
        "99999999999999999999",
        "9223372036854775808",
        "q%00",
        "null",
        "*",
        "%25",
        "_",
    ] {
        for (name, path, body) in BELOW_QUEUE {
            let path = format!("/queue/{queue}{path}");
            let request = jobq.request(method(name), &path).body(body);
            let reply = jobq.ask(&format!("{name} {path}"), request).await;
            assert_eq!(reply.status, 404, "{reply:?}");
        }
    }
    assert_eq!(jobq.all("q").await, [job]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn every_response_has_a_request_id() {
    let (server, jobq) = start_with_queue().await;
    let mut seen = BTreeSet::new();
    let mut see = |reply: Reply| {
        let number = reply.header("x-request-id").to_owned();
        assert!(seen.insert(number), "{reply:?}");
        reply
    };
    for queue in ["q", "nope"] {
        for (name, path, body) in BELOW_QUEUE {
            for body in [body, "nonsense"] {
                let path = format!("/queue/{queue}{path}");
                let request = jobq.request(method(name), &path).body(body.to_owned());
                see(jobq.ask(&format!("{name} {path}"), request).await);
            }
        }
    }
    for (name, path) in [
        ("GET", "/queue"),
        ("HEAD", "/queue"),
        ("PUT", "/queue"),
        ("POST", "/queue"),
        ("GET", "/nope"),
    ] {
        see(jobq.send(method(name), path).await);
    }
    assert_consistent(&server).await;
}

/// Pages of other sites must not be able to read responses.
#[tokio::test]
async fn cross_origin_requests_are_not_allowed() {
    let (_server, jobq) = start_with_queue().await;
    for name in ["GET", "OPTIONS"] {
        let request = jobq.request(method(name), "/queue");
        let request = request
            .header("origin", "http://example.com")
            .header("access-control-request-method", "GET");
        let asked = format!("{name} /queue from another site");
        let reply = jobq.ask(&asked, request).await;
        assert_eq!(reply.header("access-control-allow-origin"), "", "{reply:?}");
    }
}

/// A segment that is not UTF-8 is neither a name nor a number.
#[tokio::test]
async fn paths_must_be_utf_8() {
    let (server, jobq) = start_with_queue().await;
    let job = jobq.put("q", &json!(1)).await;
    for path in ["/queue/%ff/job", "/queue/q/job/%ff", "/queue/q%c3/job/1"] {
        let reply = jobq.get(path).await;
        assert!([400, 404].contains(&reply.status), "{reply:?}");
    }
    assert_eq!(jobq.all("q").await, [job]);
    assert_consistent(&server).await;
}
