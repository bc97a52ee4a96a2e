//! `/events` as a list of events. The stream is tested in `stream.rs`.

use serde_json::{Value, json};

use crate::support::{Server, escape};

/// The documented events in the channels `log` and `w:…`; a server may send others.
const NAMES: [&str; 8] = [
    "put",
    "completed",
    "advanced",
    "failed",
    "lock_lost",
    "canceled",
    "config_set",
    "config_unset",
];

const NOTHING: [Value; 0] = [];

/// The number of the newest event.
async fn newest(server: &Server) -> i64 {
    let page = server.at(0).get("/events?limit=10000").await.ok();
    page["last"].as_i64().unwrap()
}

/// The events after this one, as `[channel, data]`.
async fn events_since(server: &Server, after: i64) -> Vec<Value> {
    let path = format!("/events?after={after}&limit=10000");
    let page = server.at(0).get(&path).await.ok();
    let events = page["events"].as_array().unwrap().iter();
    events
        .filter(|event| match &event["data"]["event"] {
            Value::String(name) => NAMES.contains(&name.as_str()),
            _ => true,
        })
        .map(|event| json!([event["channel"], event["data"]]))
        .collect()
}

#[tokio::test]
async fn events_have_numbers_and_times() {
    let server = Server::start();
    let none = server.at(0).get("/events").await.ok();
    assert_eq!(none["events"], json!([]));
    for (now, id) in [(10.5, "a"), (5.0, "b"), (7.0, "c")] {
        server.at(now).add_ids("work", &[id]).await;
    }
    let page = server.at(0).get("/events").await.ok();
    let events = page["events"].as_array().unwrap();
    assert_eq!(events.len(), 3, "{page}");
    let seqs: Vec<i64> = events
        .iter()
        .map(|event| event["seq"].as_i64().unwrap())
        .collect();
    assert!(seqs.is_sorted_by(|one, next| one < next), "{seqs:?}");
    assert_eq!(page["last"], seqs[2]);
    let expected = json!({"seq": seqs[1], "when": 5, "channel": "log",
                          "data": {"event": "put", "id": "b", "queue": "work"}});
    assert_eq!(events[1], expected);
    assert_eq!(events[0]["when"], 10.5);
}

#[tokio::test]
async fn continuing_after_the_last_event_misses_nothing() {
    let server = Server::start();
    let names: Vec<String> = (0..25).map(|index| format!("j{index:02}")).collect();
    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    server.at(0).add_ids("work", &ids[..20]).await;
    // Filtered events do not hide later ones.
    for (limit, channel) in [(1, ""), (7, ""), (3, "&channel=log"), (100, "&channel=log")] {
        let mut seen = Vec::new();
        let mut after = json!(0);
        loop {
            let path = format!("/events?after={after}&limit={limit}{channel}");
            let page = server.at(0).get(&path).await.ok();
            let events = page["events"].as_array().unwrap();
            assert!(events.len() <= limit, "{page}");
            seen.extend(events.iter().map(|event| event["data"]["id"].clone()));
            if events.is_empty() {
                break;
            }
            after = page["last"].clone();
        }
        assert_eq!(json!(seen), json!(ids[..20]), "{limit} {channel}");
    }
    // This also works from an end with no further events.
    let mark = newest(&server).await;
    let page = server
        .at(0)
        .get(&format!("/events?after={mark}"))
        .await
        .ok();
    assert_eq!(page, json!({"events": [], "last": mark}));
    // An end beyond all events.
    let path = format!("/events?after={}", i64::MAX);
    let page = server.at(0).get(&path).await.ok();
    assert_eq!(page, json!({"events": [], "last": mark}));
    server.at(0).add_ids("work", &ids[20..]).await;
    let events_since = events_since(&server, mark).await;
    let events_since: Vec<&Value> = events_since.iter().map(|event| &event[1]["id"]).collect();
    assert_eq!(json!(events_since), json!(ids[20..]));
}

#[tokio::test]
async fn a_page_has_100_events_by_default() {
    let server = Server::start();
    let items = vec![json!({"meta": 1}); 150];
    server.at(0).post("/add/work", items.into()).await.ok();
    for (query, count) in [("", 100), ("?limit=10000", 150), ("?limit=1", 1)] {
        let page = server.at(0).get(&format!("/events{query}")).await.ok();
        assert_eq!(page["events"].as_array().unwrap().len(), count, "{query}");
        assert_eq!(page["events"][count - 1]["seq"], page["last"], "{query}");
    }
    for field in ["after", "limit"] {
        for number in ["x", "-1", "1.5", "", "1e3", "99999999999999999999"] {
            let response = server.at(0).get(&format!("/events?{field}={number}")).await;
            response.assert_rejected_field(field);
        }
    }
    for limit in ["0", "10001"] {
        let response = server.at(0).get(&format!("/events?limit={limit}")).await;
        response.assert_rejected_field("limit");
    }
}

