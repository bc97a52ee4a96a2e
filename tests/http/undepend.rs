//! `/depends`: adds and removes dependencies.

use serde_json::{Value, json};

use crate::support::{STATES, Server, one_in_each_state};

#[tokio::test]
async fn a_job_with_dependencies_can_get_more() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a", "b", "done"]).await;
    worker.pop_ids("work", 3).await;
    worker.complete("work", "done").await;
    let held = json!({"id": "c", "meta": 1, "depends": ["a"]});
    worker.add("after", held).await;
    // Missing and complete jobs are ignored; a duplicate counts once.
    let more = json!({"id": "c", "on": ["b", "nobody", "done", "b", "a"]});
    assert_eq!(worker.post("/depends", more).await.ok(), true);
    assert_eq!(
        worker.job("c").await["dependencies"],
        json!(["a", "b"]),
        "as they were added"
    );
    for id in ["a", "b"] {
        assert_eq!(worker.job(id).await["dependents"], json!(["c"]), "{id}");
    }
    assert_eq!(worker.job("done").await["dependents"], json!([]));
    worker.complete("work", "a").await;
    assert_eq!(worker.state("c").await, "depends");
    worker.complete("work", "b").await;
    assert_eq!(worker.pop("after").await["id"], "c");
}

#[tokio::test]
async fn removed_dependencies_no_longer_block() {
    let server = Server::start();
    let client = server.at(0);
    client.add_ids("work", &["a", "b", "c"]).await;
    for id in ["held", "other"] {
        let item = json!({"id": id, "meta": 1, "depends": ["a", "b", "c"]});
        client.add("after", item).await;
    }
    let off = async |off: Value| {
        let change = client.post("/depends", json!({"id": "held", "off": off}));
        assert_eq!(change.await.ok(), true);
        client.job("held").await["dependencies"].take()
    };
    assert_eq!(off(json!(["b"])).await, json!(["a", "c"]));
    assert_eq!(client.job("b").await["dependents"], json!(["other"]));
    // Removing a job that is not a dependency has no effect.
    assert_eq!(off(json!(["b", "nobody"])).await, json!(["a", "c"]));
    assert_eq!(client.state("held").await, "depends");
    assert_eq!(off(json!("all")).await, json!([]));
    assert_eq!(client.job("a").await["dependents"], json!(["other"]));
    assert_eq!(client.peek_ids("after").await, ["held"]);
    assert_eq!(
        client.get("/jobs/depends/after").await.ok(),
        json!(["other"])
    );
    // Completing a former dependency has no effect.
    let worker = server.by("w").at(0);
    worker.pop("after").await;
    worker.pop("work").await;
    worker.complete("work", "a").await;
    assert_eq!(client.state("held").await, "running");
}

#[tokio::test]
async fn a_released_job_waits_for_the_rest_of_its_delay() {
    let server = Server::start();
    let client = server.at(0);
    client.add_ids("work", &["a"]).await;
    for (id, delay) in [("now", 0), ("soon", 10), ("late", 100)] {
        let item = json!({"id": id, "meta": 1, "delay": delay, "depends": ["a"]});
        client.add("after", item).await;
    }
    client.at(5).add_ids("after", &["plain"]).await;
    for (now, id, off, state) in [
        (20, "late", json!("all"), "scheduled"),
        (21, "soon", json!(["a"]), "waiting"),
        (22, "now", json!(["a"]), "waiting"),
    ] {
        let freed = json!({"id": id, "off": off});
        assert_eq!(client.at(now).post("/depends", freed).await.ok(), true);
        assert_eq!(client.at(now).state(id).await, state, "{id}");
    }
    assert_eq!(
        client.at(22).peek_ids("after").await,
        ["plain", "soon", "now"],
        "available since they were released"
    );
    assert_eq!(client.at(99.9).state("late").await, "scheduled");
    assert_eq!(
        client.at(100).peek_ids("after").await,
        ["plain", "soon", "now", "late"],
        "its delay counts from the put"
    );
}

