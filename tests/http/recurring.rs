//! Recurring jobs: `/recur`, `/recurring`, and their counts. Children are tested in `spawning.rs`.

use serde_json::{Value, json};

use crate::support::{Server, ids};

#[tokio::test]
async fn a_recurring_job_has_the_documented_defaults() {
    let server = Server::start();
    let item = json!({"id": "r", "meta": {"a": []}, "interval": 60});
    assert_eq!(server.at(0).post("/recur/work", item).await.ok(), "r");
    let recurring = server.at(0).get("/recurring/r").await.ok();
    let expected = json!({"id": "r", "queue": "work", "klass": null, "meta": {"a": []}, "state": "recur",
        "priority": 0, "interval": 60, "retries": 0, "count": 0, "tags": [], "backlog": 0});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(recurring.get(key), Some(value), "{key}: {recurring}");
    }
}

#[tokio::test]
async fn a_recurring_job_has_the_given_fields() {
    let server = Server::start();
    let item = json!({"id": "r", "meta": null, "interval": 0.5, "klass": "K", "offset": 7.5,
        "priority": -1.5, "tags": ["x", "y", "x"], "retries": 3, "backlog": 2});
    server.at(0).post("/recur/work", item).await.ok();
    let recurring = server.at(0).get("/recurring/r").await.ok();
    for (key, value) in [
        ("meta", Value::Null),
        ("interval", json!(0.5)),
        ("klass", json!("K")),
        ("priority", json!(-1.5)),
        ("tags", json!(["x", "y"])),
        ("retries", json!(3)),
        ("backlog", json!(2)),
    ] {
        assert_eq!(recurring.get(key), Some(&value), "{key}: {recurring}");
    }
}

#[tokio::test]
async fn an_id_is_generated_if_missing() {
    let server = Server::start();
    let item = json!({"meta": 1, "interval": 60});
    let made = server.at(0).post("/recur/work", item).await.ok();
    let id = made.as_str().unwrap();
    assert!(
        id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{id}"
    );
    let recurring = server.at(0).get(&format!("/recurring/{id}")).await.ok();
    assert_eq!(recurring["id"], made);
}

#[tokio::test]
async fn invalid_items_are_rejected_individually() {
    let server = Server::start();
    let client = server.at(0);
    let with = |key: &str, value: Value| {
        let mut item = json!({"id": "bad", "meta": 1, "interval": 60});
        item[key] = value;
        item
    };
    let mut bad = vec![
        (json!({"id": "bad", "interval": 60}), "meta"),
        (json!({"id": "bad", "meta": 1}), "interval"),
    ];
    for (field, value) in [
        ("id", json!("")),
        ("id", json!(1)),
        ("klass", json!(1)),
        ("interval", json!(0)),
        ("interval", json!(-60)),
        ("interval", json!("often")),
        ("interval", json!(null)),
        ("offset", json!("later")),
        ("priority", json!("high")),
        ("tags", json!("t")),
        ("tags", json!([1])),
        ("retries", json!("many")),
        ("retries", json!(1.5)),
        ("backlog", json!(-1)),
        ("backlog", json!(1.5)),
        ("backlog", json!("some")),
    ] {
        bad.push((with(field, value), field));
    }
    for (item, field) in &bad {
        let response = client.post("/recur/work", item.clone()).await;
        response.assert_rejected_field(field);
    }
    client
        .get("/recurring/bad")
        .await
        .assert_rejected(404, "no_such_recurring");
    assert_eq!(client.get("/queues").await.ok(), json!([]));
    let mut items = vec![json!({"id": "first", "meta": 1, "interval": 60})];
    items.extend(bad.iter().map(|(item, _)| item.clone()));
    items.push(json!({"id": "last", "meta": 1, "interval": 60}));
    let whole = client.post("/recur/work", items.into()).await.whole();
    assert_eq!(whole["results"][0], "first");
    assert_eq!(whole["errors"][0], Value::Null);
    for (index, (item, field)) in (1..).zip(&bad) {
        assert_eq!(whole["results"][index], false, "{item}");
        assert_eq!(whole["errors"][index]["field"], *field, "{item}");
    }
    assert_eq!(whole["results"][bad.len() + 1], "last");
    let listed = client.get("/jobs/recurring/work").await.ok();
    assert_eq!(listed, json!(["first", "last"]));
}

