//! Clients that occupy memory or time without using them, and bytes of other protocols.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::CLOCK;
use crate::support::eventually;
use crate::support::lower_quartile;
use crate::support::metrics::{Metrics, metrics_when};
use crate::support::redis::{CURRENT, Redis, server};

/// Sets all time limits of a connection to 3 s. Even on a busy machine, a test sends its next command within this time.
const IMPATIENT: [&str; 2] = ["--connection-timeout", "3"];

/// A guard against a server that does not enforce a time limit.
const ATTEMPTS: usize = 600;

#[tokio::test]
async fn an_announced_length_occupies_no_memory() {
    let (_server, address) = server(&[]).await;
    let mut announced = Vec::new();
    for _ in 0..20 {
        let mut redis = Redis::connect(&address).await;
        redis
            .write(b"PING\r\n*2\r\n$4\r\nECHO\r\n$16000000\r\nx")
            .await;
        assert_eq!(redis.reply().await, "PONG");
        announced.push(redis);
    }
    let text = "x".repeat(8 << 20);
    let mut redis = Redis::connect(&address).await;
    assert_eq!(redis.call(&["ECHO", &text]).await, *text);
}

/// The end of a command can be the end of the buffer into which it was read.
#[tokio::test]
async fn an_idle_connection_occupies_no_memory() {
    let (server, address) = server(&[]).await;
    let mut idle = Vec::new();
    let before = server.memory_mb();
    for n in 0..40 {
        let mut redis = Redis::connect(&address).await;
        // With this length, the last read fills the buffer, if the beginning of the command was read before.
        let text = "x".repeat(8_421_374);
        let head = format!("PING\r\n*2\r\n$4\r\nPING\r\n${}\r\n", text.len());
        redis.write(head.as_bytes()).await;
        assert_eq!(redis.reply().await, "PONG");
        redis.write(format!("{text}\r\n").as_bytes()).await;
        assert_eq!(redis.reply().await, *text);
        if n % 4 == 0 {
            redis.write(b"PING\r\nPI").await;
            assert_eq!(redis.reply().await, "PONG");
        }
        idle.push(redis);
    }
    let grown = server.memory_mb() - before;
    // The memory of the last ones may not have been returned to the system.
    assert!(grown < 150.0, "{grown} MB");
    // The memory of a command is released after its reply.
    metrics_when(&server, "no memory is reserved", |it| {
        it.value("switchyard_request_memory_bytes") == Some(0.0)
    })
    .await;
}

#[tokio::test]
async fn idle_connections_keep_no_buffers_for_replies() {
    let (server, address) = server(&[]).await;
    let text = "x".repeat(60_000);
    let mut idle = Vec::new();
    let mut before = 0.0;
    for n in 0..450 {
        if n == 50 {
            before = server.memory_mb();
        }
        let mut redis = Redis::connect(&address).await;
        assert_eq!(redis.call(&["ECHO", &text]).await, *text);
        idle.push(redis);
    }
    // With a buffer of 64 KiB each, 26 MB more.
    let grown = server.memory_mb() - before;
    assert!(grown < 20.0, "{grown} MB");
}

#[tokio::test]
async fn an_open_transaction_is_discarded_in_time() {
    let (_server, address) = server(&IMPATIENT).await;
    let mut redis = Redis::connect(&address).await;
    assert_eq!(redis.call(&["MULTI"]).await, "OK");
    let mut queued = 0;
    let refused = loop {
        let reply = redis.call(&["ECHO", "x"]).await;
        if reply != "QUEUED" {
            break reply;
        }
        queued += 1;
        assert!(queued < ATTEMPTS, "the transaction is still open");
        sleep(Duration::from_millis(50)).await;
    };
    let why = "Transaction discarded because EXEC did not follow MULTI within 3 s.";
    assert_eq!(refused, json!({ "error": format!("ERR {why}") }));
    let aborted = json!({ "error": format!("EXECABORT {why}") });
    assert_eq!(redis.call(&["EXEC"]).await, aborted);
    assert_eq!(redis.call(&["PING"]).await, "PONG");
    // A client can also begin again.
    for command in ["MULTI", "DISCARD"] {
        assert_eq!(redis.call(&[command]).await, "OK");
    }
}

