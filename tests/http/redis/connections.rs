//! Tokens, limits and bytes that are no commands.

use std::time::Duration;

use serde_json::{Value, json};

use super::CLOCK;
use crate::support::metrics::{Metrics, metrics_when};
use crate::support::redis::{CURRENT, Redis, server};

const TOKEN: &str = "the-token-of-qless-clients";

fn error(words: &str) -> Value {
    json!({ "error": words })
}

#[tokio::test]
async fn a_token_is_required_if_there_is_one() {
    let (_server, address) = server(&["--qless-token", TOKEN]).await;
    let mut redis = Redis::connect(&address).await;
    let refused = error("NOAUTH Authentication required.");
    for command in [
        &["PING"][..],
        &["SCRIPT", "LOAD", CURRENT],
        &["SUBSCRIBE", "c"],
        &["MULTI"],
    ] {
        assert_eq!(redis.call(command).await, refused);
    }
    let wrong = error("WRONGPASS invalid username-password pair or user is disabled.");
    assert_eq!(
        redis.call(&["AUTH", "another-token-of-clients"]).await,
        wrong
    );
    assert_eq!(redis.call(&["PING"]).await, refused);
    assert_eq!(redis.call(&["AUTH", TOKEN]).await, "OK");
    assert_eq!(redis.call(&["PING"]).await, "PONG");
    assert_eq!(redis.call(&["RESET"]).await, "RESET");
    assert_eq!(redis.call(&["PING"]).await, refused);
    assert_eq!(
        redis.call(&["HELLO", "3", "AUTH", "default", "no"]).await,
        wrong
    );
    let hello = redis.call(&["HELLO", "3", "AUTH", "default", TOKEN]).await;
    assert_eq!(hello[1], "redis");
    assert_eq!(redis.call(&["PING"]).await, "PONG");
    // Before authentication, arguments must be short and few.
    let mut redis = Redis::connect(&address).await;
    redis.write(b"*3\r\n$4\r\nECHO\r\n$20000\r\n").await;
    let refused = error("ERR Protocol error: unauthenticated bulk length");
    assert_eq!(redis.reply().await, refused);
    assert_eq!(redis.try_reply().await, None);
    // The total length is limited as well, so that they reserve no memory.
    let mut redis = Redis::connect(&address).await;
    let argument = format!("$4096\r\n{}\r\n", "x".repeat(4_096));
    let command = format!("*3\r\n{argument}{argument}$1\r\n");
    redis.write(command.as_bytes()).await;
    let refused = error("ERR Protocol error: unauthenticated command length");
    assert_eq!(redis.reply().await, refused);
    assert_eq!(redis.try_reply().await, None);
}

#[tokio::test]
async fn a_replaced_token_ends_its_connections() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    let (server, address) = server(&["--qless-token-file", file.to_str().unwrap()]).await;
    let mut redis = Redis::connect(&address).await;
    assert_eq!(redis.call(&["AUTH", TOKEN]).await, "OK");
    assert_eq!(
        redis.call(&["SUBSCRIBE", "c"]).await,
        json!(["subscribe", "c", 1])
    );
    std::fs::write(&file, "the-new-token-of-qless-clients").unwrap();
    server.reload();
    assert_eq!(redis.try_reply().await, None);
}

