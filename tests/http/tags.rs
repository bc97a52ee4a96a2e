//! `/tag`, `/untag`, and the jobs that have a tag.

use serde_json::{Value, json};

use crate::support::{Server, escape, ids};

/// The IDs of the jobs with this tag.
async fn tagged(server: &Server, tag: &str) -> Value {
    let path = format!("/tag/{}?limit=1000", escape(tag));
    let whole = server.at(0).get(&path).await.ok();
    let jobs = whole["jobs"].as_array().unwrap();
    assert_eq!(whole["total"], jobs.len());
    whole["jobs"].clone()
}

#[tokio::test]
async fn tags_are_added_once_in_order_and_removed() {
    let server = Server::start();
    let client = server.at(0);
    let item = json!({"id": "a", "meta": 1, "tags": ["x"]});
    client.add("work", item).await;
    for (path, tags, now) in [
        ("/tag", json!(["z", "y", "x", "z"]), json!(["x", "z", "y"])),
        ("/tag", json!([]), json!(["x", "z", "y"])),
        ("/untag", json!(["z", "nobody's"]), json!(["x", "y"])),
        ("/tag", json!(["z"]), json!(["x", "y", "z"])),
        ("/untag", json!(["x", "y", "z"]), json!([])),
    ] {
        let response = client.post(path, json!({"id": "a", "tags": tags})).await;
        assert_eq!(response.ok(), now, "{path} {tags}");
        assert_eq!(client.job("a").await["tags"], now, "{path} {tags}");
    }
    assert_eq!(tagged(&server, "x").await, json!([]));
}

#[tokio::test]
async fn jobs_with_a_tag_are_ordered_by_tagging_time_then_id() {
    let server = Server::start();
    server.at(0).add_ids("work", &["d", "c", "b", "a"]).await;
    for (now, id) in [(7, "a"), (5, "d"), (5, "b")] {
        let item = json!({"id": id, "tags": ["t"]});
        server.at(now).post("/tag", item).await.ok();
    }
    let item = json!({"id": "e", "meta": 1, "tags": ["t", "u"]});
    server.at(6).add("work", item).await;
    let order = ["b", "d", "e", "a"];
    assert_eq!(tagged(&server, "t").await, json!(order));
    for (query, from, to) in [
        ("", 0, 4),
        ("?limit=2", 0, 2),
        ("?offset=1&limit=2", 1, 3),
        ("?offset=3", 3, 4),
        ("?offset=9", 4, 4),
        ("?limit=0", 4, 4),
    ] {
        let page = server.at(0).get(&format!("/tag/t{query}")).await.ok();
        let expected = json!({"total": 4, "jobs": order[from..to]});
        assert_eq!(page, expected, "{query}");
    }
    let none = json!({"total": 0, "jobs": []});
    assert_eq!(server.at(0).get("/tag/T").await.ok(), none);
}

#[tokio::test]
async fn a_page_has_25_jobs_by_default() {
    let server = Server::start();
    let names: Vec<String> = (0..30).map(|index| format!("j{index:02}")).collect();
    for id in &names {
        let item = json!({"id": id, "meta": 1, "tags": ["t"]});
        server.at(0).add("work", item).await;
    }
    let page = server.at(0).get("/tag/t").await.ok();
    assert_eq!(page, json!({"total": 30, "jobs": names[..25]}));
}

#[tokio::test]
async fn tagging_twice_changes_nothing() {
    let server = Server::start();
    for (now, id) in [(1, "a"), (2, "b"), (3, "a")] {
        if now < 3 {
            server.at(now).add_ids("work", &[id]).await;
        }
        let item = json!({"id": id, "tags": ["t", "t"]});
        let tags = server.at(now).post("/tag", item).await.ok();
        assert_eq!(tags, json!(["t"]));
    }
    assert_eq!(tagged(&server, "t").await, json!(["a", "b"]));
    // It counts once per job: if two jobs have it and one loses it, one job has it.
    let item = json!({"id": "a", "tags": ["t"]});
    server.at(4).post("/untag", item).await.ok();
    assert_eq!(server.at(4).get("/tags").await.ok(), json!([]));
    assert_eq!(tagged(&server, "t").await, json!(["b"]));
}

#[tokio::test]
async fn tags_of_at_least_two_jobs_are_listed_most_used_first() {
    let server = Server::start();
    let client = server.at(0);
    assert_eq!(client.get("/tags").await.ok(), json!([]));
    for index in 0..30 {
        // `t01` has one job, `t02` two, and so on.
        let tags: Vec<String> = (index + 1..=30).map(|n| format!("t{n:02}")).collect();
        client.add("work", json!({"meta": 1, "tags": tags})).await;
    }
    let all: Vec<String> = (2..=30).rev().map(|n| format!("t{n:02}")).collect();
    for (query, expected) in [
        ("", &all[..25]),
        ("?limit=100", &all[..]),
        ("?limit=2", &all[..2]),
        ("?offset=27", &all[27..]),
        ("?offset=3&limit=1", &all[3..4]),
    ] {
        let tags = client.get(&format!("/tags{query}")).await.ok();
        assert_eq!(tags, json!(expected), "{query}");
    }
}

