//! Limits: one below, at, and one above each limit.

mod fields;
mod pages;
mod queues;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Server, escape};

/// Names of 254, 255 and 256 bytes, some of which end with multibyte characters; and whether they are valid.
fn names() -> [(String, bool); 5] {
    [
        ("n".repeat(254), true),
        ("n".repeat(255), true),
        ("n".repeat(256), false),
        ("日".repeat(85), true),
        (format!("{}b", "日".repeat(85)), false),
    ]
}

#[tokio::test]
async fn a_name_has_at_most_255_bytes() {
    let server = Server::start();
    for (name, fits) in names() {
        let worker = server.by("w").at(0);
        let path = escape(&name);
        let expect = |response: crate::support::Response, field: &str| match fits {
            true => drop(response.whole()),
            false => response.assert_rejected_field(field),
        };
        expect(
            worker
                .post(&format!("/add/{path}"), json!({"meta": 1}))
                .await,
            "queue",
        );
        expect(worker.get(&format!("/get/{path}")).await, "queue");
        expect(worker.get(&format!("/peek/{path}/5")).await, "queue");
        expect(worker.get(&format!("/queue/{path}")).await, "queue");
        expect(worker.get(&format!("/worker/{path}")).await, "worker");
        expect(worker.get(&format!("/jobs/waiting/{path}")).await, "queue");
        expect(
            worker
                .post("/add/work", json!({"id": name, "meta": 1}))
                .await,
            "id",
        );
        expect(
            worker
                .post(
                    "/add/work",
                    json!({"id": "tags", "meta": 1, "tags": [name]}),
                )
                .await,
            "tags",
        );
        expect(
            worker
                .post(
                    "/add/work",
                    json!({"id": "dep", "meta": 1, "depends": [name]}),
                )
                .await,
            "depends",
        );
        expect(server.by(&name).at(0).get("/get/nowhere").await, "host");
        expect(
            server.by(&name).at(0).post("/cancel", json!([])).await,
            "host",
        );
        worker.add("own", json!({"id": "x", "meta": 1})).await;
        worker.pop("own").await;
        let next = json!({"id": "x", "meta": 1, "next": name});
        expect(worker.post("/complete/own", next).await, "next");
        let job = worker.get(&format!("/job/{path}")).await;
        if fits {
            assert_eq!(job.ok()["id"], *name);
        } else {
            job.assert_rejected_field("id");
        }
    }
}

#[tokio::test]
async fn a_name_is_not_empty_and_has_no_control_characters() {
    let server = Server::start();
    for name in ["%00", "a%00", "%1F", "%7F", "a%0D%0Ab", "%C2%85"] {
        for (path, field) in [
            ("queue", "queue"),
            ("get", "queue"),
            ("job", "id"),
            ("worker", "worker"),
        ] {
            server
                .client()
                .get(&format!("/{path}/{name}"))
                .await
                .assert_rejected_field(field);
        }
    }
}

/// The maximum size of a request body.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

#[tokio::test]
async fn a_body_has_at_most_16_mib() {
    let server = Server::start();
    let body = |bytes: usize| {
        let head = "{\"data\":{\"id\":\"big\",\"meta\":\"";
        let tail = "\"}}";
        format!(
            "{head}{}{tail}",
            "x".repeat(bytes - head.len() - tail.len())
        )
    };
    for bytes in [BODY_BYTES_MAX - 1, BODY_BYTES_MAX] {
        let response = server
            .send(Method::POST, "/add/work", Some(body(bytes)))
            .await;
        assert_eq!(response.ok(), "big", "{bytes} bytes");
        let got = server.client().get("/job/big").await;
        assert!(got.meta_text().len() > bytes - 100, "it comes back whole");
    }
    for path in ["/add/work", "/cancel", "/get/work", "/complete/work"] {
        let response = server
            .send(Method::POST, path, Some(body(BODY_BYTES_MAX + 1)))
            .await;
        response.assert_rejected(413, "too_large");
    }
}