#[tokio::test]
async fn without_a_token_a_server_listens_on_loopback_only() {
    let mut command = crate::support::Server::program();
    command.args([
        "serve",
        "--database",
        "sqlite::memory:",
        "--listen",
        "127.0.0.1:0",
    ]);
    let done = command
        .args(["--redis-listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert!(!done.status.success());
    let printed = String::from_utf8(done.stderr).unwrap();
    let why = "cannot listen on 0.0.0.0:0: qless would accept unauthenticated requests; set --qless-token";
    assert!(printed.contains(why), "{printed}");
}

#[tokio::test]
async fn commands_run_in_order() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let sha = "90cb27750babdffb878a80eb134c554dc276be79";
    let mut bytes = String::new();
    for job in 0..200 {
        let jid = format!("j{job:03}");
        bytes += &format!("EVALSHA {sha} 0 put 1 w q {jid} K {{}} 0\r\n");
        bytes += &format!("*2\r\n$4\r\nECHO\r\n$4\r\n{jid}\r\n");
    }
    redis.write(bytes.as_bytes()).await;
    for job in 0..200 {
        let jid = format!("j{job:03}");
        assert_eq!(redis.reply().await, *jid);
        assert_eq!(redis.reply().await, *jid);
    }
    // A command can arrive in parts.
    for part in ["*2\r", "\n$4\r\nEC", "HO\r\n$5\r\nh", "ello", "\r\n"] {
        redis.write(part.as_bytes()).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(redis.reply().await, "hello");
}

#[tokio::test]
async fn puts_that_arrive_together_are_committed_together() {
    let (server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let sha = "90cb27750babdffb878a80eb134c554dc276be79";
    let put = |queue: &str, jid: &str, data: &str| {
        format!("EVALSHA {sha} 0 put 1 w {queue} {jid} K {data} 0\r\n")
    };
    let mut bytes = String::new();
    for job in 0..150 {
        bytes += &put("q", &format!("j{job:03}"), "{}");
    }
    bytes += &put("q", "j000", "no-JSON");
    bytes += &put("q", "j000", "[2]");
    bytes += &format!("EVALSHA {sha} 0 get 1 j000\r\n");
    bytes += &put("other", "j000", "[3]");
    bytes += &put("q", "last", "{}");
    bytes += &format!("EVALSHA {sha} 0 length 1 q\r\n");
    let commits = |metrics: &Metrics| metrics.value("switchyard_commit_requests_count").unwrap();
    let before = commits(&Metrics::of(&server).await);
    redis.write(bytes.as_bytes()).await;
    for job in 0..150 {
        assert_eq!(redis.reply().await, format!("j{job:03}"));
    }
    let refused = redis.reply().await["error"].to_string();
    assert!(refused.contains("Put(): Arg"), "{refused}");
    assert_eq!(redis.reply().await, "j000");
    let job = redis.reply().await;
    assert!(job.as_str().unwrap().contains(r#""data":"[2]""#), "{job}");
    assert_eq!(redis.reply().await, "j000");
    assert_eq!(redis.reply().await, "last");
    assert_eq!(redis.reply().await, 150);
    // The response that was read before is reused for a while. The next one counts all commits.
    let is_new = |it: &Metrics| commits(it) > before;
    let after = metrics_when(&server, "the commits are counted", is_new).await;
    let commits = commits(&after) - before;
    assert!(commits < 75.0, "{commits} commits for 154 commands");

    redis.write(b"MULTI\r\n").await;
    redis.write(put("t", "a", "{}").as_bytes()).await;
    redis.write(put("t", "b", "{}").as_bytes()).await;
    redis.write(b"ECHO x\r\n").await;
    redis.write(put("t", "c", "{}").as_bytes()).await;
    redis.write(b"EXEC\r\n").await;
    assert_eq!(redis.reply().await, "OK");
    for _ in 0..4 {
        assert_eq!(redis.reply().await, "QUEUED");
    }
    assert_eq!(redis.reply().await, json!(["a", "b", "x", "c"]));
}

#[tokio::test]
async fn a_transaction_runs_its_commands_together() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    redis.at(1, &["put", "w", "q", "a", "K", "{}", "0"]).await;
    assert_eq!(redis.call(&["EXEC"]).await, error("ERR EXEC without MULTI"));
    assert_eq!(redis.call(&["MULTI"]).await, "OK");
    for kind in ["work", "locks", "scheduled", "depends"] {
        let key = format!("ql:q:q-{kind}");
        assert_eq!(redis.call(&["ZCARD", &key]).await, "QUEUED");
    }
    assert_eq!(redis.call(&["PING"]).await, "QUEUED");
    assert_eq!(redis.call(&["EXEC"]).await, json!([1, 0, 0, 0, "PONG"]));
    redis.call(&["MULTI"]).await;
    assert!(redis.call(&["SET", "a", "b"]).await["error"].is_string());
    let aborted = "EXECABORT Transaction discarded because of previous errors.";
    assert_eq!(redis.call(&["EXEC"]).await, error(aborted));
    redis.call(&["MULTI"]).await;
    assert_eq!(redis.call(&["DISCARD"]).await, "OK");
    assert_eq!(redis.call(&["PING"]).await, "PONG");
}

#[tokio::test]
async fn bytes_that_are_no_command_end_the_connection() {
    let (_server, address) = server(&[]).await;
    let too_many = "*10101\r\n";
    let too_large = format!("*2\r\n$4\r\nECHO\r\n${}\r\n", 17 << 20);
    let long_line = "x".repeat(70_000);
    for (bytes, why) in [
        ("*x\r\n", "invalid multibulk length"),
        ("*1\r\nPING\r\n", "expected '$'"),
        ("*1\r\n$-5\r\n", "invalid bulk length"),
        ("*1\r\n$4\r\nPINGS\r\n", "an argument is too long"),
        (too_many, "too many arguments"),
        (&too_large, "the command is too large"),
        (&long_line, "too big inline request"),
        ("PING\x1b\r\n", "an inline command must be text"),
        ("ECHO \"x\r\n", "unbalanced quotes in request"),
    ] {
        let mut redis = Redis::connect(&address).await;
        redis.write(bytes.as_bytes()).await;
        assert_eq!(
            redis.reply().await,
            error(&format!("ERR Protocol error: {why}"))
        );
        assert_eq!(redis.try_reply().await, None, "{why}");
    }
    let mut redis = Redis::connect(&address).await;
    redis
        .write(b"\r\n*0\r\n*-1\r\nECHO \"two words\"\r\n")
        .await;
    assert_eq!(redis.reply().await, "two words");
    redis.write(b"*2\r\n$4\r\nECHO\r\n$1\r\n\xff\r\n").await;
    assert_eq!(
        redis.reply().await,
        error("ERR the arguments are not valid UTF-8")
    );
    let unknown = error("ERR unknown command 'set'");
    assert_eq!(redis.call(&["SET", "a", "b"]).await, unknown);
    assert_eq!(redis.call(&["QUIT"]).await, "OK");
    assert_eq!(redis.try_reply().await, None);
}

/// A page can make a browser send such a request to a server on loopback.
#[tokio::test]
async fn a_request_of_http_runs_no_command() {
    let (_server, address) = server(&["--allow-flush"]).await;
    for request in [
        "POST / HTTP/1.1\r\nHost: x\r\n\r\nFLUSHALL\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\nFLUSHALL\r\n",
        "FLUSHALL / HTTP/1.1\r\nHost: x\r\n\r\n",
        "EVAL /QlessAPI HTTP/1.1\r\nHost: x\r\n\r\n",
        "FLUSHALL /''?\\ HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        let mut redis = Redis::connect(&address).await;
        redis.write(request.as_bytes()).await;
        let mut replies = Vec::new();
        while let Some(reply) = redis.try_reply().await {
            replies.push(reply);
        }
        assert!(!replies.contains(&json!("OK")), "{replies:?}");
    }
}

#[tokio::test]
async fn connections_are_limited_and_may_be_idle() {
    let limits = ["--max-connections", "8", "--connection-timeout", "2"];
    let (server, address) = server(&limits).await;
    let mut idle = Redis::connect(&address).await;
    assert_eq!(idle.call(&["PING"]).await, "PONG");
    let mut subscriber = Redis::connect(&address).await;
    subscriber.call(&["SUBSCRIBE", "c"]).await;
    let mut dripped = 0;
    // Of these, one sends nothing and the other only a part of a command.
    let mut silent = Redis::connect(&address).await;
    let mut slow = Redis::connect(&address).await;
    slow.write(b"*1\r\n$4\r\nPI").await;
    let closed = tokio::join!(silent.try_reply(), slow.try_reply());
    assert_eq!(closed, (None, None));
    // Another sends byte after byte, and never a whole command.
    let mut dripping = Redis::connect(&address).await;
    dripping.write(b"*2\r\n$4\r\nECHO\r\n$1000\r\n").await;
    while tokio::time::timeout(Duration::from_millis(100), dripping.try_reply())
        .await
        .is_err()
    {
        dripping.write(b"x").await;
        dripped += 1;
        assert!(dripped < 500, "the connection is still open");
    }
    assert_eq!(idle.call(&["PING"]).await, "PONG");
    assert_eq!(subscriber.call(&["PING"]).await, json!(["pong", ""]));
    drop(server);
}

#[tokio::test]
async fn a_flush_must_be_enabled() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::connect(&address).await;
    let refused = "ERR FLUSHDB is not enabled; start the server with --allow-flush";
    assert_eq!(redis.call(&["FLUSHDB"]).await, error(refused));
    let (_server, address) = server(&[CLOCK, "--allow-flush"]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    redis.at(1, &["put", "w", "q", "a", "K", "{}", "0"]).await;
    assert_eq!(redis.call(&["FLUSHALL"]).await, "OK");
    assert_eq!(redis.at(1, &["get", "a"]).await, Value::Null);
}

#[tokio::test]
async fn the_server_describes_itself_like_redis() {
    let (server, address) = server(&[]).await;
    let mut redis = Redis::connect(&address).await;
    let info = redis.call(&["INFO"]).await;
    assert!(info.as_str().unwrap().contains("redis_version:7.2.0\r\n"));
    assert_eq!(redis.call(&["SELECT", "0"]).await, "OK");
    assert_eq!(
        redis.call(&["SELECT", "1"]).await,
        error("ERR DB index is out of range")
    );
    for command in [
        ["SETINFO", "LIB-NAME", "redis-py"],
        ["SETINFO", "lib-ver", "5.3.1"],
    ] {
        let command = [&["CLIENT"][..], &command].concat();
        assert_eq!(redis.call(&command).await, "OK");
    }
    let refused = redis.call(&["CLIENT", "SETINFO", "LIB-NAME", "a b"]).await;
    assert!(refused["error"].is_string(), "{refused}");
    assert_eq!(redis.call(&["CLIENT", "SETNAME", "me"]).await, "OK");
    let metrics = format!("http://{}/metrics", server.address);
    let metrics = server.http.get(metrics).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(metrics.contains("\nswitchyard_redis_connections 1\n"));
    let clients = redis.call(&["CLIENT", "LIST"]).await;
    let clients = clients.as_str().unwrap();
    let (name, rest) = (
        " name=me age=",
        " sub=0 cmd=client lib-name=redis-py lib-ver=5.3.1\n",
    );
    assert!(
        clients.contains(name) && clients.ends_with(rest),
        "{clients}"
    );
    assert_eq!(redis.call(&["CONFIG", "GET", "*"]).await, json!([]));
    assert_eq!(redis.call(&["COMMAND", "DOCS"]).await, json!([]));
    assert_eq!(redis.call(&["TIME"]).await.as_array().unwrap().len(), 2);
}