#[tokio::test]
async fn a_transaction_is_run_although_its_client_has_disconnected() {
    let (server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    redis.call(&["MULTI"]).await;
    for jid in ["a", "b"] {
        redis.at(1, &["put", "w", "q", jid, "K", "{}", "0"]).await;
        redis.call(&["ECHO", "x"]).await;
    }
    redis.send(&["EXEC"]).await;
    drop(redis);
    eventually("both jobs", async || {
        let queues = server.at(1).get("/queues").await;
        queues.text.contains(r#""waiting":2"#)
    })
    .await;
}

#[tokio::test]
async fn a_client_must_present_its_token_in_time() {
    let token = ["--qless-token", "the-token-of-qless-clients"];
    let (_server, address) = server(&[&token[..], &IMPATIENT].concat()).await;
    let mut known = Redis::connect(&address).await;
    assert_eq!(known.call(&["AUTH", token[1]]).await, "OK");
    let mut unknown = Redis::connect(&address).await;
    let mut attempts = 0;
    loop {
        unknown.send(&["PING"]).await;
        if unknown.try_reply().await.is_none() {
            break;
        }
        attempts += 1;
        assert!(attempts < ATTEMPTS, "the client is still connected");
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(known.call(&["PING"]).await, "PONG");
}

/// A browser sends a session ticket that the server of a page has chosen ("TLS poison").
#[tokio::test]
async fn a_command_in_a_tls_handshake_is_not_run() {
    let (_server, address) = server(&[]).await;
    let mut redis = Redis::connect(&address).await;
    let mut hello = vec![0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3];
    hello.extend([0xf7; 32]);
    hello.extend_from_slice(b"\r\nEVAL 'QlessAPI = {}' 0 put 0 w q a K '{}' 0\r\nPING\r\n");
    redis.write(&hello).await;
    let refused = "ERR Protocol error: an inline command must be text";
    assert_eq!(redis.reply().await, json!({ "error": refused }));
    assert_eq!(redis.try_reply().await, None);
    let mut other = Redis::connect(&address).await;
    assert_eq!(other.call(&["DBSIZE"]).await, 0);
}

#[tokio::test]
async fn large_replies_that_are_not_read_share_256_mib() {
    // Long enough for a slow machine. By default, the server gives up a reply that is not read for 30 s.
    let (_server, address) = server(&[CLOCK, "--connection-timeout", "300"]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let data = format!("\"{}\"", "d".repeat(15 << 20));
    redis.at(1, &["put", "w", "q", "a", "K", &data, "0"]).await;
    let mut unread = Vec::new();
    let is_refused = loop {
        let mut reader = Redis::connect(&address).await;
        let get = ["EVAL", CURRENT, "0", "get", "1", "a"];
        reader.send(&get).await;
        if reader.first_byte().await == b'-' {
            break reader.try_reply().await.is_some_and(|reply| {
                let error = reply["error"].as_str().unwrap_or_default();
                error.starts_with("TRYAGAIN ")
            });
        }
        unread.push(reader);
        assert!(unread.len() < 40, "no reply was refused");
    };
    assert!(is_refused);
    assert!(unread.len() > 8, "{} replies", unread.len());
    assert_eq!(redis.call(&["PING"]).await, "PONG");
}

#[tokio::test]
async fn three_wrong_tokens_end_the_connection() {
    let token = "the-token-of-qless-clients";
    let (_server, address) = server(&["--qless-token", token]).await;
    let mut redis = Redis::connect(&address).await;
    assert!(redis.call(&["AUTH", "a"]).await["error"].is_string());
    assert!(redis.call(&["HELLO", "3", "AUTH", "default", "b"]).await["error"].is_string());
    assert_eq!(redis.call(&["AUTH", token]).await, "OK");
    assert!(redis.call(&["AUTH", "c"]).await["error"].is_string());
    assert_eq!(redis.try_reply().await, None);
}

/// A client that reads a large reply in small parts occupies its memory.
#[tokio::test]
async fn a_large_reply_must_be_read_in_time() {
    const BYTES: usize = 8 << 20;
    // If a busy machine needs longer to send the command, the test repeats with more time.
    let mut seconds = 3;
    let (server, mut slow) = loop {
        let timeout = seconds.to_string();
        let (server, address) = server(&["--connection-timeout", &timeout]).await;
        let socket = TcpSocket::new_v4().unwrap();
        // With a small buffer, the server sends little at a time, and often.
        socket.set_recv_buffer_size(4 << 10).unwrap();
        let mut slow = socket.connect(address.parse().unwrap()).await.unwrap();
        let mut command = format!("*2\r\n$4\r\nECHO\r\n${BYTES}\r\n").into_bytes();
        command.resize(command.len() + BYTES, b'x');
        command.extend(b"\r\n");
        if slow.write_all(&command).await.is_ok() {
            break (server, slow);
        }
        seconds *= 2;
        assert!(seconds < 60, "the server is too slow");
    };
    let (mut part, mut read) = ([0; 512], 0);
    loop {
        let connected = Metrics::of(&server).await;
        if connected.value("switchyard_redis_connections") == Some(0.0) {
            break;
        }
        assert!(read < ATTEMPTS, "the client is still connected");
        if slow.read_exact(&mut part).await.is_err() {
            break;
        }
        read += 1;
        sleep(Duration::from_millis(50)).await;
    }
}

/// Refused commands wait for nothing, neither for the database nor for the client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_refused_commands_does_not_block_other_clients() {
    const CONNECTIONS: usize = 50;
    let (server, address) = server(&["--qless-token", "the-token-of-qless-clients"]).await;
    let refused = Arc::new(AtomicUsize::new(0));
    let mut flood = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(&address).await.unwrap();
        let (mut reads, mut writes) = stream.into_split();
        flood.spawn(async move {
            let commands = "PING\r\n".repeat(10_000);
            while writes.write_all(commands.as_bytes()).await.is_ok() {}
        });
        let refused = Arc::clone(&refused);
        flood.spawn(async move {
            let mut read = vec![0; 64 << 10];
            while let Ok(length @ 1..) = reads.read(&mut read).await {
                let lines = read[..length].iter().filter(|byte| **byte == b'\n');
                refused.fetch_add(lines.count(), Ordering::Relaxed);
            }
        });
    }
    while refused.load(Ordering::Relaxed) < 1_000 * CONNECTIONS {
        sleep(Duration::from_millis(1)).await;
    }
    let mut between = Vec::new();
    for _ in 0..10 {
        let before = refused.load(Ordering::Relaxed);
        server
            .client()
            .get("/queues")
            .await
            .assert_rejected(401, "unauthorized");
        between.push(refused.load(Ordering::Relaxed) - before);
    }
    let shown = format!("{between:?}");
    assert!(lower_quartile(between) < 1_000 * CONNECTIONS, "{shown}");
}