#[tokio::test]
async fn events_can_be_filtered_by_channel() {
    let server = Server::start();
    let worker = server.by("a/b").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker.post("/track", json!("a")).await.ok();
    server.by("v").at(100).pop("work").await;
    for (channel, data) in [
        (
            "w:a/b",
            json!([{"event": "lock_lost", "id": "a", "worker": "a/b"}]),
        ),
        ("stalled", json!(["a"])),
        ("popped", json!(["a"])),
        ("completed", json!([])),
        ("nonsense", json!([])),
    ] {
        let path = format!("/events?channel={}", escape(channel));
        let page = server.at(0).get(&path).await.ok();
        let events = page["events"].as_array().unwrap();
        let events_since: Vec<&Value> = events.iter().map(|event| &event["data"]).collect();
        assert_eq!(json!(events_since), data, "{channel}");
        assert!(events.iter().all(|event| event["channel"] == channel));
    }
}

#[tokio::test]
async fn a_put_notifies_the_worker_that_loses_its_lease() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    let put = json!(["log", {"event": "put", "id": "a", "queue": "work"}]);
    let lost = json!({"event": "lock_lost", "id": "a", "worker": "w"});
    let item = json!({"id": "a", "meta": 1});
    worker.add_and_pop(item.clone()).await;
    assert_eq!(events_since(&server, 0).await, std::slice::from_ref(&put));
    worker.post("/track", json!("a")).await.ok();
    let mark = newest(&server).await;
    server.by("v").at(1).add("work", item.clone()).await;
    assert_eq!(
        events_since(&server, mark).await,
        [
            put.clone(),
            json!(["w:w", lost]),
            json!(["log", lost]),
            json!(["put", "a"])
        ]
    );
    // Workers are not notified of their own actions.
    worker.pop("work").await;
    let mark = newest(&server).await;
    worker.add("work", item).await;
    assert_eq!(
        events_since(&server, mark).await,
        [put, json!(["put", "a"])]
    );
}

#[tokio::test]
async fn the_end_of_a_tracked_job_is_an_event() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    for id in ["done", "on", "failed"] {
        worker.add("work", json!({"id": id, "meta": 1})).await;
        worker.post("/track", json!(id)).await.ok();
    }
    let mark = newest(&server).await;
    worker.pop("work").await;
    assert_eq!(
        events_since(&server, mark).await,
        [json!(["popped", "done"])]
    );
    let mark = newest(&server).await;
    worker.complete("work", "done").await;
    assert_eq!(
        events_since(&server, mark).await,
        [
            json!(["completed", "done"]),
            json!(["log", {"event": "completed", "id": "done", "queue": "work"}]),
        ]
    );
    worker.pop_ids("work", 2).await;
    let mark = newest(&server).await;
    let on = json!({"id": "on", "meta": 1, "next": "other"});
    worker.post("/complete/work", on).await.ok();
    assert_eq!(
        events_since(&server, mark).await,
        [
            json!(["completed", "on"]),
            json!(["log", {"event": "advanced", "id": "on", "queue": "work", "to": "other"}]),
        ]
    );
    let mark = newest(&server).await;
    let failure = json!({"id": "failed", "group": "g", "message": "m"});
    worker.post("/fail", failure).await.ok();
    let failed =
        json!({"event": "failed", "id": "failed", "group": "g", "message": "m", "worker": "w"});
    assert_eq!(
        events_since(&server, mark).await,
        [json!(["log", failed]), json!(["failed", "failed"])]
    );
}

#[tokio::test]
async fn a_cancel_notifies_the_worker_of_the_job() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker
        .add_ids("work", &["running", "waiting", "alone"])
        .await;
    worker.pop("work").await;
    let tracked = json!(["running", "waiting"]);
    worker.post("/track", tracked).await.ok();
    let mark = newest(&server).await;
    server
        .by("boss")
        .at(0)
        .post("/cancel", json!("running"))
        .await
        .ok();
    let canceled = json!({"event": "canceled", "id": "running", "queue": "work", "worker": "w"});
    assert_eq!(
        events_since(&server, mark).await,
        [
            json!(["log", canceled]),
            json!(["w:w", canceled]),
            json!(["canceled", "running"])
        ]
    );
    let mark = newest(&server).await;
    server
        .by("boss")
        .at(0)
        .post("/cancel", json!("waiting"))
        .await
        .ok();
    let events = events_since(&server, mark).await;
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(events[0][0], "log");
    assert_eq!(events[0][1]["event"], "canceled");
    assert_eq!(events[0][1]["worker"], Value::Null);
    assert_eq!(events[1], json!(["canceled", "waiting"]));
    let mark = newest(&server).await;
    worker.post("/cancel", json!("alone")).await.ok();
    assert_eq!(
        events_since(&server, mark).await.len(),
        1,
        "the job is not tracked"
    );
}

