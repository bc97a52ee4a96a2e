//! `/log`, and the length of a job's history.

use serde_json::{Value, json};

use crate::support::{STATES, Server, one_in_each_state};

#[tokio::test]
async fn log_adds_a_message_with_data_to_the_history() {
    let server = Server::start();
    server.at(0).add_ids("work", &["a"]).await;
    for (now, item) in [
        (1, json!({"id": "a", "message": "plain"})),
        (2, json!({"id": "a", "message": "empty", "data": {}})),
        (
            3,
            json!({"id": "a", "message": "half <done>", "data": {"percent": 50.5, "q": [1, null], "日": {}}}),
        ),
    ] {
        let response = server.at(now).post("/log", item).await;
        assert_eq!(response.ok(), "a");
    }
    let expected = json!([
        {"what": "put", "when": 0, "q": "work"},
        {"what": "plain", "when": 1},
        {"what": "empty", "when": 2},
        {"what": "half <done>", "when": 3, "percent": 50.5, "q": [1, null], "日": {}},
    ]);
    let job = server.by("w").at(4).job("a").await;
    assert_eq!(job["history"], expected);
    assert_eq!(job["state"], "waiting");
}

#[tokio::test]
async fn log_accepts_jobs_in_any_state() {
    let server = Server::start();
    one_in_each_state(&server).await;
    let client = server.at(100);
    for state in STATES {
        let item = json!({"id": state, "message": "noted", "data": {"by": "me"}});
        assert_eq!(client.post("/log", item).await.ok(), state);
        let job = client.job(state).await;
        let last = job["history"].as_array().unwrap().last().unwrap();
        assert_eq!(*last, json!({"what": "noted", "when": 100, "by": "me"}));
        assert_eq!(job["state"], state, "everything else is unchanged");
    }
    // The worker of the job is not affected.
    server.by("w").at(100).complete("work", "running").await;
}

#[tokio::test]
async fn invalid_messages_are_rejected_individually() {
    let server = Server::start();
    let client = server.at(0);
    client.add_ids("work", &["a"]).await;
    let bad = [
        (json!({"message": "m"}), "id"),
        (json!({"id": 1, "message": "m"}), "id"),
        (json!({"id": "a"}), "message"),
        (json!({"id": "a", "message": ""}), "message"),
        (json!({"id": "a", "message": 1}), "message"),
        (json!({"id": "a", "message": "m", "data": [1]}), "data"),
        (json!({"id": "a", "message": "m", "data": "text"}), "data"),
        (json!({"id": "a", "message": "m", "data": 1}), "data"),
        (
            json!({"id": "a", "message": "m", "data": {"what": 1}}),
            "data",
        ),
        (
            json!({"id": "a", "message": "m", "data": {"x": 1, "when": 1}}),
            "data",
        ),
    ];
    for (item, field) in &bad {
        client
            .post("/log", item.clone())
            .await
            .assert_rejected_field(field);
    }
    let missing = json!({"id": "nobody", "message": "m"});
    let refused = client.post("/log", missing.clone()).await;
    assert_eq!(refused.assert_rejected(404, "no_such_job")["id"], "nobody");
    let mut items: Vec<Value> = bad.iter().map(|(item, _)| item.clone()).collect();
    items.push(missing);
    items.push(json!({"id": "a", "message": "good"}));
    let whole = client.post("/log", items.into()).await.whole();
    for (index, (_, field)) in bad.iter().enumerate() {
        assert_eq!(whole["results"][index], false);
        assert_eq!(whole["errors"][index]["field"], *field);
    }
    assert_eq!(whole["errors"][bad.len()]["code"], "no_such_job");
    assert_eq!(whole["results"][bad.len() + 1], "a");
    let history = client.job("a").await["history"].take();
    assert_eq!(history[1]["what"], "good");
    assert_eq!(history.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_long_history_keeps_the_first_and_the_newest_entries() {
    let server = Server::start();
    server.client().set("max-job-history", json!(5)).await.ok();
    let times = async || -> Vec<i64> {
        let job = server.at(0).job("a").await;
        let history = job["history"].as_array().unwrap();
        history
            .iter()
            .map(|entry| entry["when"].as_i64().unwrap())
            .collect()
    };
    server.at(0).add_ids("work", &["a"]).await;
    for now in 1..20 {
        // Entries of any kind.
        if now % 2 == 0 {
            server.at(now).add_ids("work", &["a"]).await;
        } else {
            let item = json!({"id": "a", "message": "m"});
            server.at(now).post("/log", item).await.ok();
        }
    }
    assert_eq!(times().await, [0, 16, 17, 18, 19]);
    // A change of the option applies from the next entry on.
    server.client().set("max-job-history", json!(3)).await.ok();
    server.at(20).add_ids("work", &["a"]).await;
    assert_eq!(times().await, [0, 19, 20]);
}
