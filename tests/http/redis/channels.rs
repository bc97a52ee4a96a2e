//! Messages on channels: each event once, in order, and before the reply of its command.

use serde_json::{Value, json};

use super::CLOCK;
use crate::support::redis::{CURRENT, Redis, server};

fn message(channel: &str, text: &str) -> Value {
    json!(["message", channel, text])
}

#[tokio::test]
async fn events_have_the_texts_of_the_script() {
    let (server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let mut log = Redis::connect(&address).await;
    let confirmed = log.call(&["SUBSCRIBE", "ql:log"]).await;
    assert_eq!(confirmed, json!(["subscribe", "ql:log", 1]));
    let put = ["put", "w", "q", "a", "K", "{}", "0", "retries", "1"];
    redis.at(1, &put).await;
    redis.at(1, &["pop", "q", "w", "1"]).await;
    redis
        .at(1, &["complete", "a", "w", "q", "{}", "next", "r"])
        .await;
    redis.at(1, &["pop", "r", "w", "1"]).await;
    redis.at(1, &["fail", "a", "w", "g", "m"]).await;
    redis.at(1, &["put", "w", "q", "b", "K", "{}", "0"]).await;
    redis.at(1, &["pop", "q", "w", "1"]).await;
    redis.at(1, &["timeout", "b"]).await;
    redis.at(1, &["cancel", "b"]).await;
    redis.at(1, &["config.set", "heartbeat", "10"]).await;
    redis.at(1, &["config.unset", "heartbeat"]).await;
    // An event of another protocol's client, and the completion of a job.
    server
        .by("v")
        .at(2)
        .add_and_pop(json!({ "id": "c", "meta": 1 }))
        .await;
    redis.at(2, &["complete", "c", "v", "work", "{}"]).await;
    for expected in [
        r#"{"jid":"a","event":"put","queue":"q"}"#,
        r#"{"jid":"a","to":"r","event":"advanced","queue":"q"}"#,
        r#"{"message":"m","jid":"a","group":"g","event":"failed","worker":"w"}"#,
        r#"{"jid":"b","event":"put","queue":"q"}"#,
        r#"{"jid":"b","event":"lock_lost","worker":"w"}"#,
        r#"{"jid":"b","queue":"q","event":"canceled","worker":""}"#,
        r#"{"option":"heartbeat","event":"config_set","value":"10"}"#,
        r#"{"event":"config_unset","option":"heartbeat"}"#,
        r#"{"jid":"c","event":"put","queue":"work"}"#,
        r#"{"jid":"c","event":"completed","queue":"work"}"#,
    ] {
        assert_eq!(log.reply().await, message("ql:log", expected));
    }
}

#[tokio::test]
async fn tracked_jobs_and_workers_have_channels() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    redis.at(1, &["put", "w", "q", "a", "K", "{}", "0"]).await;
    let mut all = Redis::connect(&address).await;
    let confirmed = all
        .call(&["PSUBSCRIBE", "ql:[", "ql:??????", "ql:w:*"])
        .await;
    assert_eq!(confirmed, json!(["psubscribe", "ql:[", 1]));
    all.reply().await;
    all.reply().await;
    redis.at(1, &["track", "track", "a"]).await;
    redis.at(1, &["pop", "q", "w", "1"]).await;
    redis.at(1, &["timeout", "a"]).await;
    let of = |pattern: &str, channel: &str, text: &str| json!(["pmessage", pattern, channel, text]);
    assert_eq!(all.reply().await, of("ql:??????", "ql:popped", "a"));
    let lost = r#"{"jid":"a","event":"lock_lost","worker":"w"}"#;
    assert_eq!(all.reply().await, of("ql:w:*", "ql:w:w", lost));
    // The reply to a command follows the events of those before it.
    redis.at(1, &["pop", "q", "w", "1"]).await;
    all.send(&["PUNSUBSCRIBE"]).await;
    assert_eq!(all.reply().await, of("ql:??????", "ql:popped", "a"));
    for (pattern, left) in [("ql:??????", 2), ("ql:[", 1), ("ql:w:*", 0)] {
        assert_eq!(all.reply().await, json!(["punsubscribe", pattern, left]));
    }
    assert_eq!(all.call(&["PING"]).await, "PONG");
}

/// A subscription is in effect when it is confirmed, and the events of a command have been sent when the command gets
/// its reply.
#[tokio::test]
async fn no_event_after_a_subscription_is_missed() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    for round in 0..50 {
        let jid = format!("j{round}");
        let mut log = Redis::connect(&address).await;
        log.call(&["SUBSCRIBE", "ql:log"]).await;
        redis.at(1, &["put", "w", "q", &jid, "K", "{}", "0"]).await;
        log.send(&["UNSUBSCRIBE"]).await;
        let put = format!(r#"{{"jid":"{jid}","event":"put","queue":"q"}}"#);
        assert_eq!(log.reply().await, message("ql:log", &put));
        assert_eq!(log.reply().await, json!(["unsubscribe", "ql:log", 0]));
    }
}

/// A new subscriber does not get the events that were committed while there was no subscriber.
#[tokio::test]
async fn no_event_before_a_subscription_is_sent() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let mut log = Redis::connect(&address).await;
    for round in 0..200 {
        redis.at(1, &["put", "w", "q", "a", "K", "{}", "0"]).await;
        let subscribed = log.call(&["SUBSCRIBE", "ql:log"]).await;
        assert_eq!(subscribed, json!(["subscribe", "ql:log", 1]), "{round}");
        let unsubscribed = log.call(&["UNSUBSCRIBE"]).await;
        assert_eq!(unsubscribed, json!(["unsubscribe", "ql:log", 0]), "{round}");
    }
}