#[tokio::test]
async fn a_put_with_tags_replaces_them_and_without_keeps_them() {
    let server = Server::start();
    let client = server.at(0);
    let put = async |extra: Value| {
        let mut item = extra;
        item["id"] = "a".into();
        item["meta"] = 1.into();
        client.add("work", item).await;
        let mut found = Vec::new();
        for tag in ["old", "both", "new"] {
            if tagged(&server, tag).await == json!(["a"]) {
                found.push(tag);
            }
        }
        found
    };
    assert_eq!(put(json!({"tags": ["old", "both"]})).await, ["old", "both"]);
    assert_eq!(put(json!({})).await, ["old", "both"]);
    assert_eq!(put(json!({"tags": ["both", "new"]})).await, ["both", "new"]);
    let item = json!({"id": "a", "meta": 1, "tags": ["new", "old"]});
    client.post("/requeue/work", item).await.ok();
    assert_eq!(put(json!({})).await, ["old", "new"]);
    assert_eq!(put(json!({"tags": []})).await, [""; 0]);
}

#[tokio::test]
async fn a_job_keeps_its_tags_until_it_is_removed() {
    let server = Server::start();
    let worker = server.by("w");
    worker.set("jobs-history", json!(100)).await.ok();
    for id in ["completed", "cancelled", "failed"] {
        let item = json!({"id": id, "meta": 1, "tags": ["t", id]});
        worker.at(0).add_and_pop(item).await;
    }
    worker.at(1).complete("work", "completed").await;
    worker.at(1).fail("failed", "g").await;
    let all = json!(["cancelled", "completed", "failed"]);
    assert_eq!(tagged(&server, "t").await, all);
    worker.at(2).post("/cancel", json!("cancelled")).await.ok();
    assert_eq!(tagged(&server, "t").await, json!(["completed", "failed"]));
    assert_eq!(tagged(&server, "cancelled").await, json!([]));
    assert_eq!(server.at(2).get("/tags").await.ok(), json!(["t"]));
    // Completing another job deletes the old complete job.
    let last = json!({"id": "last", "meta": 1});
    worker.at(101).add_and_pop(last).await;
    worker.at(101).complete("work", "last").await;
    worker
        .at(101)
        .get("/job/completed")
        .await
        .assert_rejected(404, "no_such_job");
    assert_eq!(tagged(&server, "t").await, json!(["failed"]));
    assert_eq!(tagged(&server, "completed").await, json!([]));
    assert_eq!(server.at(101).get("/tags").await.ok(), json!([]));
}

#[tokio::test]
async fn invalid_tags_are_rejected_individually() {
    let server = Server::start();
    let client = server.at(0);
    client.add_ids("work", &["a"]).await;
    for path in ["/tag", "/untag"] {
        for (item, field) in [
            (json!({"tags": ["t"]}), "id"),
            (json!({"id": 1, "tags": ["t"]}), "id"),
            (json!({"id": "", "tags": ["t"]}), "id"),
            (json!({"id": "a"}), "tags"),
            (json!({"id": "a", "tags": "t"}), "tags"),
            (json!({"id": "a", "tags": null}), "tags"),
            (json!({"id": "a", "tags": ["t", 1]}), "tags"),
            (json!({"id": "a", "tags": ["t", ""]}), "tags"),
            (json!({"id": "a", "tags": ["t".repeat(256)]}), "tags"),
        ] {
            client.post(path, item).await.assert_rejected_field(field);
        }
        let missing = json!({"id": "nobody", "tags": ["t"]});
        let refused = client.post(path, missing.clone()).await;
        assert_eq!(refused.assert_rejected(404, "no_such_job")["id"], "nobody");
        client
            .post(path, json!("a"))
            .await
            .assert_rejected(400, "bad_request");
        let items = json!([missing, {"id": "a", "tags": ["t"]}, {"id": "a"}]);
        let whole = client.post(path, items).await.whole();
        let now = if path == "/tag" {
            json!(["t"])
        } else {
            json!([])
        };
        assert_eq!(whole["results"], json!([false, now, false]));
        assert_eq!(whole["errors"][0]["code"], "no_such_job");
        assert_eq!(whole["errors"][1], Value::Null);
        assert_eq!(whole["errors"][2]["field"], "tags");
    }
}

#[tokio::test]
async fn invalid_pages_are_rejected() {
    let server = Server::start();
    for path in ["/tag/t", "/tags"] {
        for field in ["offset", "limit"] {
            for number in ["x", "-1", "1.5", "", "99999999999999999999"] {
                let response = server.at(0).get(&format!("{path}?{field}={number}")).await;
                response.assert_rejected_field(field);
            }
        }
    }
}

#[tokio::test]
async fn a_tag_can_be_any_text() {
    let server = Server::start();
    let tags = [
        "a/b",
        "日本 🦀",
        "%2F",
        "a+b",
        "'; DROP TABLE tags; --",
        "?q=1&r#s",
    ];
    for (id, tag) in (0..).zip(tags) {
        let id = format!("job{id}");
        let item = json!({"id": id, "meta": 1});
        server.at(0).add("work", item).await;
        let item = json!({"id": id, "tags": [tag]});
        assert_eq!(server.at(0).post("/tag", item).await.ok(), json!([tag]));
        assert_eq!(tagged(&server, tag).await, json!([id]), "{tag}");
    }
    let jobs = server.at(0).get("/jobs/waiting/work?full=true").await.ok();
    assert_eq!(ids(&jobs).len(), tags.len());
}
