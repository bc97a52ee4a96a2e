//! The memory that the bodies and responses of all requests share.

mod pages;

use std::ops::Range;

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;
use crate::support::metrics::metrics_when;
use crate::support::raw::Connection;
use crate::support::relay::new;

/// The status and the JSON of a response.
fn parsed(response: &str) -> (u16, Value) {
    let status = response.split(' ').nth(1).expect("a status");
    let body = response.split("\r\n\r\n").nth(1).unwrap_or_default();
    (
        status.parse().expect("a status"),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

/// Opens this many connections, and sends all but the last byte of a request of `bytes` bytes after `head` on each.
async fn upload(server: &Server, count: usize, head: &str, bytes: usize) -> Vec<Connection> {
    let head = format!(
        "{head}\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {bytes}\r\n\r\n"
    );
    let all_but_one_byte = vec![b' '; bytes - 1];
    let uploads = (0..count).map(async |_| {
        let mut connection = Connection::to(server).await;
        connection.write(&head).await;
        connection.write(&all_but_one_byte).await;
        connection
    });
    join_all(uploads).await
}

/// Waits until the server has reserved so much memory. What a client has written can still be in buffers of the system.
async fn until_reserved(server: &Server, mebibytes: Range<f64>) {
    metrics_when(server, "the memory is reserved", |metrics| {
        let bytes = metrics.value("switchyard_request_memory_bytes");
        mebibytes.contains(&(bytes.expect("a metric") / 1_048_576.0))
    })
    .await;
}

const ALL: Range<f64> = 253.0..257.0;
const NOTHING: Range<f64> = 0.0..1.0;

#[tokio::test]
async fn large_bodies_share_256_mib_and_small_ones_need_none() {
    let server = with_patience();
    let upload = async |count| upload(&server, count, "POST /add/work HTTP/1.1", 16 << 20).await;
    let complete = async |uploads: Vec<Connection>| {
        let responses = uploads.into_iter().map(async |mut connection| {
            connection.write(" ").await;
            parsed(&connection.read_to_end().await)
        });
        join_all(responses).await
    };
    let uploads = upload(16).await;
    until_reserved(&server, ALL).await;
    server.by("w").at(0).add_ids("work", &["small"]).await;
    let refused = complete(upload(24).await).await;
    assert!(
        refused
            .iter()
            .all(|(status, body)| *status == 503 && body["code"] == "busy"),
        "{refused:?}"
    );
    let read = complete(uploads).await;
    assert!(read.iter().all(|(status, _)| *status == 400), "{read:?}");
    until_reserved(&server, NOTHING).await;
    let meta = "x".repeat(15 << 20);
    let client = server.by("w").at(0);
    client
        .add("work", json!({"id": "large", "meta": meta}))
        .await;
}

#[tokio::test]
async fn large_responses_that_are_not_read_share_256_mib() {
    let server = Server::start();
    let client = server.by("w").at(0);
    let meta = "x".repeat(15 << 20);
    let mut path = "/jobs?".to_owned();
    for n in 0..4 {
        client
            .add("work", json!({"id": format!("j{n}"), "meta": meta}))
            .await;
        path += &format!("id=j{n}&");
    }
    let get = async || {
        let mut connection = Connection::to(&server).await;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
        connection.write(request).await;
        let head = connection.read_until("\r\n\r\n").await;
        (connection, parsed(&head).0)
    };
    // Each response has 60 MiB, and needs another 60 MiB while it is loaded.
    let mut unread = Vec::new();
    for _ in 0..3 {
        let (connection, status) = get().await;
        assert_eq!(status, 200);
        unread.push(connection);
    }
    let (mut refused, status) = get().await;
    assert_eq!(status, 503);
    let body: Value = serde_json::from_str(&refused.read_to_end().await).unwrap();
    assert_eq!(body["code"], "busy", "{body}");
    assert_eq!(client.job("j0").await["state"], "waiting");
    let jobq = crate::support::jobq::Jobq::new(&server);
    assert_eq!(jobq.get("/queue").await.status, 200);
    drop(unread);
    until_reserved(&server, NOTHING).await;
    let (_, status) = get().await;
    assert_eq!(status, 200);
}

/// A server with a longer connection timeout, so that it does not disconnect the slow clients of a test and release
/// their memory.
fn with_patience() -> Server {
    Server::with(&["--trust-client-clock", "--connection-timeout", "300"])
}

/// A server with a job whose payload makes a page of 5 MB.
async fn with_large_page() -> Server {
    let server = with_patience();
    // In the page, each of these characters has five bytes.
    let meta = "&".repeat(1_000_000);
    let client = server.by("w").at(0);
    client
        .add("work", json!({"id": "large", "meta": meta}))
        .await;
    server
}

/// Requests the large page, and reads only the head of the response. Returns the connection and the status.
async fn request_large_page(server: &Server) -> (Connection, u16) {
    let mut connection = Connection::to(server).await;
    let request = "GET /ui/put?like=large HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
    connection.write(request).await;
    let head = connection.read_until("\r\n\r\n").await;
    (connection, parsed(&head).0)
}

#[tokio::test]
async fn large_pages_that_are_not_read_share_256_mib() {
    const PAGES_MAX: usize = 100;
    let server = with_large_page().await;
    let mut unread = Vec::new();
    let refused = loop {
        let (connection, status) = request_large_page(&server).await;
        if status != 200 {
            break status;
        }
        unread.push(connection);
        assert!(unread.len() < PAGES_MAX, "no page was refused");
    };
    assert_eq!(refused, 503);
    assert!(unread.len() > 20, "{} pages", unread.len());
    drop(unread);
    until_reserved(&server, NOTHING).await;
    assert_eq!(request_large_page(&server).await.1, 200);
}

#[tokio::test]
async fn large_forms_share_256_mib() {
    let server = with_large_page().await;
    let head = "POST /ui/jobq/q HTTP/1.1\r\nsec-fetch-site: same-origin\r\n\
         content-type: application/x-www-form-urlencoded";
    let uploads = upload(&server, 32, head, 8 << 20).await;
    until_reserved(&server, ALL).await;
    assert_eq!(request_large_page(&server).await.1, 503);
    drop(uploads);
    until_reserved(&server, NOTHING).await;
    assert_eq!(request_large_page(&server).await.1, 200);
}

/// Short names and small jobs occupy many times their length once they are parsed.
#[tokio::test]
async fn parsed_items_share_256_mib() {
    let server = with_patience();
    let tags = vec!["a"; 1_000];
    let items = vec![json!({"id": "m", "meta": 0, "tags": tags}); 250];
    let jobs: Value = (0..25_000).map(|n| new("q", &n.to_string())).collect();
    let requests = [
        ("/add/work", json!({ "data": items }), 200),
        ("/v2/queues/jobs?mode=ignore", jobs, 202),
    ];
    let send = async |path: &str, body: &Value| {
        let response = server.try_send(Method::POST, path, Some(body.to_string()));
        response.await.unwrap().status
    };
    let head = "POST /add/work HTTP/1.1";
    let uploads = [
        upload(&server, 15, head, 16 << 20).await,
        upload(&server, 1, head, 12 << 20).await,
    ];
    until_reserved(&server, 251.0..253.0).await;
    for (path, body, _) in &requests {
        assert_eq!(send(path, body).await, 503, "{path}");
    }
    drop(uploads);
    until_reserved(&server, NOTHING).await;
    for (path, body, status) in &requests {
        assert_eq!(send(path, body).await, *status, "{path}");
    }
    until_reserved(&server, NOTHING).await;
}

/// What requests occupy in their parsed form is known only when they are parsed, so few are parsed at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_parsed_at_the_same_time_occupy_little_memory() {
    let server = with_patience();
    let tags = vec!["a"; 400];
    let items = vec![json!({"id": "m", "meta": 0, "tags": tags}); 5_000];
    let mut body = json!({ "data": items }).to_string();
    body.pop();
    let head = format!(
        "POST /add/work HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len() + 1
    );
    let uploads = (0..16).map(async |_| {
        let mut connection = Connection::to(&server).await;
        connection.write(&head).await;
        connection
    });
    let mut uploads = join_all(uploads).await;
    until_reserved(&server, 120.0..135.0).await;
    let before = server.peak_memory_mb();
    join_all(uploads.iter_mut().map(async |connection| {
        connection.write("}").await;
        connection.read_to_end().await
    }))
    .await;
    let more = server.peak_memory_mb() - before;
    assert!(more < 600.0, "{more} MB");
}

/// A claim that waits for memory has already loaded its jobs, so only a few claims may wait.
#[tokio::test]
async fn claims_of_large_jobs_that_wait_have_at_most_64_mib() {
    const CLAIMS: usize = 12;
    let server = with_patience();
    let client = server.by("w").at(0);
    // Each claim gets the job, because leases end at once.
    client.set("work-heartbeat", json!(-1)).await.ok();
    let large = json!({"id": "large", "meta": "x".repeat(15 << 20), "retries": 1_000});
    client.add("work", large).await;
    client.pop("work").await;
    let uploads = upload(&server, 16, "POST /add/work HTTP/1.1", 16 << 20).await;
    until_reserved(&server, ALL).await;
    let mut claims = Vec::new();
    let mut claimed = 0;
    while claimed < CLAIMS {
        let mut claim = Connection::to(&server).await;
        let request =
            "GET /get/work?worker=w HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
        claim.write(request).await;
        claims.push(claim);
        let before = claimed;
        while claimed == before {
            let events = client.get("/events?limit=1000&channel=log").await.ok();
            let events = events["events"].as_array().unwrap();
            claimed = events
                .iter()
                .filter(|it| it["data"]["event"] == "lock_lost")
                .count();
        }
    }
    let mut answers: FuturesUnordered<_> = claims
        .into_iter()
        .map(async |mut claim| parsed(&claim.read_to_end().await).0)
        .collect();
    // All but the four that wait are refused while the uploads occupy the memory.
    let mut statuses: Vec<_> = answers.by_ref().take(CLAIMS - 4).collect().await;
    drop(uploads);
    statuses.extend(answers.collect::<Vec<_>>().await);
    let refused = statuses.iter().filter(|status| **status == 503).count();
    // Four of them wait, and the last one may find the memory free again.
    assert!(refused >= CLAIMS - 5, "{statuses:?}");
}