#[tokio::test]
async fn many_events_arrive_once_and_in_order() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut log = Redis::connect(&address).await;
    log.call(&["SUBSCRIBE", "ql:log"]).await;
    let mut writers = Vec::new();
    for writer in 0..4 {
        let address = address.clone();
        writers.push(tokio::spawn(async move {
            let mut redis = Redis::with(&address, CURRENT).await;
            for job in 0..100 {
                let jid = format!("{writer}-{job}");
                redis.at(1, &["put", "w", "q", &jid, "K", "{}", "0"]).await;
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let mut next = [0; 4];
    for _ in 0..400 {
        let reply = log.reply().await;
        let event: Value = serde_json::from_str(reply[2].as_str().unwrap()).unwrap();
        let (writer, job) = event["jid"].as_str().unwrap().split_once('-').unwrap();
        let expected = &mut next[writer.parse::<usize>().unwrap()];
        assert_eq!(job.parse::<i32>().unwrap(), *expected);
        *expected += 1;
    }
    assert_eq!(log.call(&["PING", "end"]).await, json!(["pong", "end"]));
}

#[tokio::test]
async fn clients_can_publish_and_subscribe_to_channels_of_their_own() {
    let (_server, address) = server(&[]).await;
    let mut redis = Redis::connect(&address).await;
    let mut other = Redis::connect(&address).await;
    assert_eq!(redis.call(&["PUBLISH", "mine", "lost"]).await, 0);
    other.call(&["SUBSCRIBE", "mine"]).await;
    assert_eq!(redis.call(&["PUBLISH", "mine", "hello"]).await, 1);
    assert_eq!(redis.call(&["PUBSUB", "CHANNELS"]).await, json!(["mine"]));
    assert_eq!(
        redis.call(&["PUBSUB", "NUMSUB", "mine"]).await,
        json!(["mine", 1])
    );
    let long = "x".repeat(1_000);
    let counts = redis.call(&["PUBSUB", "NUMSUB", &long]).await;
    assert_eq!(counts, json!([long, 0]));
    assert!(redis.call(&["PUBSUB", "CHANNELS", &long]).await["error"].is_string());
    assert_eq!(other.reply().await, message("mine", "hello"));
    let refused = other.call(&["ECHO", "x"]).await;
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("Can't execute 'echo'")
    );
    drop(other);
    // The subscriptions of a disconnected client are removed.
    while redis.call(&["PUBLISH", "mine", "x"]).await != 0 {}
}

#[tokio::test]
async fn messages_are_pushed_between_replies_in_resp3() {
    let (_server, address) = server(&[CLOCK]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let hello = redis.call(&["HELLO", "3", "SETNAME", "me"]).await;
    assert_eq!(hello[5], 3);
    redis.send(&["SUBSCRIBE", "ql:log"]).await;
    assert_eq!(
        redis.reply().await,
        json!({ "push": ["subscribe", "ql:log", 1] })
    );
    let put = r#"{"jid":"a","event":"put","queue":"q"}"#;
    let reply = redis.at(1, &["put", "w", "q", "a", "K", "{}", "0"]).await;
    assert_eq!(reply, json!({ "push": ["message", "ql:log", put] }));
    assert_eq!(redis.reply().await, "a");
    assert_eq!(redis.call(&["CLIENT", "GETNAME"]).await, "me");
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_is_disconnected() {
    let (_server, address) = server(&[]).await;
    let mut slow = Redis::connect(&address).await;
    slow.call(&["SUBSCRIBE", "c"]).await;
    let mut redis = Redis::connect(&address).await;
    let text = "x".repeat(64 << 10);
    let mut sent = 0;
    while redis.call(&["PUBLISH", "c", &text]).await == 1 {
        sent += 1;
        assert!(sent < 1_000, "the subscriber is still connected");
    }
}

#[tokio::test]
async fn subscriptions_are_limited() {
    let (_server, address) = server(&[]).await;
    let mut redis = Redis::connect(&address).await;
    let patterns: Vec<String> = (0..256).map(|n| format!("p{n}*")).collect();
    let names = patterns.iter().map(String::as_str);
    let all: Vec<&str> = std::iter::once("PSUBSCRIBE").chain(names).collect();
    redis.send(&all).await;
    for n in 1..=256 {
        assert_eq!(redis.reply().await[2], n);
    }
    let mut other = Redis::connect(&address).await;
    let full = json!({ "error": "ERR all clients together have too many subscriptions" });
    assert_eq!(other.call(&["PSUBSCRIBE", "x*"]).await, full);
    let long = "x".repeat(129);
    let refused = other.call(&["PSUBSCRIBE", &long]).await;
    assert!(refused["error"].as_str().unwrap().contains("128 bytes"));
    let many: Vec<&str> = std::iter::once("SUBSCRIBE").chain(["c"; 1_001]).collect();
    let refused = other.call(&many).await;
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("at most 1000 subscriptions")
    );
    drop(redis);
    while other.call(&["PUBSUB", "NUMPAT"]).await != 0 {}
    assert_eq!(
        other.call(&["PSUBSCRIBE", "x*"]).await,
        json!(["psubscribe", "x*", 1])
    );
}
