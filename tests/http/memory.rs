//! The memory that the bodies and responses of all requests share.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::Server;
use crate::support::raw::Connection;

/// The status and the JSON of a response.
fn parsed(response: &str) -> (u16, Value) {
    let status = response.split(' ').nth(1).expect("a status");
    let body = response.split("\r\n\r\n").nth(1).unwrap_or_default();
    (
        status.parse().expect("a status"),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

#[tokio::test]
async fn large_bodies_share_256_mib_and_small_ones_need_none() {
    const BYTES: usize = 16 << 20;
    let server = Server::start();
    let head = format!(
        "POST /add/work HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {BYTES}\r\n\r\n"
    );
    let all_but_one_byte = vec![b' '; BYTES - 1];
    let uploads = (0..40).map(async |_| {
        let mut connection = Connection::to(&server).await;
        connection.write(&head).await;
        connection.write(&all_but_one_byte).await;
        connection
    });
    let uploads = join_all(uploads).await;
    server.by("w").at(0).add_ids("work", &["small"]).await;
    let responses = uploads.into_iter().map(async |mut connection| {
        connection.write(" ").await;
        parsed(&connection.read_to_end().await)
    });
    let responses = join_all(responses).await;
    let is_busy = |(status, body): &&(u16, Value)| *status == 503 && body["code"] == "busy";
    let busy = responses.iter().filter(is_busy).count();
    let bad = responses
        .iter()
        .filter(|(status, _)| *status == 400)
        .count();
    assert_eq!(busy + bad, 40, "{responses:?}");
    assert!((8..40).contains(&busy), "{busy} of 40 were refused");
    // All of the memory is free again.
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
    // Each of 60 MiB, and another 60 MiB while it is loaded.
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
    let (_, status) = get().await;
    assert_eq!(status, 200);
}

/// A server with a job whose payload makes a page of 5 MB.
async fn with_large_page() -> Server {
    // Time enough on a slow machine: a client that is slower than the usual limits loses its memory.
    let server = Server::with(&["--trust-client-clock", "--connection-timeout", "300"]);
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
    while request_large_page(&server).await.1 != 200 {}
}

#[tokio::test]
async fn large_forms_share_256_mib() {
    const BYTES: usize = 8 << 20;
    let server = with_large_page().await;
    let head = format!(
        "POST /ui/put HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nsec-fetch-site: same-origin\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {BYTES}\r\n\r\n"
    );
    let all_but_one_byte = vec![b'x'; BYTES - 1];
    let uploads = (0..36).map(async |_| {
        let mut connection = Connection::to(&server).await;
        connection.write(&head).await;
        connection.write(&all_but_one_byte).await;
        connection
    });
    let uploads = join_all(uploads).await;
    // The server is still reading. When the forms occupy the memory, there is none for a large page.
    while request_large_page(&server).await.1 != 503 {}
    drop(uploads);
    while request_large_page(&server).await.1 != 200 {}
}