#[tokio::test]
async fn an_array_has_at_most_10000_items() {
    let server = Server::start();
    for (count, fits) in [(9_999, true), (10_000, true), (10_001, false)] {
        let items = vec![json!("nobody"); count];
        let response = server.client().post("/cancel", items.into()).await;
        if fits {
            assert_eq!(response.ok().as_array().unwrap().len(), count);
        } else {
            response.assert_rejected_field("data");
        }
        // A job can have 2,000 tags.
        let ids = (0..count).map(|index| format!("d{}", index % 2_000));
        let ids: Vec<String> = ids.collect();
        for field in ["depends", "tags"] {
            let response = server
                .client()
                .post("/add/work", json!({"id": "a", "meta": 1, field: ids}))
                .await;
            if fits {
                assert_eq!(response.ok(), "a");
            } else {
                response.assert_rejected_field(field);
            }
        }
    }
}

#[tokio::test]
async fn a_page_has_at_most_10000_entries() {
    let server = Server::start();
    for path in ["/jobs/waiting/work", "/jobs/complete", "/failed/g"] {
        for (limit, fits) in [(9_999, true), (10_000, true), (10_001, false)] {
            let response = server.client().get(&format!("{path}?limit={limit}")).await;
            if fits {
                response.ok();
            } else {
                response.assert_rejected_field("limit");
            }
        }
    }
}

#[tokio::test]
async fn extreme_numbers_are_accepted_or_rejected_without_a_fault() {
    let server = Server::start();
    let numbers = [
        "0",
        "-0",
        "-1",
        "1e15",
        "-1e15",
        "1e18",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "18446744073709551616",
        "1e300",
        "-1e300",
        "1e-300",
        "1e400",
        "-1e400",
    ];
    for number in numbers {
        for field in ["delay", "priority", "retries"] {
            let body =
                format!("{{\"now\":0,\"data\":{{\"id\":\"a\",\"meta\":1,\"{field}\":{number}}}}}");
            let response = server.send(Method::POST, "/add/work", Some(body)).await;
            assert!([200, 400].contains(&response.status), "{response:?}");
            // An accepted number does not break later requests.
            server.at(0).get("/queues").await.ok();
            server.at(0).get("/peek/work/10").await.ok();
            server.at(0).get("/get/work/10").await.ok();
            server
                .at(0)
                .get("/jobs/scheduled/work?full=true")
                .await
                .ok();
        }
        let body = format!("{{\"now\":{number},\"data\":{{\"id\":\"b\",\"meta\":1}}}}");
        let response = server.send(Method::POST, "/add/work", Some(body)).await;
        assert!([200, 400].contains(&response.status), "{response:?}");
        for path in ["/get/work", "/queues", "/workers", "/jobs/stalled/work"] {
            let response = server.client().get(&format!("{path}?now={number}")).await;
            assert!([200, 400].contains(&response.status), "{response:?}");
        }
    }
}

#[tokio::test]
async fn a_long_array_is_processed_completely() {
    let server = Server::start();
    let items: Vec<Value> = (0..10_000)
        .map(|index| json!({"id": format!("j{index}"), "meta": index}))
        .collect();
    let added = server.at(0).post("/add/work", items.into()).await.ok();
    assert_eq!(added.as_array().unwrap().len(), 10_000);
    assert_eq!(
        server.at(0).get("/queue/work").await.ok()["waiting"],
        10_000
    );
    let ids = server.at(0).pop_ids("work", 10_000).await;
    let done: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id, "meta": null}))
        .collect();
    let done = server.at(0).post("/complete/work", done.into()).await.ok();
    assert_eq!(done, json!(ids));
}