#[tokio::test]
async fn only_jobs_with_dependencies_can_be_changed() {
    let server = Server::start();
    one_in_each_state(&server).await;
    let client = server.at(100);
    for state in STATES.into_iter().filter(|state| *state != "depends") {
        for change in [json!({"on": ["depends"]}), json!({"off": "all"})] {
            let mut item = change;
            item["id"] = state.into();
            let refused = client.post("/depends", item.clone()).await;
            let refused = refused.assert_rejected(409, "not_depending");
            assert_eq!(
                (&refused["id"], &refused["state"]),
                (&json!(state), &json!(state)),
                "{item}"
            );
        }
        assert_eq!(client.state(state).await, state);
    }
    assert_eq!(client.job("depends").await["dependents"], json!([]));
    let missing = json!({"id": "nobody", "off": "all"});
    let refused = client.post("/depends", missing).await;
    assert_eq!(refused.assert_rejected(404, "no_such_job")["id"], "nobody");
}

#[tokio::test]
async fn a_job_cannot_depend_on_itself() {
    let server = Server::start();
    let client = server.at(0);
    client.add_ids("work", &["root", "free"]).await;
    for (id, on) in [("a", "root"), ("b", "a"), ("c", "b")] {
        let item = json!({"id": id, "meta": 1, "depends": [on]});
        client.add("work", item).await;
    }
    for on in [json!(["a"]), json!(["b"]), json!(["free", "c"])] {
        let item = json!({"id": "a", "on": on});
        let refused = client.post("/depends", item.clone()).await;
        let refused = refused.assert_rejected(409, "dependency_cycle");
        assert_eq!(refused["id"], "a", "{item}");
    }
    assert_eq!(client.job("a").await["dependencies"], json!(["root"]));
    assert_eq!(client.job("free").await["dependents"], json!([]));
    // Dependencies that do not complete the cycle are accepted.
    let item = json!({"id": "c", "on": ["a", "free"]});
    assert_eq!(client.post("/depends", item).await.ok(), true);
}

#[tokio::test]
async fn invalid_changes_are_rejected_individually() {
    let server = Server::start();
    let client = server.at(0);
    client.add_ids("work", &["a", "b"]).await;
    for id in ["x", "y"] {
        let item = json!({"id": id, "meta": 1, "depends": ["a"]});
        client.add("work", item).await;
    }
    for (item, field) in [
        (json!({"on": ["b"]}), "id"),
        (json!({"id": 1, "off": "all"}), "id"),
        (json!({"id": "x", "on": "b"}), "on"),
        (json!({"id": "x", "on": "all"}), "on"),
        (json!({"id": "x", "on": [1]}), "on"),
        (json!({"id": "x", "on": [""]}), "on"),
        (json!({"id": "x", "off": "a"}), "off"),
        (json!({"id": "x", "off": 1}), "off"),
        (json!({"id": "x", "off": [null]}), "off"),
    ] {
        client
            .post("/depends", item)
            .await
            .assert_rejected_field(field);
    }
    for item in [json!({"id": "x"}), json!("x")] {
        let response = client.post("/depends", item).await;
        response.assert_rejected(400, "bad_request");
    }
    assert_eq!(client.job("x").await["dependencies"], json!(["a"]));
    let items = json!([{"id": "a", "off": "all"}, {"id": "x", "off": "all"}, {"id": "nobody", "on": []},
                       {"id": "x", "off": "all"}, {"id": "y", "on": ["b"]}]);
    let whole = client.post("/depends", items).await.whole();
    assert_eq!(whole["results"], json!([false, true, false, false, true]));
    let codes: Vec<&Value> = (0..5)
        .map(|index| &whole["errors"][index]["code"])
        .collect();
    let expected = json!(["not_depending", null, "no_such_job", "not_depending", null]);
    assert_eq!(json!(codes), expected);
    assert_eq!(client.job("y").await["dependencies"], json!(["a", "b"]));
}