#[tokio::test]
async fn a_cron_expression_replaces_the_interval() {
    let server = Server::start();
    // Midnight in UTC.
    let who = server.at(1_700_006_400);
    let item = json!({"id": "r", "meta": 1, "cron": " 30  2 * * * ", "timezone": "Europe/Berlin"});
    assert_eq!(who.post("/recur/work", item).await.ok(), "r");
    let recurring = who.get("/recurring/r").await.ok();
    let schedule = |it: &Value| json!([it["cron"], it["timezone"], it["interval"]]);
    assert_eq!(
        schedule(&recurring),
        json!(["30 2 * * *", "Europe/Berlin", 0])
    );
    let listed = who.get("/jobs/recurring/work?full=true").await.ok();
    assert_eq!(listed[0], recurring);
    // 02:30 in Berlin is 01:30 in UTC.
    for (after, children) in [
        (5_399, &[][..]),
        (5_400, &["r-1"]),
        (86_400 + 5_399, &["r-1"]),
        (86_400 + 5_400, &["r-1", "r-2"]),
    ] {
        let waiting = server.at(1_700_006_400 + after).peek_ids("work").await;
        assert_eq!(waiting, children, "after {after} s");
    }

    let later = server.at(1_700_006_400 + 100_000);
    let changed = later
        .post("/recurring/r", json!({"cron": "@hourly"}))
        .await
        .ok();
    assert_eq!(schedule(&changed), json!(["@hourly", "UTC", 0]));
    let changed = later.post("/recurring/r", json!({"priority": 2})).await;
    assert_eq!(schedule(&changed.ok()), json!(["@hourly", "UTC", 0]));
    let changed = later.post("/recurring/r", json!({"interval": 60})).await;
    let changed = changed.ok();
    assert_eq!(changed["interval"], 60);
    for field in ["cron", "timezone"] {
        assert_eq!(changed.get(field), None, "only with a cron expression");
    }
}

#[tokio::test]
async fn invalid_cron_expressions_and_time_zones_are_rejected() {
    let server = Server::start();
    let who = server.at(0);
    let valid = json!({"id": "r", "meta": 1, "cron": "0 9 * * MON-FRI"});
    who.post("/recur/work", valid.clone()).await.ok();
    let before = who.get("/recurring/r").await.ok();
    let mut bad = Vec::new();
    for (schedule, field) in [
        (json!({"cron": ""}), "cron"),
        (json!({"cron": "often"}), "cron"),
        (json!({"cron": "0 * * * * *"}), "cron"),
        (json!({"cron": "0 0 31 2 *"}), "cron"),
        (json!({"cron": 5}), "cron"),
        (json!({"cron": "1,".repeat(200)}), "cron"),
        (json!({"cron": "@daily", "interval": 60}), "cron"),
        (
            json!({"cron": "@daily", "timezone": "Mars/Base"}),
            "timezone",
        ),
        (
            json!({"cron": "@daily", "timezone": "Z".repeat(300)}),
            "timezone",
        ),
        (json!({"cron": "@daily", "timezone": 1}), "timezone"),
        (json!({"interval": 60, "timezone": "UTC"}), "timezone"),
    ] {
        who.post("/recurring/r", schedule.clone())
            .await
            .assert_rejected_field(field);
        let mut item = schedule;
        item["id"] = json!("bad");
        item["meta"] = json!(1);
        bad.push((item, field));
    }
    assert_eq!(who.get("/recurring/r").await.ok(), before);
    let mut items = vec![valid.clone()];
    items.extend(bad.iter().map(|(item, _)| item.clone()));
    items.push(valid);
    let whole = who.post("/recur/work", items.into()).await.whole();
    for (index, (item, field)) in (1..).zip(&bad) {
        assert_eq!(whole["results"][index], false, "{item}");
        assert_eq!(whole["errors"][index]["field"], *field, "{item}");
    }
    assert_eq!(whole["results"][bad.len() + 1], "r");
    let listed = who.get("/jobs/recurring/work").await.ok();
    assert_eq!(listed, json!(["r"]));
}

