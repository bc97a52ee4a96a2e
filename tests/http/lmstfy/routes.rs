//! Routes, and the headers of every response.

use std::collections::HashSet;

use reqwest::Method;

use super::{client, start};
use crate::support::Server;
use crate::support::lmstfy::Reply;

async fn ask(server: &Server, method: Method, path: &str) -> Reply {
    let url = format!("http://{}{path}", server.address);
    let asked = format!("{method} {path}");
    Reply::of(asked, server.http.request(method, url)).await
}

const METHODS: [Method; 6] = [
    Method::GET,
    Method::PUT,
    Method::POST,
    Method::DELETE,
    Method::PATCH,
    Method::OPTIONS,
];

#[tokio::test]
async fn unknown_paths_are_not_found() {
    let server = start();
    for path in [
        "/api/ns",
        "/api/ns/q/unknown",
        "/api/ns/q/job",
        "/api/ns/q/job/x/more",
        "/api/ns/q/peek/more",
        "/api/ns/q/bulk/more",
        "/api/ns/q/deadletter/more",
        "/api/ns/q/deadletter/size/more",
        "/api/a/b/c/d/e/f",
    ] {
        for method in METHODS {
            let reply = ask(&server, method, path).await;
            reply.assert_rejected(404, "api not found");
        }
    }
}

/// Such a call may be unknown or not allowed, but must have no effect.
#[tokio::test]
async fn known_paths_reject_other_methods() {
    let server = start();
    let lmstfy = client(&server);
    let id = lmstfy.publish("q", "x").await;
    let dead = lmstfy.publish_dead("r", "y").await;
    for (path, known) in [
        ("/q", &[Method::PUT, Method::GET, Method::DELETE][..]),
        ("/q/bulk", &[Method::PUT]),
        (
            &*format!("/q/job/{id}"),
            &[Method::PUT, Method::GET, Method::DELETE],
        ),
        ("/q/peek", &[Method::GET]),
        ("/q/size", &[Method::GET]),
        ("/r/deadletter", &[Method::PUT, Method::GET, Method::DELETE]),
        ("/r/deadletter/size", &[Method::GET]),
    ] {
        for method in METHODS.iter().filter(|method| !known.contains(method)) {
            let reply = lmstfy.send(method.clone(), path, "[1]").await;
            assert!([404, 405].contains(&reply.status), "{reply:?}");
        }
    }
    assert_eq!(lmstfy.drain("q").await, [id]);
    assert_eq!(lmstfy.dead("r").await, (1, dead));
}

/// Paths below `v0` belong to another protocol.
#[tokio::test]
async fn v0_is_not_a_namespace() {
    let server = start();
    for path in [
        "/q",
        "/q/peek",
        "/q/size",
        "/q/bulk",
        "/q/job/x",
        "/q/deadletter",
        "/a,b",
        "/queue-7",
    ] {
        for method in METHODS {
            let reply = ask(&server, method, &format!("/api/v0{path}")).await;
            assert_eq!(reply.status, 404, "{reply:?}");
        }
    }
}

#[tokio::test]
async fn empty_names_are_rejected() {
    let server = start();
    for path in [
        "/api//q",
        "/api/ns//peek",
        "/api/ns//job/x",
        "/api///",
        "/api/ns//deadletter",
    ] {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let reply = ask(&server, method, path).await;
            assert!([400, 404, 405].contains(&reply.status), "{reply:?}");
            assert_ne!(reply.text, r#"{"msg":"no job available"}"#, "{reply:?}");
        }
    }
}

#[tokio::test]
async fn every_response_has_a_unique_request_id() {
    let server = start();
    let lmstfy = client(&server);
    let mut ids = HashSet::new();
    let mut statuses = HashSet::new();
    let id = lmstfy.publish("q", "x").await;
    let job = format!("/q/job/{id}");
    for _ in 0..3 {
        for (method, path, body) in [
            (Method::PUT, "/q", "x"),
            (Method::PUT, "/q/bulk", "[1]"),
            (Method::PUT, "/q/bulk", "1"),
            (Method::PUT, "/q?ttl=x", "x"),
            (Method::GET, "/q", ""),
            (Method::GET, "/q?count=2", ""),
            (Method::GET, "/q,", ""),
            (Method::GET, "/,", ""),
            (Method::GET, "/nothing", ""),
            (Method::GET, "/nothing?timeout=1", ""),
            (Method::GET, "/q/peek", ""),
            (Method::GET, "/nothing/peek", ""),
            (Method::GET, "/q/size", ""),
            (Method::GET, &*job, ""),
            (Method::DELETE, &*job, ""),
            (Method::GET, "/q/deadletter", ""),
            (Method::PUT, "/q/deadletter", ""),
            (Method::DELETE, "/q/deadletter", ""),
            (Method::GET, "/q/deadletter/size", ""),
            (Method::DELETE, "/q", ""),
            (Method::GET, "/q/unknown", ""),
            (Method::POST, "/q", ""),
            (Method::HEAD, "/q", ""),
        ] {
            let reply = lmstfy.send(method, path, body).await;
            assert!(ids.insert(reply.request_id().to_owned()), "{reply:?}");
            statuses.insert(reply.status);
        }
        let reply = lmstfy.put("/q", vec![0; 70000]).await;
        assert!(ids.insert(reply.request_id().to_owned()), "{reply:?}");
        statuses.insert(reply.status);
        for path in ["/api", "/api/v0/q"] {
            let reply = ask(&server, Method::GET, path).await;
            assert!(ids.insert(reply.request_id().to_owned()), "{reply:?}");
        }
    }
    for status in [200, 201, 204, 400, 404, 413] {
        assert!(statuses.contains(&status), "{status} was not among them");
    }
}

/// Pages of other sites must not be able to consume and read jobs.
#[tokio::test]
async fn cross_origin_requests_are_not_allowed() {
    let server = start();
    let lmstfy = client(&server);
    lmstfy.publish("q", "x").await;
    for method in [Method::GET, Method::OPTIONS] {
        let request = lmstfy.request(method.clone(), "/q");
        let request = request
            .header("origin", "http://example.com")
            .header("access-control-request-method", "GET");
        let reply = Reply::of(format!("{method} /q from another site"), request).await;
        assert_eq!(reply.header("access-control-allow-origin"), "", "{reply:?}");
    }
}
