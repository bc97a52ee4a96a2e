//! Names of namespaces and queues.

use reqwest::Method;

use super::start;
use crate::support::lmstfy::Lmstfy;
use crate::support::{Server, escape};

/// All calls on one queue, and their statuses if the queue is empty.
const CALLS: [(Method, &str, &str, u16); 14] = [
    (Method::PUT, "", "x", 201),
    (Method::PUT, "/bulk", "[1]", 201),
    (Method::PUT, "/job/x", "x", 201),
    (Method::GET, "/peek", "", 200),
    (Method::GET, "/size", "", 200),
    (Method::GET, "/job/x", "", 404),
    (Method::DELETE, "/job/x", "", 204),
    (Method::GET, "/deadletter", "", 200),
    (Method::GET, "/deadletter/size", "", 200),
    (Method::PUT, "/deadletter", "", 200),
    (Method::DELETE, "/deadletter", "", 204),
    (Method::GET, "", "", 200),
    (Method::DELETE, "", "", 204),
    (Method::GET, "?count=5", "", 404),
];

/// Checks that every call on this queue succeeds, or that every call is rejected.
async fn every_call(lmstfy: &Lmstfy, queue: &str, good: bool) {
    for (method, path, body, status) in CALLS {
        let reply = lmstfy.send(method, &format!("/{queue}{path}"), body).await;
        match good {
            true => assert_eq!(reply.status, status, "{reply:?}"),
            false => reply.bad(),
        }
    }
}

#[tokio::test]
async fn names_have_letters_digits_dashes_and_underscores() {
    let server = start();
    let ns = Lmstfy::new(&server, "ns");
    for good in ["a", "Z", "0", "-", "a_b-C9_", "q-", "1234"] {
        every_call(&ns, good, true).await;
        every_call(&Lmstfy::new(&server, good), "q", true).await;
    }
    for bad in [
        "a.b", "a b", "a/b", "a%", "a+b", "é", "日本", "a:b", "a;b", "a\0", "a\n", "\"", "'", "~",
        "a@b", "{q}", "*",
    ] {
        let bad = escape(bad);
        every_call(&ns, &bad, false).await;
        every_call(&Lmstfy::new(&server, &bad), "q", false).await;
    }
}

#[tokio::test]
async fn namespaces_can_start_with_an_underscore_and_queues_cannot() {
    let server = start();
    every_call(&Lmstfy::new(&server, "_ns"), "q", true).await;
    every_call(&Lmstfy::new(&server, "_"), "q", true).await;
    let ns = Lmstfy::new(&server, "ns");
    for (method, path, body, _) in CALLS {
        // Consuming from a queue that cannot exist may be accepted or rejected.
        if method == Method::GET && (path.is_empty() || path.starts_with('?')) {
            continue;
        }
        ns.send(method, &format!("/_q{path}"), body).await.bad();
    }
}

#[tokio::test]
async fn names_have_at_most_255_characters() {
    let server = start();
    let ns = Lmstfy::new(&server, "ns");
    for (length, good) in [(254, true), (255, true), (256, false), (1000, false)] {
        let name = "n".repeat(length);
        every_call(&ns, &name, good).await;
        every_call(&Lmstfy::new(&server, &name), "q", good).await;
    }
    let most = "q".repeat(255);
    ns.publish(&most, "x").await;
    assert_eq!(ns.take(&format!("p,{most}")).await.queue, most);
    let reply = ns.get(&format!("/p,{most}q")).await;
    reply.bad();
}

/// Only consumers can name several queues.
#[tokio::test]
async fn commas_are_accepted_by_consumers_only() {
    let server = start();
    let ns = Lmstfy::new(&server, "ns");
    for (method, path, body, _) in CALLS {
        if method == Method::GET && (path.is_empty() || path.starts_with('?')) {
            continue;
        }
        ns.send(method, &format!("/a,b{path}"), body).await.bad();
    }
}

/// The words of the API are valid names.
#[tokio::test]
async fn queues_can_have_the_words_of_the_api_as_names() {
    let server = start();
    for name in [
        "peek",
        "size",
        "bulk",
        "job",
        "deadletter",
        "queue",
        "queues",
        "api",
        "token",
        "v0",
        "v2",
        "ns",
        "get",
        "add",
    ] {
        every_call(&Lmstfy::new(&server, "ns"), name, true).await;
        if name != "v0" {
            every_call(&Lmstfy::new(&server, name), name, true).await;
        }
    }
}

/// If several things are invalid, the error names the name.
#[tokio::test]
async fn names_are_checked_first() {
    let server = start();
    let ns = Lmstfy::new(&server, "ns");
    let reply = ns.put("/a.b?ttl=x", vec![b'x'; 70000]).await;
    reply.bad();
    let text = reply.text.as_str();
    assert!(!text.contains("ttl"), "{text}");
    let reply = ns.put("/q?ttl=x", vec![b'x'; 70000]).await;
    reply.assert_rejected(400, "invalid ttl");
}

/// Databases do not find texts with NUL, and no job has such an ID.
#[tokio::test]
async fn an_id_with_nul_is_not_found() {
    let server = Server::with(&["--no-auth"]);
    for (method, path, status) in [
        ("GET", "/api/shop/orders/job/a%00b", 404),
        ("DELETE", "/api/shop/orders/job/a%00b", 204),
        ("GET", "/job/a%00b", 400),
        ("GET", "/jobs?id=a%00b", 400),
        ("GET", "/api/v0/job/a%00b", 404),
    ] {
        let url = format!("http://{}{path}", server.address);
        let method = method.parse().unwrap();
        let response = server.http.request(method, url).send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
    }
}