/// Long bodies are stored separately from the rest of a job; see `LONG` in `src/engine/model/body.rs`.
#[tokio::test]
async fn bodies_of_any_length_are_returned_after_every_write() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    let lengths = [65_535, 65_536, 65_537, 1_000_000, 8];
    // The length includes the JSON quotes.
    let body = |length: usize| json!(format!("\"\\é{}", "x".repeat(length - 8)));
    let item = |length: usize| json!({"id": format!("j{length}"), "meta": body(length)});
    let items: Vec<Value> = lengths.into_iter().map(item).collect();
    worker.post("/add/work", items.into()).await.ok();
    for (turn, length) in lengths.into_iter().enumerate() {
        let id = format!("j{length}");
        assert_eq!(worker.job(&id).await["meta"], body(length));
        let job = worker.pop("work").await;
        assert_eq!((&job["id"], &job["meta"]), (&json!(id), &body(length)));
        // Each job gets the body of another one.
        let beat = json!({"id": id, "meta": body(lengths[(turn + 1) % 5])});
        worker.post("/heartbeat", beat).await.ok();
        assert_eq!(worker.job(&id).await["meta"], body(lengths[(turn + 1) % 5]));
        let done = json!({"id": id, "meta": body(lengths[(turn + 2) % 5])});
        worker.post("/complete/work", done).await.ok();
        assert_eq!(worker.job(&id).await["meta"], body(lengths[(turn + 2) % 5]));
    }
}

/// The dependencies must be found by ID, not by reading all jobs for each of them.
#[tokio::test]
async fn a_job_can_have_2000_dependencies() {
    let server = Server::start();
    let worker = server.at(0);
    let mut ids: Vec<String> = (0..2_000).map(|index| format!("j{index}")).collect();
    let items: Vec<Value> = ids.iter().map(|id| json!({"id": id, "meta": 1})).collect();
    worker.post("/add/work", items.into()).await.ok();
    let fewer = json!({"id": "fewer", "meta": 1, "depends": ids[1..]});
    assert_eq!(worker.post("/add/work", fewer).await.ok(), "fewer");
    let all = json!({"id": "fewer", "on": ["j0"]});
    worker.post("/depends", all).await.ok();
    let last = json!({"id": "last", "meta": 1, "depends": ids});
    assert_eq!(worker.post("/add/work", last).await.ok(), "last");
    assert_eq!(worker.state("last").await, "depends");
    worker.add("work", json!({"id": "more", "meta": 1})).await;
    let depend = json!({"id": "last", "on": ["more"]});
    worker
        .post("/depends", depend)
        .await
        .assert_rejected_field("data");
    ids.push("more".to_owned());
    let another = json!({"id": "another", "meta": 1, "depends": ids});
    let refused = worker.post("/add/work", another).await;
    refused.assert_rejected_field("data");
    // IDs of missing jobs count, because they are looked up too.
    for (count, fits) in [(1_999, true), (2_000, true), (2_001, false)] {
        let missing: Vec<String> = (0..count).map(|index| format!("missing{index}")).collect();
        let job = json!({"id": "unrelated", "meta": 1, "depends": missing});
        let response = worker.post("/add/work", job).await;
        match fits {
            true => assert_eq!(response.ok(), "unrelated"),
            false => response.assert_rejected_field("data"),
        }
    }
    let gone = worker.post("/cancel", json!("last")).await.ok();
    assert_eq!(gone, "last");
}

#[tokio::test]
async fn a_job_with_2000_dependents_releases_all_of_them() {
    let server = Server::start();
    let worker = server.at(0);
    worker.add("work", json!({"id": "first", "meta": 1})).await;
    let waiting = |n| json!({"id": format!("j{n}"), "meta": 1, "depends": ["first"]});
    let items: Vec<Value> = (0..1_999).map(waiting).collect();
    worker.post("/add/work", items.into()).await.ok();
    worker.post("/add/work", waiting(1_999)).await.ok();
    let refused = worker.post("/add/work", waiting(2_000)).await;
    refused.assert_rejected_field("data");
    // An existing dependency does not count again.
    worker.post("/add/work", waiting(17)).await.ok();
    assert_eq!(worker.pop_ids("work", 9).await, ["first"]);
    worker.complete("work", "first").await;
    assert_eq!(worker.pop_ids("work", 10_000).await.len(), 2_000);
}
