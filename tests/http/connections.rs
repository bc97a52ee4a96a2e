//! Limits on connections: how many are open, and how long each may keep the server waiting.

use std::process::Command;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::support::raw::Connection;
use crate::support::{Server, Stream, eventually};

/// Sets all connection timeouts to 3 s. Even on a busy machine, a test sends its next request within this time.
const IMPATIENT: [&str; 2] = ["--connection-timeout", "3"];

/// The time between two bytes of a slow client.
const BYTE_INTERVAL: Duration = Duration::from_millis(50);

/// A guard against a server that does not enforce a limit.
const ATTEMPTS: usize = 400;

/// Sends `bytes` one by one, repeatedly, until the server closes the connection.
async fn send_slowly(connection: &mut Connection, bytes: &str) {
    for byte in bytes.bytes().cycle() {
        if connection.try_write([byte]).await.is_err() {
            return;
        }
        sleep(BYTE_INTERVAL).await;
    }
}

async fn opened(server: &Server, count: usize) -> Vec<Connection> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(Connection::to(server).await);
    }
    all
}

/// Makes the connection busy with an event stream.
async fn busy(mut connection: Connection) -> Connection {
    let head = "GET /events HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n";
    connection.write(head).await;
    let head = connection.read_until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    connection
}

/// This many connections of one client, each with a response in progress.
async fn all_busy(server: &Server, count: usize) -> Vec<Connection> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(busy(Connection::to(server).await).await);
    }
    connections
}

