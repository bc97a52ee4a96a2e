//! Jobs with dependencies.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn a_job_waits_until_all_dependencies_are_complete() {
    let server = Server::start();
    let worker = server.by("w");
    worker.at(0).add_ids("work", &["a", "b"]).await;
    worker
        .at(0)
        .add(
            "after",
            json!({"id": "c", "meta": 1, "depends": ["a", "b"]}),
        )
        .await;
    let job = worker.at(0).job("c").await;
    assert_eq!(job["state"], "depends");
    assert_eq!(job["dependencies"], json!(["a", "b"]));
    assert_eq!(worker.at(0).job("a").await["dependents"], json!(["c"]));
    assert_eq!(
        worker.at(0).get("/jobs/depends/after").await.ok(),
        json!(["c"])
    );
    worker.at(1).pop_ids("work", 2).await;
    worker.at(2).complete("work", "a").await;
    assert_eq!(worker.at(2).pop("after").await, Value::Null);
    assert_eq!(worker.at(2).job("c").await["dependencies"], json!(["b"]));
    worker.at(3).complete("work", "b").await;
    let job = worker.at(3).pop("after").await;
    assert_eq!(
        (&job["id"], &job["dependencies"]),
        (&json!("c"), &json!([]))
    );
    assert_eq!(worker.at(3).job("b").await["dependents"], json!([]));
}

#[tokio::test]
async fn complete_and_missing_dependencies_do_not_block() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "done", "meta": 1})).await;
    worker.complete("work", "done").await;
    worker
        .add(
            "work",
            json!({"id": "a", "meta": 1, "depends": ["done", "nobody"]}),
        )
        .await;
    let job = worker.job("a").await;
    assert_eq!(
        (&job["state"], &job["dependencies"]),
        (&json!("waiting"), &json!([]))
    );
}

#[tokio::test]
async fn a_job_can_depend_on_an_earlier_job_of_the_same_array() {
    let server = Server::start();
    let items = json!([{"id": "a", "meta": 1}, {"id": "b", "meta": 1, "depends": ["a"]}]);
    assert_eq!(
        server.client().post("/add/work", items).await.ok(),
        json!(["a", "b"])
    );
    assert_eq!(server.client().state("b").await, "depends");
    assert_eq!(server.client().pop_ids("work", 10).await, ["a"]);
}

#[tokio::test]
async fn advancing_a_job_releases_no_dependents() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker
        .add("work", json!({"id": "b", "meta": 1, "depends": ["a"]}))
        .await;
    worker
        .post(
            "/complete/work",
            json!({"id": "a", "meta": 1, "next": "after"}),
        )
        .await
        .ok();
    assert_eq!(worker.state("b").await, "depends");
    worker.pop("after").await;
    worker.complete("after", "a").await;
    assert_eq!(worker.state("b").await, "waiting");
}

#[tokio::test]
async fn failing_a_job_releases_no_dependents() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker
        .add("work", json!({"id": "b", "meta": 1, "depends": ["a"]}))
        .await;
    worker.fail("a", "g").await;
    assert_eq!(worker.state("b").await, "depends");
}

#[tokio::test]
async fn a_delay_and_dependencies_both_apply() {
    let server = Server::start();
    let worker = server.by("w");
    worker.at(0).add_ids("work", &["a"]).await;
    for (id, delay) in [("soon", 10), ("late", 100)] {
        let item = json!({"id": id, "meta": 1, "depends": ["a"], "delay": delay});
        worker.at(0).add("after", item).await;
    }
    assert_eq!(
        worker.at(20).state("soon").await,
        "depends",
        "its delay has passed, but it still depends on a job"
    );
    worker.at(50).pop("work").await;
    worker.at(50).complete("work", "a").await;
    assert_eq!(worker.at(50).pop_ids("after", 10).await, ["soon"]);
    assert_eq!(worker.at(50).state("late").await, "scheduled");
    assert_eq!(
        worker.at(100).pop_ids("after", 10).await,
        ["late"],
        "the delay counts from the put"
    );
}

