//! SIGTERM stops the server gracefully.

use std::collections::BTreeSet;
use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::log::Logged;
use crate::support::{Server, raw};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_under_load_is_in_time_and_loses_nothing_acknowledged() {
    const CLIENTS: usize = 16;
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("jobs.db");
    let server = Arc::new(Server::on(&database, &[]));
    let mut clients = JoinSet::new();
    let (sent, mut acknowledgments) = tokio::sync::mpsc::unbounded_channel();
    for client in 0..CLIENTS {
        let (server, sent) = (Arc::clone(&server), sent.clone());
        clients.spawn(async move {
            for job in 0.. {
                let id = format!("{client}-{job}");
                let body = json!({"data": {"id": id, "meta": null}}).to_string();
                match server.try_send(Method::POST, "/add/work", Some(body)).await {
                    Ok(response) if response.status == 200 => sent.send(id).unwrap(),
                    // Rejected or disconnected, because the server is stopping.
                    Ok(response) => assert_eq!(response.status, 503, "{response:?}"),
                    Err(_) => return,
                }
            }
        });
    }
    drop(sent);
    let mut acknowledged = BTreeSet::new();
    while acknowledged.len() < 20 * CLIENTS {
        acknowledged.insert(acknowledgments.recv().await.unwrap());
    }
    server.terminate();
    clients.join_all().await;
    let mut server = Arc::into_inner(server).unwrap();
    let status = server.stopped().await;
    assert_eq!(status.code(), Some(0));
    while let Some(id) = acknowledgments.recv().await {
        acknowledged.insert(id);
    }
    let server = Server::on(&database, &[]);
    let mut found = BTreeSet::new();
    loop {
        let ids = server.client().pop_ids("work", 1000).await;
        if ids.is_empty() {
            break;
        }
        found.extend(ids);
    }
    let lost: Vec<&String> = acknowledged.difference(&found).collect();
    assert_eq!(lost, [""; 0]);
}

#[tokio::test]
async fn a_request_in_progress_is_completed() {
    let mut server = Server::with(&[]);
    let body = json!({"data": {"id": "a", "meta": null}}).to_string();
    let mut connection = raw::Connection::to(&server).await;
    let length = body.len();
    let head = format!(
        "POST /add/work HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
    );
    connection.write(head).await;
    // The server asks for the body, so it is processing the request.
    let interim = connection.read_until("\r\n\r\n").await;
    assert!(interim.starts_with("HTTP/1.1 100 "), "{interim}");
    server.terminate();
    // The server accepts no more connections, so it has received the signal.
    while TcpStream::connect(&server.address).await.is_ok() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    connection.write(body).await;
    let response = connection.read_to_end().await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert!(response.contains(r#""results":"a""#), "{response}");
    assert_eq!(server.stopped().await.code(), Some(0));
}

#[tokio::test]
async fn idle_connections_do_not_delay_a_stop() {
    let mut logged = Logged::with("warn", &[]);
    // One connection without a request, and one that is kept alive.
    let _silent = raw::Connection::to(&logged.server).await;
    let mut idle = raw::Connection::to(&logged.server).await;
    idle.write("GET /queues HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    idle.read_until("}").await;
    logged.stop_in_time().await;
}

#[tokio::test]
async fn an_endless_request_does_not_delay_a_stop() {
    let mut server = Server::with(&[]);
    let mut stuck = raw::Connection::to(&server).await;
    stuck
        .write(
            "POST /add/work HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{\"data\":",
        )
        .await;
    // A later request has been answered on another connection, so the server has read the first one, or soon will.
    server.client().get("/queues").await.ok();
    server.terminate();
    assert_eq!(server.stopped().await.code(), Some(0));
}

#[tokio::test]
async fn a_stop_ends_the_live_feed() {
    let mut server = Server::with(&[]);
    let mut feed = raw::Connection::to(&server).await;
    feed.write("GET /ui/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
        .await;
    let head = feed.read_until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("text/event-stream"), "{head}");
    server.terminate();
    // The stream ends properly, with its last chunk.
    let rest = feed.read_to_end().await;
    assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
    assert_eq!(server.stopped().await.code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_stops_the_server_at_once() {
    let mut server = Server::with(&[]);
    let mut stuck = raw::Connection::to(&server).await;
    stuck
        .write("POST /add/work HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n")
        .await;
    stuck.read_until("\r\n\r\n").await;
    server.terminate();
    while TcpStream::connect(&server.address).await.is_ok() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    server.terminate();
    // After a single signal, the server would have waited for the request and exited with 0.
    assert_ne!(server.stopped().await.code(), Some(0));
}
