//! Unknown paths and methods, and the headers of every response.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;

use super::{NO_RUN, assert_consistent, client, start};
use crate::support::relay::{new, run_path};

#[tokio::test]
async fn unknown_paths_are_404_with_the_list_of_known_ones() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a"]).await;
    for path in [
        "/",
        "/nope",
        "/queues",
        "/queues/",
        "/queues/q",
        "/queues/q/nope",
        "/queues/q/jobs/a/",
        "/queues/q/jobs/a/run-id",
        "/queues/q/jobs/a/nope",
        "/queues/q/jobs/a/nope/x",
        "/queues/jobs/",
        "/health",
        &format!("{}/x", run_path("q", "a", NO_RUN)),
    ] {
        for method in [
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::PATCH,
        ] {
            let reply = relay.send(method.clone(), path).await;
            reply.assert_rejected(404, &["POST   /v2/queues/jobs", "/run-id/{run_id}"]);
        }
    }
    assert!(relay.exists("q", "a").await);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn other_methods_are_405_and_change_nothing() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a"]).await;
    let run = run_path("q", "a", NO_RUN);
    for (path, allowed) in [
        ("/queues/jobs", "POST"),
        ("/queues/q/jobs", "GET"),
        ("/queues/q/jobs/a", "GET HEAD DELETE"),
        (&*run, "PATCH PUT DELETE"),
    ] {
        for method in [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE",
        ] {
            if allowed.split(' ').any(|one| one == method) {
                continue;
            }
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let body = json!([new("q", "b")]).to_string();
            let reply = relay.send_json(method.clone(), path, body).await;
            assert_eq!(reply.status, 405, "{reply:?}");
            assert_eq!(reply.text.is_empty(), method == Method::HEAD, "{reply:?}");
        }
    }
    assert_eq!(relay.next_ids("q", 9).await, ["a"]);
    assert_consistent(&server).await;
}

/// In the original server, HEAD claims jobs that no client receives.
#[tokio::test]
async fn head_claims_no_job() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("q", &["a", "b"]).await;
    for path in [
        "/queues/q/jobs",
        "/queues/q/jobs?num_jobs=9",
        "/queues/empty/jobs",
    ] {
        relay.send(Method::HEAD, path).await.only(405);
    }
    assert_eq!(relay.next_ids("q", 9).await, ["a", "b"]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn version_1_does_not_exist() {
    let server = start();
    let url = format!("http://{}/v1/queues/q/jobs", server.address);
    let response = server.http.get(url).send().await.unwrap();
    assert_eq!(response.status(), 404);
}

/// lmstfy has a path that deletes dead jobs of any namespace; it must not apply to Relay's paths.
#[tokio::test]
async fn the_short_path_of_lmstfy_does_not_apply() {
    let server = start();
    let relay = client(&server);
    relay.put_ids("deadletter", &["a"]).await;
    for path in ["/v2/queues/deadletter", "/v2/deadletter/deadletter"] {
        let url = format!("http://{}{path}", server.address);
        let response = server.http.delete(url).send().await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
    }
    assert_eq!(relay.next_ids("deadletter", 9).await, ["a"]);
    assert_consistent(&server).await;
}

#[tokio::test]
async fn every_response_has_a_request_id() {
    let server = start();
    let relay = client(&server);
    let mut seen = BTreeSet::new();
    let mut see = |reply: crate::support::relay::Reply| {
        let number = reply.header("x-request-id").to_owned();
        assert!(seen.insert(number), "{reply:?}");
        reply
    };
    let jobs = json!([new("q", "a")]);
    see(relay.enqueue("", &jobs).await).only(202);
    see(relay.enqueue("", &jobs).await).assert_rejected(409, &["\"a\""]);
    see(relay.enqueue_text("", "x").await).assert_rejected(400, &[]);
    see(relay.enqueue_text("", "1").await).assert_rejected(422, &[]);
    let job = see(relay.send(Method::GET, "/queues/q/jobs").await)
        .jobs()
        .remove(0);
    see(relay.send(Method::GET, "/queues/q/jobs").await).only(204);
    see(relay.heartbeat(&job).await).only(202);
    for (method, path) in [
        (Method::GET, "/queues/q/jobs/a"),
        (Method::HEAD, "/queues/q/jobs/a"),
        (Method::HEAD, "/queues/q/jobs/b"),
        (Method::DELETE, "/queues/q/jobs/b"),
        (Method::HEAD, "/queues/q/jobs"),
        (Method::GET, "/nope"),
        (Method::PUT, "/queues/jobs"),
        (Method::GET, "/queues/%ff/jobs"),
    ] {
        see(relay.send(method, path).await);
    }
    assert_consistent(&server).await;
}
