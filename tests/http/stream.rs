//! `/events` as a stream of server-sent events.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::log::Logged;
use crate::support::{Server, Stream};

/// A guard against a stream without an end; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_stream_has_the_same_events_as_the_list() {
    let server = Server::start();
    let worker = server.by("w").at(5.5);
    worker.add_and_pop(json!({"id": "日本", "meta": 1})).await;
    worker.post("/track", json!("日本")).await.ok();
    worker.complete("work", "日本").await;
    let list = worker.get("/events").await.ok();
    let list = list["events"].as_array().unwrap();
    let mut stream = Stream::open(&server, "?after=0", None).await;
    for expected in list {
        let (id, event) = stream.next().await;
        // The number is text in the stream, and may be 5 or 5.0 in the list.
        assert_eq!(expected["seq"], id);
        for key in ["seq", "channel", "data"] {
            assert_eq!(event[key], expected[key]);
        }
        assert_eq!(event["when"].as_f64(), expected["when"].as_f64());
    }
}

#[tokio::test]
async fn a_stream_starts_with_new_events() {
    let server = Server::start();
    server.at(0).add_ids("work", &["before"]).await;
    let mut stream = Stream::open(&server, "", None).await;
    let mut other = Stream::open(&server, "", None).await;
    for id in ["a", "b", "c"] {
        server.at(0).add_ids("work", &[id]).await;
        assert_eq!(stream.jobs(1).await, [id]);
    }
    assert_eq!(other.jobs(3).await, ["a", "b", "c"], "each has all");
}

#[tokio::test]
async fn a_stream_continues_where_another_ended() {
    let server = Server::start();
    server.at(0).add_ids("work", &["a", "b", "c"]).await;
    let mut stream = Stream::open(&server, "?after=0", None).await;
    let (seq, _) = stream.next().await;
    drop(stream);
    let after = format!("?after={seq}");
    let streams = [
        Stream::open(&server, &after, None).await,
        Stream::open(&server, "", Some(seq)).await,
        // A client that reconnects uses its original address.
        Stream::open(&server, "?after=0", Some(seq)).await,
    ];
    server.at(0).add_ids("work", &["d"]).await;
    for mut stream in streams {
        assert_eq!(stream.jobs(3).await, ["b", "c", "d"]);
    }
}

#[tokio::test]
async fn no_event_is_missed_or_duplicated_between_stored_and_new_events() {
    let server = Server::start();
    let names: Vec<String> = (0..300).map(|index| format!("j{index}")).collect();
    let add = async {
        for id in &names {
            server.at(0).add_ids("work", &[id]).await;
        }
    };
    let read = async {
        // At least the first stream starts while jobs are being added.
        for _ in 0..5 {
            let mut stream = Stream::open(&server, "?after=0", None).await;
            assert_eq!(stream.jobs(names.len()).await, names);
        }
    };
    tokio::join!(add, read);
}

#[tokio::test]
async fn a_stream_can_be_filtered_by_channel() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a", "b"]).await;
    let mut log = Stream::open(&server, "?channel=log", None).await;
    let mut on_one = Stream::open(&server, "?channel=w%3Aw", None).await;
    let mut popped = Stream::open(&server, "?channel=popped&after=0", None).await;
    worker.post("/track", json!("b")).await.ok();
    worker.pop_ids("work", 2).await;
    server
        .by("boss")
        .at(0)
        .post("/cancel", json!(["a", "b"]))
        .await
        .ok();
    assert_eq!(popped.jobs(1).await, ["b"]);
    assert_eq!(on_one.jobs(2).await, ["a", "b"]);
    // A server may send other events in the channel `log`.
    let (_, event) = loop {
        let last_event = log.next().await;
        assert_eq!(last_event.1["channel"], "log");
        if last_event.1["data"]["event"] == "canceled" {
            break last_event;
        }
    };
    assert_eq!(event["data"]["id"], "a");
}

#[tokio::test]
async fn invalid_streams_get_the_usual_errors() {
    let server = Server::start();
    let address = format!("http://{}/events?after=x", server.address);
    let request = server
        .http
        .get(address)
        .header("accept", "text/event-stream");
    let response = request.send().await.unwrap();
    assert_eq!(response.status().as_u16(), 400);
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(
        (&body["code"], &body["field"]),
        (&json!("bad_request"), &json!("after"))
    );
}

#[tokio::test]
async fn a_stop_does_not_wait_for_streams() {
    let mut logged = Logged::with("warn", &["--trust-client-clock"]);
    let server = &logged.server;
    let mut stream = Stream::open(server, "", None).await;
    server.at(0).add_ids("work", &["a"]).await;
    assert_eq!(stream.jobs(1).await, ["a"]);
    logged.stop_in_time().await;
    // The stream ends.
    let rest = async { while let Ok(Some(_)) = stream.response.chunk().await {} };
    let ended = tokio::time::timeout(WAIT_MAX, rest).await;
    assert!(ended.is_ok());
}