#[tokio::test]
async fn a_connection_without_a_complete_header_is_closed() {
    let server = Server::with(&IMPATIENT);
    let mut silent = Connection::to(&server).await;
    let mut half = Connection::to(&server).await;
    half.write("GET /queues HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        .await;
    let mut slow = Connection::to(&server).await;
    slow.write("GET /queues HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        .await;
    send_slowly(&mut slow, "x-slow: 1\r\n").await;
    assert_eq!(silent.read_to_end().await, "");
    assert_eq!(half.read_to_end().await, "");
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let server = Server::with(&IMPATIENT);
    let mut idle = Connection::to(&server).await;
    for _ in 0..2 {
        idle.write("GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            .await;
        let response = idle.read_until("ok\n").await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    }
    let mut slow = Connection::to(&server).await;
    slow.write("GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        .await;
    slow.read_until("ok\n").await;
    let (rest, ()) = tokio::join!(idle.read_to_end(), send_slowly(&mut slow, "GET"));
    assert_eq!(rest, "");
}

#[tokio::test]
async fn a_body_must_arrive_in_time_on_every_route() {
    let token = "the-token-of-the-admin";
    let options = [&IMPATIENT[..], &["--admin-token", token, "--no-auth"]].concat();
    let server = &Server::with(&options);
    let mut requests = Vec::new();
    for (path, status) in [
        ("POST /ui/login", 400),
        ("POST /ui/put", 400),
        ("POST /ui/fn/retry", 400),
        ("POST /add/work", 400),
        ("PUT /api/ns/q", 400),
        ("POST /v2/queues/jobs", 400),
        ("POST /api/v0/queue", 400),
        ("POST /token/ns", 400),
    ] {
        for framing in ["content-length: 4096", "transfer-encoding: chunked"] {
            let head = format!(
                "{path} HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: http://127.0.0.1\r\n\
                 authorization: Bearer {token}\r\ncontent-type: application/x-www-form-urlencoded\r\n{framing}\r\n\r\n"
            );
            requests.push(async move {
                let mut connection = Connection::to(server).await;
                connection.write(head).await;
                connection.write("5\r\n").await;
                let response = connection.read_to_end().await;
                assert!(
                    response.starts_with(&format!("HTTP/1.1 {status} ")),
                    "{path} {framing}: {response}"
                );
            });
        }
    }
    futures::future::join_all(requests).await;
    let mut slow = Connection::to(server).await;
    slow.write("POST /ui/login HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: http://127.0.0.1\r\ncontent-length: 60000\r\n\r\n")
        .await;
    send_slowly(&mut slow, "x").await;
}

/// These timeouts do not apply while the client waits for the server.
#[tokio::test]
async fn polls_and_event_streams_outlast_all_connection_timeouts() {
    let server = Server::with(&IMPATIENT);
    let mut events = Stream::open(&server, "", None).await;
    let none = server.client().get("/get/work?wait=4").await.ok();
    assert_eq!(none, json!(null));
    server.client().post("/track", json!("a")).await;
    server
        .client()
        .add("work", json!({"id": "a", "meta": 1}))
        .await;
    server.client().post("/track", json!("a")).await.ok();
    assert_eq!(events.jobs(1).await, ["a"]);
}

/// If a client does not read a long response, its connection is closed, which frees its slot.
#[tokio::test]
async fn a_client_must_read_its_response() {
    // On a busy machine, a request of 1 MB takes longer than these timeouts.
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.db");
    let server = Server::on(&path, &[]);
    let meta = "x".repeat(1 << 20);
    for _ in 0..24 {
        server.client().add("work", json!({"meta": meta})).await;
    }
    drop(server);
    let options = [&IMPATIENT[..], &["--max-connections", "1"]].concat();
    let server = Server::on(&path, &options);
    let mut stalled = Connection::to(&server).await;
    stalled
        .write("GET /jobs/waiting/work?full=true HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        .await;
    stalled.read_until("HTTP/1.1 200 ").await;
    eventually("the slot is free", async || {
        let response = server.try_send(Method::GET, "/health", None).await;
        response.is_ok_and(|response| response.status == 200)
    })
    .await;
}

#[tokio::test]
async fn at_the_limit_an_idle_connection_is_closed_for_a_new_one() {
    let server = Server::with(&[
        "--max-connections",
        "8",
        "--max-connections-per-address",
        "8",
    ]);
    let mut streams = all_busy(&server, 3).await;
    let mut silent = opened(&server, 40).await;
    server.client().get("/queues").await.ok();
    for connection in silent.iter_mut().take(35) {
        assert_eq!(connection.read_to_end().await, "");
    }
    // A connection with a request in progress is kept.
    server.client().post("/track", json!("a")).await;
    server
        .client()
        .add("work", json!({"id": "a", "meta": 1}))
        .await;
    server.client().post("/track", json!("a")).await.ok();
    for stream in &mut streams {
        stream.read_until("\n\n").await;
    }
}

#[tokio::test]
async fn at_the_limit_a_new_connection_is_rejected_if_all_are_busy() {
    let server = Server::with(&[
        "--max-connections",
        "4",
        "--max-connections-per-address",
        "4",
    ]);
    let mut streams = all_busy(&server, 4).await;
    let refused = Connection::to(&server).await.read_to_end().await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("retry-after: 1\r\n"), "{refused}");
    drop(streams.pop());
    // The server detects the closed connection with a delay.
    while server.try_send(Method::GET, "/health", None).await.is_err() {
        sleep(BYTE_INTERVAL).await;
    }
}

#[tokio::test]
async fn one_address_has_at_most_half_of_the_connections() {
    let server = Server::with(&["--max-connections", "8"]);
    let other = busy(Connection::from_address(&server, [127, 0, 0, 2]).await).await;
    let _streams = all_busy(&server, 4).await;
    let refused = Connection::to(&server).await.read_to_end().await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    let third = busy(Connection::from_address(&server, [127, 0, 0, 3]).await).await;
    drop((other, third));
}

/// A trusted proxy serves many clients.
#[tokio::test]
async fn a_trusted_proxy_can_use_all_connections() {
    let server = Server::with(&["--max-connections", "8", "--trusted-proxy", "127.0.0.0/8"]);
    let _streams = all_busy(&server, 7).await;
    server.client().get("/queues").await.ok();
}

/// A shell command that limits the open files of the server.
fn with_files(files: u32, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

#[tokio::test]
async fn running_out_of_file_descriptors_does_not_block_the_server() {
    let folder = TempDir::new().unwrap();
    let database = crate::support::database::address(&folder.path().join("jobs.db"));
    let command = with_files(256, &Server::command(&database, &[]));
    let server = Server::run(command);
    let mut sockets = Vec::new();
    for _ in 0..600 {
        sockets.push(TcpStream::connect(&server.address).await.unwrap());
    }
    server.client().get("/queues").await.ok();
    server.client().add("work", json!({"meta": 1})).await;
}

#[tokio::test]
async fn one_machine_can_have_a_thousand_connections() {
    let server = Server::with(&[]);
    let mut all = Vec::new();
    for _ in 0..1_000 {
        // Sends the header at once, because opening the other connections can take longer than the header timeout.
        let mut connection = Connection::to(&server).await;
        connection
            .write("GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            .await;
        all.push(connection);
    }
    for connection in &mut all {
        let response = connection.read_until("ok\n").await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    }
}

#[tokio::test]
async fn a_header_has_up_to_128_kib() {
    let server = Server::with(&[]);
    let (begin, end) = ("GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n", "\r\n\r\n");
    for (length, status) in [(131_071, 200), (131_072, 200), (131_073, 431)] {
        let mut connection = Connection::to(&server).await;
        let mut head = begin.to_owned();
        for n in 0..3 {
            head.push_str(&format!("x-{n}: {}\r\n", "v".repeat(40_000)));
        }
        head.push_str("x-rest: ");
        head.push_str(&"v".repeat(length - head.len() - end.len()));
        head.push_str(end);
        assert_eq!(head.len(), length);
        connection.write(head).await;
        let line = connection.read_until("\r\n").await;
        assert!(line.starts_with(&format!("HTTP/1.1 {status} ")), "{line}");
    }
}

/// They are no part of the body, so its limits do not apply.
#[tokio::test]
async fn the_lines_of_chunks_without_data_have_256_kib() {
    let server = Server::with(&["--no-auth"]);
    let mut connection = Connection::to(&server).await;
    let head = "PUT /api/ns/q HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n1";
    connection.write(head).await;
    let spaces = " ".repeat(64 << 10);
    let mut written = 0;
    while connection.try_write(&spaces).await.is_ok() {
        written += spaces.len();
        // What the buffers of the system can hold, and more.
        assert!(written < 64 << 20, "the connection is not closed");
    }
}

/// They are kept until the body ends.
#[tokio::test]
async fn the_trailers_of_a_body_have_less_than_16_kib() {
    let server = Server::with(&["--no-auth"]);
    let head =
        "PUT /api/ns/q HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n";
    for (bytes, is_read) in [(16_000, true), (17_000, false)] {
        let mut connection = Connection::to(&server).await;
        let trailers = format!("x: {}\r\n\r\n", "v".repeat(bytes));
        connection.write(format!("{head}{trailers}")).await;
        let line = connection.read_until("\r\n").await;
        let is_published = line.starts_with("HTTP/1.1 201 ");
        assert_eq!(is_published, is_read, "{bytes}: {line}");
    }
}

#[tokio::test]
async fn a_header_has_up_to_100_lines() {
    let server = Server::with(&[]);
    for (lines, status) in [(99, 200), (100, 200), (101, 431)] {
        let mut connection = Connection::to(&server).await;
        let more = (1..lines).map(|n| format!("x-{n}: v\r\n"));
        let more: String = more.collect();
        let head = format!("GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n{more}\r\n");
        connection.write(head).await;
        let line = connection.read_until("\r\n").await;
        assert!(
            line.starts_with(&format!("HTTP/1.1 {status} ")),
            "{lines} lines: {line}"
        );
    }
}

#[tokio::test]
async fn incomplete_headers_share_64_mib() {
    let server = Server::with(&["--max-connections", "4000"]);
    let line = format!("x-long: {}\r\n", "v".repeat(30_000));
    let head = format!("GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n{}", line.repeat(4));
    let mut all = opened(&server, 800).await;
    for connection in &mut all {
        drop(connection.try_write(&head).await);
    }
    // The server closes those for which there is no room: at least 200.
    let mut closed = 0;
    for _ in 0..ATTEMPTS {
        closed = 0;
        for connection in &mut all {
            closed += usize::from(connection.try_write("v").await.is_err());
        }
        if closed >= 200 {
            break;
        }
        sleep(BYTE_INTERVAL).await;
    }
    assert!(closed >= 200, "{closed} connections are closed");
    server.client().get("/queues").await.ok();
}

/// A connection keeps the buffer into which a large header was read.
#[tokio::test]
async fn large_buffers_of_idle_connections_share_64_mib() {
    let server = Server::with(&["--max-connections", "4000"]);
    let large = format!("x-long: {}\r\n", "v".repeat(100_000));
    let get = async |connection: &mut Connection, line: &str| {
        let head = format!("GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n{line}\r\n");
        connection.write(head).await;
        let response = connection.read_until("\r\n\r\nok\n").await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        response.contains("connection: close")
    };
    let (mut kept, mut ended) = (Vec::new(), 0);
    while ended < 100 {
        let mut connection = Connection::to(&server).await;
        match get(&mut connection, &large).await {
            true => ended += 1,
            false => kept.push(connection),
        }
        assert!(kept.len() < 1_500, "all connections are kept");
    }
    // Each buffer has between 100,000 bytes and 256 KiB.
    assert!(kept.len() > 64 * 4, "{} connections", kept.len());
    // Connections with small buffers do not end.
    let mut small = Connection::to(&server).await;
    for _ in 0..2 {
        assert!(!get(&mut small, "").await);
    }
    drop(kept);
    for attempt in 0.. {
        let mut connection = Connection::to(&server).await;
        if !get(&mut connection, &large).await {
            break;
        }
        assert!(attempt < ATTEMPTS, "the memory is still occupied");
        sleep(BYTE_INTERVAL).await;
    }
}

#[tokio::test]
async fn guests_of_one_address_have_up_to_128_event_streams() {
    let server = Server::with(&[]);
    let head = "GET /ui/events HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n";
    let open = async |from: [u8; 4]| {
        let mut stream = Connection::from_address(&server, from).await;
        stream.write(head).await;
        let line = stream.read_until("\r\n").await;
        (stream, line)
    };
    let mut streams = Vec::new();
    for _ in 0..128 {
        let (stream, line) = open([127, 0, 0, 1]).await;
        assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
        streams.push(stream);
    }
    let (_, line) = open([127, 0, 0, 1]).await;
    assert!(line.starts_with("HTTP/1.1 429 "), "{line}");
    let (_other, line) = open([127, 0, 0, 2]).await;
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
    drop(streams.pop());
    // The server detects the closed connection with a delay.
    while !open([127, 0, 0, 1]).await.1.starts_with("HTTP/1.1 200 ") {
        sleep(BYTE_INTERVAL).await;
    }
}
