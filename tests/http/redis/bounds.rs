//! Limits of texts and replies.

use serde_json::json;

use crate::support::redis::{CURRENT, Redis, server};

/// Maximum length of a job's class, in bytes.
const CLASS_MAX: usize = 1_024;

fn is_error(reply: &serde_json::Value) -> bool {
    reply.get("error").is_some()
}

#[tokio::test]
async fn the_class_of_a_job_is_limited_over_both_protocols() {
    let (server, address) = server(&[]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    for (length, is_accepted) in [(0, true), (CLASS_MAX, true), (CLASS_MAX + 1, false)] {
        let class = "c".repeat(length);
        let jid = format!("a-{length}");
        let put = redis
            .at(1, &["put", "w", "q", &jid, &class, "{}", "0"])
            .await;
        assert_eq!(is_error(&put), !is_accepted, "{put}");
        let recur = ["recur", "q", &jid, &class, "{}", "interval", "60", "0"];
        let recur = redis.at(1, &recur).await;
        assert_eq!(is_error(&recur), !is_accepted, "{recur}");
        let expected = if is_accepted { 200 } else { 400 };
        for path in ["/add/h", "/recur/h"] {
            let item = json!({"meta": 1, "klass": class, "interval": 60});
            let response = server.client().post(path, item).await;
            assert_eq!(response.status, expected, "{path}: {response:?}");
        }
    }
}

#[tokio::test]
async fn the_group_of_a_retry_is_a_name() {
    let (_server, address) = server(&[]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    redis.at(1, &["put", "w", "q", "a", "K", "{}", "0"]).await;
    redis.at(1, &["pop", "q", "w", "1"]).await;
    for (group, is_accepted) in [
        ("g".repeat(256), false),
        ("a\nb".into(), false),
        ("g".repeat(255), true),
    ] {
        let retry = redis
            .at(1, &["retry", "a", "q", "w", "0", &group, "why"])
            .await;
        assert_eq!(is_error(&retry), !is_accepted, "{retry}");
    }
}

#[tokio::test]
async fn an_error_repeats_up_to_128_characters_of_an_argument() {
    let (_server, address) = server(&[]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    for (chars, kept) in [(127, 127), (128, 128), (129, 128), (1_000_000, 128)] {
        let (long, cut) = ("é".repeat(chars), "é".repeat(kept));
        for (command, words) in [
            (&[&*long][..], format!("Unknown command {cut}")),
            (
                &["jobs", &long, "q"],
                format!("Jobs(): Unknown type \"{cut}\""),
            ),
            (
                &["track", &long, "a"],
                format!("Track(): Unknown action \"{cut}\""),
            ),
            (
                &["recur", "q", "a", "K", "{}", &long, "60", "0"],
                format!("Recur(): schedule type \"{cut}\" unknown"),
            ),
        ] {
            let expected = json!({"error": format!("ERR user_script:1: {words}")});
            assert_eq!(redis.at(1, command).await, expected, "{chars}");
        }
    }
    // Each of these characters has 6 bytes as JSON. The text is refused before it is written in this form.
    let set = ["config.set", "x", &"\u{1}".repeat(1_000_000)];
    let refused = redis.at(1, &set).await;
    let words = "config.set(): the value must not exceed 4096 bytes";
    assert_eq!(
        refused,
        json!({"error": format!("ERR user_script:1: {words}")})
    );
}

#[tokio::test]
async fn nul_and_long_channels_and_messages_are_refused() {
    let (_server, address) = server(&[]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    for command in [
        ["put", "w", "q", "a", "K\0", "{}", "0"],
        ["put", "w", "q", "a", "K", "{\"a\": \"\0\"}", "0"],
    ] {
        assert!(is_error(&redis.at(1, &command).await), "{command:?}");
    }
    for command in [
        &["ZSCORE", "ql:q:w-recur", "a\0b"][..],
        &["EVALSHA", "a\0b", "0", "queues", "1"],
        &["SUBSCRIBE", "a\0b"],
    ] {
        let refused = redis.call(command).await;
        assert_eq!(
            refused,
            json!({ "error": "ERR the arguments contain a NUL" })
        );
    }
    let longest = "c".repeat(2_048);
    assert_eq!(redis.call(&["PUBLISH", &longest, "m"]).await, 0);
    let longer = format!("{longest}c");
    assert!(is_error(&redis.call(&["PUBLISH", &longer, "m"]).await));
    let longest = "m".repeat(64 << 10);
    assert_eq!(redis.call(&["PUBLISH", "c", &longest]).await, 0);
    let longer = format!("{longest}m");
    assert!(is_error(&redis.call(&["PUBLISH", "c", &longer]).await));
}

#[tokio::test]
async fn the_replies_of_a_transaction_are_limited() {
    let (_server, address) = server(&[]).await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let data = format!("\"{}\"", "d".repeat(8 << 20));
    redis.at(1, &["put", "w", "q", "a", "K", &data, "0"]).await;
    assert_eq!(redis.call(&["MULTI"]).await, "OK");
    for _ in 0..12 {
        assert_eq!(redis.at(1, &["get", "a"]).await, "QUEUED");
    }
    let replies = redis.call(&["EXEC"]).await;
    let replies = replies.as_array().unwrap();
    assert_eq!(replies.len(), 12);
    let run = replies.iter().take_while(|reply| !is_error(reply)).count();
    assert!((1..12).contains(&run), "{run} commands were run");
    assert!(replies.iter().skip(run).all(is_error));
    // The connection still works.
    assert_eq!(redis.call(&["PING"]).await, "PONG");
}

#[tokio::test]
async fn canceling_a_complete_job_thousands_of_times_occupies_little_memory() {
    let (server, address) = server(&["--trust-client-clock"]).await;
    let tags: Vec<String> = (1_000..3_000).map(|n| n.to_string()).collect();
    let worker = server.by("w").at(0);
    worker
        .add("q", json!({"id": "a", "meta": null, "tags": tags}))
        .await;
    worker.pop("q").await;
    worker.complete("q", "a").await;
    let mut redis = Redis::with(&address, CURRENT).await;
    let before = server.peak_memory_mb();
    let mut command = vec!["cancel"];
    command.extend(["a"; 10_000]);
    let canceled = redis.at(1, &command).await;
    assert_eq!(
        canceled.as_array().map(Vec::len),
        Some(10_000),
        "{canceled}"
    );
    let more = server.peak_memory_mb() - before;
    assert!(more < 60.0, "{more} MB");
    assert_eq!(server.client().state("a").await, "complete");
}