#[tokio::test]
async fn a_claim_of_an_expired_lease_is_an_event() {
    let server = Server::start();
    let worker = server.by("w");
    let item = json!({"id": "a", "meta": 1, "retries": 1});
    worker.at(0).add_and_pop(item).await;
    worker.at(0).post("/track", json!("a")).await.ok();
    let mark = newest(&server).await;
    let lost = |worker: &str| json!({"event": "lock_lost", "id": "a", "worker": worker});
    assert_eq!(server.at(60).state("a").await, "stalled");
    assert_eq!(
        events_since(&server, mark).await,
        NOTHING,
        "reads publish no events"
    );
    server.by("v").at(60).pop("work").await;
    assert_eq!(
        events_since(&server, mark).await,
        [
            json!(["stalled", "a"]),
            json!(["w:w", lost("w")]),
            json!(["log", lost("w")]),
            json!(["popped", "a"]),
        ]
    );
    // The last attempt.
    let mark = newest(&server).await;
    server.by("u").at(120).pop("work").await;
    let failed = json!({"event": "failed", "id": "a", "group": "failed-retries-work",
                        "message": "Job exhausted retries in queue \"work\"", "worker": "v"});
    assert_eq!(
        events_since(&server, mark).await,
        [
            json!(["stalled", "a"]),
            json!(["w:v", lost("v")]),
            json!(["log", lost("v")]),
            json!(["failed", "a"]),
            json!(["log", failed]),
        ]
    );
}

#[tokio::test]
async fn timeout_is_a_lock_lost_event_and_retry_is_not() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    let item = json!({"id": "a", "meta": 1, "retries": 0});
    worker.add_and_pop(item).await;
    let mark = newest(&server).await;
    server
        .by("boss")
        .at(1)
        .post("/timeout", json!("a"))
        .await
        .ok();
    let lost = json!({"event": "lock_lost", "id": "a", "worker": "w"});
    assert_eq!(
        events_since(&server, mark).await,
        [json!(["w:w", lost]), json!(["log", lost])]
    );
    worker.pop("work").await;
    let mark = newest(&server).await;
    worker.post("/retry/work", json!({"id": "a"})).await.ok();
    assert_eq!(worker.state("a").await, "failed", "once too often");
    let failed = |event: &Value| event[1]["event"] == "failed" || event[1]["event"] == "lock_lost";
    let events = events_since(&server, mark).await;
    assert!(!events.iter().any(failed), "{events:?}");
}

#[tokio::test]
async fn changes_of_options_and_tracking_are_events() {
    let server = Server::start();
    let client = server.by("w").at(0);
    client.add_ids("work", &["a"]).await;
    let mark = newest(&server).await;
    client.set("heartbeat", json!(30)).await.ok();
    client.set("colour", json!({"of": "sheds"})).await.ok();
    client.delete("/config/colour").await.ok();
    client.set("heartbeat", Value::Null).await.ok();
    client.post("/track", json!("a")).await.ok();
    client.post("/untrack", json!("a")).await.ok();
    client.pop("work").await;
    let expected = [
        json!(["log", {"event": "config_set", "option": "heartbeat", "value": 30}]),
        json!(["log", {"event": "config_set", "option": "colour", "value": {"of": "sheds"}}]),
        json!(["log", {"event": "config_unset", "option": "colour"}]),
        json!(["log", {"event": "config_unset", "option": "heartbeat"}]),
        json!(["track", "a"]),
        json!(["untrack", "a"]),
    ];
    assert_eq!(events_since(&server, mark).await, expected);
}

#[tokio::test]
async fn rejected_requests_create_no_events() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a"]).await;
    let mark = newest(&server).await;
    worker
        .post("/add/work", json!({"id": "b"}))
        .await
        .assert_rejected_field("meta");
    let done = json!([{"id": "a", "meta": 1}]);
    worker.post("/complete/work", done).await.ok();
    worker.post("/track", json!(["nobody"])).await.ok();
    worker
        .set("heartbeat", json!("soon"))
        .await
        .assert_rejected_field("data");
    assert_eq!(events_since(&server, mark).await, NOTHING);
}

#[tokio::test]
async fn events_and_their_numbers_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("jobs.db");
    let server = Server::on(&database, &["--trust-client-clock"]);
    server.at(0).add_ids("work", &["a", "b"]).await;
    let mark = newest(&server).await;
    let before = events_since(&server, 0).await;
    server.stop().await;
    let server = Server::on(&database, &["--trust-client-clock"]);
    assert_eq!(events_since(&server, 0).await, before);
    server.at(0).add_ids("work", &["c"]).await;
    let after = events_since(&server, mark).await;
    assert_eq!(after.len(), 1);
    assert_eq!(after[0][1]["id"], "c");
}