#[tokio::test]
async fn a_dependency_cycle_is_rejected() {
    let server = Server::start();
    let who = server.at(0);
    let add = async |id: &str, depends: Value| {
        who.post(
            "/add/work",
            json!({"id": id, "meta": "new", "depends": depends}),
        )
        .await
    };
    assert_eq!(
        add("a", json!(["a"]))
            .await
            .assert_rejected(409, "dependency_cycle")["id"],
        "a"
    );
    who.get("/job/a").await.assert_rejected(404, "no_such_job");
    who.add_ids("work", &["a"]).await;
    add("b", json!(["a"])).await.ok();
    add("c", json!(["b"])).await.ok();
    for on in [
        json!(["a"]),
        json!(["b"]),
        json!(["c"]),
        json!(["nobody", "c"]),
    ] {
        assert_eq!(
            add("a", on).await.assert_rejected(409, "dependency_cycle")["id"],
            "a"
        );
    }
    assert_eq!(
        who.job("a").await["meta"],
        Value::Null,
        "the job is unchanged"
    );
    let items = json!([{"id": "x", "meta": 1}, {"id": "a", "meta": 1, "depends": ["c"]}]);
    let whole = who.post("/add/work", items).await.whole();
    assert_eq!(whole["results"], json!(["x", false]));
    assert_eq!(whole["errors"][1]["code"], "dependency_cycle");
    // Not with `next`, either.
    who.pop("work").await;
    let data = json!({"id": "a", "meta": 1, "next": "work", "depends": ["c"]});
    who.post("/complete/work", data)
        .await
        .assert_rejected(409, "dependency_cycle");
    assert_eq!(who.state("a").await, "running");
}

#[tokio::test]
async fn put_keeps_dependencies_unless_others_are_given() {
    let server = Server::start();
    let who = server.at(0);
    who.add_ids("work", &["a", "b"]).await;
    who.add("work", json!({"id": "c", "meta": 1, "depends": ["a"]}))
        .await;
    who.add("work", json!({"id": "c", "meta": 2})).await;
    let job = who.job("c").await;
    assert_eq!(
        (&job["state"], &job["dependencies"]),
        (&json!("depends"), &json!(["a"]))
    );
    who.add("work", json!({"id": "c", "meta": 2, "depends": ["b"]}))
        .await;
    assert_eq!(who.job("c").await["dependencies"], json!(["b"]));
    assert_eq!(who.job("a").await["dependents"], json!([]));
    assert_eq!(who.job("b").await["dependents"], json!(["c"]));
}

#[tokio::test]
async fn a_duplicate_dependency_counts_once() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_and_pop(json!({"id": "a", "meta": 1})).await;
    worker
        .add("work", json!({"id": "b", "meta": 1, "depends": ["a", "a"]}))
        .await;
    assert_eq!(worker.job("b").await["dependencies"], json!(["a"]));
    worker.complete("work", "a").await;
    assert_eq!(worker.state("b").await, "waiting");
}

#[tokio::test]
async fn a_released_job_keeps_its_priority() {
    let server = Server::start();
    let worker = server.by("w");
    worker
        .at(0)
        .add_and_pop(json!({"id": "a", "meta": 1}))
        .await;
    worker
        .at(0)
        .add(
            "work",
            json!({"id": "urgent", "meta": 1, "priority": -1, "depends": ["a"]}),
        )
        .await;
    worker
        .at(1)
        .add("work", json!({"id": "later", "meta": 1, "depends": ["a"]}))
        .await;
    worker.at(2).add_ids("work", &["plain"]).await;
    worker.at(3).complete("work", "a").await;
    let order = ["urgent", "plain", "later"];
    assert_eq!(
        worker.at(3).peek_ids("work").await,
        order,
        "released jobs come last"
    );
}