#[tokio::test]
async fn a_request_has_at_most_100_cron_expressions() {
    let server = Server::start();
    let cron = |n: usize| json!({"id": format!("c{n}"), "meta": 1, "cron": "@daily"});
    let mut items: Vec<Value> = (0..101).map(cron).collect();
    items.push(json!({"id": "every", "meta": 1, "interval": 60}));
    let whole = server.at(0).post("/recur/work", items.into()).await.whole();
    assert_eq!(whole["results"][99], "c99");
    assert_eq!(whole["results"][100], false);
    assert_eq!(whole["errors"][100]["field"], "cron");
    assert_eq!(whole["results"][101], "every");
}

#[tokio::test]
async fn recurring_jobs_are_listed_by_due_time_and_counted() {
    let server = Server::start();
    let who = server.at(0);
    for (id, offset) in [("late", 300), ("soon", 100), ("later", 300), ("now", 0)] {
        let item = json!({"id": id, "meta": id, "interval": 60, "offset": offset});
        who.post("/recur/work", item).await.ok();
    }
    let item = json!({"id": "elsewhere", "meta": 1, "interval": 60});
    who.post("/recur/other", item).await.ok();
    let order = ["now", "soon", "late", "later"];
    let list = async |query: &str| who.get(&format!("/jobs/recurring/work{query}")).await.ok();
    assert_eq!(list("").await, json!(order));
    assert_eq!(list("?offset=1&limit=2").await, json!(order[1..3]));
    let whole = list("?full=true").await;
    assert_eq!(ids(&whole), order);
    assert_eq!(whole[1], who.get("/recurring/soon").await.ok());
    let queue = who.get("/queue/work").await.ok();
    assert_eq!(
        (&queue["name"], &queue["recurring"]),
        (&json!("work"), &json!(4))
    );
    assert_eq!(
        queue["length"], 0,
        "jobs that are not created yet are not waiting"
    );
    let queues = who.get("/queues").await.ok();
    assert_eq!(queues[1], queue, "the queue is listed from then on");
    assert_eq!(
        (&queues[0]["name"], &queues[0]["recurring"]),
        (&json!("other"), &json!(1))
    );
    // When its due time is reached, a child is created and the first job moves in the list.
    assert_eq!(who.at(50).pop("work").await["id"], "now-1");
    who.at(100).pop_ids("work", 9).await;
    assert_eq!(list("").await, json!(["now", "soon", "late", "later"]));
    who.at(130).pop_ids("work", 9).await;
    assert_eq!(list("").await, json!(["soon", "now", "late", "later"]));
}

#[tokio::test]
async fn all_fields_of_a_recurring_job_can_be_changed() {
    let server = Server::start();
    let who = server.at(0);
    let item = json!({"id": "r", "meta": 1, "interval": 60, "tags": ["x", "y"], "klass": "K"});
    who.post("/recur/work", item).await.ok();
    for (change, key, value) in [
        (json!({"priority": -2.5}), "priority", json!(-2.5)),
        (json!({"interval": 90}), "interval", json!(90)),
        (json!({"retries": 4}), "retries", json!(4)),
        (json!({"backlog": 5}), "backlog", json!(5)),
        (
            json!({"meta": {"b": 1, "a": []}}),
            "meta",
            json!({"b": 1, "a": []}),
        ),
        (json!({"klass": "L"}), "klass", json!("L")),
        (json!({"queue": "other"}), "queue", json!("other")),
        (json!({"tag": ["z", "x"]}), "tags", json!(["x", "y", "z"])),
        (
            json!({"untag": ["x", "nobody's"]}),
            "tags",
            json!(["y", "z"]),
        ),
    ] {
        let mut expected = who.get("/recurring/r").await.ok();
        expected[key] = value;
        let changed = who.post("/recurring/r", change.clone()).await.ok();
        assert_eq!(changed, expected, "{change}: nothing else changes");
        assert_eq!(who.get("/recurring/r").await.ok(), expected, "{change}");
    }
    assert_eq!(who.get("/jobs/recurring/work").await.ok(), json!([]));
    assert_eq!(who.get("/jobs/recurring/other").await.ok(), json!(["r"]));
    let both = json!({"priority": 1, "retries": 0, "tag": ["w"], "untag": ["y"]});
    let changed = who.post("/recurring/r", both).await.ok();
    assert_eq!(
        json!([changed["priority"], changed["retries"], changed["tags"]]),
        json!([1, 0, ["z", "w"]])
    );
    let child = server.by("w").at(500).pop("other").await;
    for (key, value) in [
        ("id", json!("r-1")),
        ("meta", json!({"b": 1, "a": []})),
        ("klass", json!("L")),
        ("priority", json!(1)),
        ("retries", json!(0)),
        ("tags", json!(["z", "w"])),
    ] {
        assert_eq!(child[key], value, "{key}");
    }
}

#[tokio::test]
async fn an_invalid_change_is_rejected_and_changes_nothing() {
    let server = Server::start();
    let who = server.at(0);
    let item = json!({"id": "r", "meta": 1, "interval": 60});
    who.post("/recur/work", item).await.ok();
    let before = who.get("/recurring/r").await.ok();
    for (field, value) in [
        ("interval", json!(0)),
        ("interval", json!(-1)),
        ("interval", json!("often")),
        ("priority", json!("high")),
        ("retries", json!(1.5)),
        ("backlog", json!(-1)),
        ("klass", json!(1)),
        ("queue", json!("")),
        ("queue", json!(1)),
        ("tag", json!("t")),
        ("untag", json!([1])),
    ] {
        let mut change = json!({"meta": "new", "retries": 9, "tag": ["new"]});
        change[field] = value;
        let response = who.post("/recurring/r", change).await;
        response.assert_rejected_field(field);
        assert_eq!(who.get("/recurring/r").await.ok(), before, "{field}");
    }
    for data in [json!([]), json!("r"), json!(1)] {
        let response = who.post("/recurring/r", data).await;
        response.assert_rejected(400, "bad_request");
    }
}

#[tokio::test]
async fn an_unknown_recurring_job_is_not_found() {
    let server = Server::start();
    let who = server.at(0);
    // Jobs and recurring jobs have separate IDs.
    who.add_ids("work", &["job"]).await;
    let item = json!({"id": "r", "meta": 1, "interval": 60});
    who.post("/recur/work", item).await.ok();
    for id in ["job", "nobody"] {
        let path = format!("/recurring/{id}");
        let refused = who
            .get(&path)
            .await
            .assert_rejected(404, "no_such_recurring");
        assert_eq!(refused["id"], id);
        let refused = who.post(&path, json!({"priority": 1})).await;
        assert_eq!(refused.assert_rejected(404, "no_such_recurring")["id"], id);
        assert_eq!(who.delete(&path).await.ok(), true);
    }
    who.get("/job/r").await.assert_rejected(404, "no_such_job");
    assert_eq!(who.state("job").await, "waiting");
    for _ in 0..2 {
        assert_eq!(who.delete("/recurring/r").await.ok(), true);
        let gone = who.get("/recurring/r").await;
        gone.assert_rejected(404, "no_such_recurring");
    }
    assert_eq!(who.get("/jobs/recurring/work").await.ok(), json!([]));
    assert_eq!(who.get("/queue/work").await.ok()["recurring"], 0);
}
