//! `/track`, `/untrack`, `/tracked`: tracking jobs.

use serde_json::{Value, json};

use crate::support::{Server, ids};

#[tokio::test]
async fn a_tracked_job_is_marked_in_all_responses() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    worker.add_ids("work", &["a", "b"]).await;
    assert_eq!(worker.job("a").await["tracked"], false);
    assert_eq!(worker.post("/track", json!("a")).await.ok(), "a");
    let shown = async |path: &str, at: &str| {
        let response = worker.get(path).await.ok();
        let job = response.pointer(at).unwrap_or(&Value::Null);
        assert_eq!(
            (&job["id"], &job["tracked"]),
            (&json!("a"), &json!(true)),
            "{path}: {response}"
        );
    };
    shown("/job/a", "").await;
    shown("/peek/work", "").await;
    shown("/peek/work/2", "/0").await;
    shown("/jobs?id=b&id=a", "/1").await;
    shown("/jobs/waiting/work?full=true", "/0").await;
    shown("/tracked", "/jobs/0").await;
    shown("/get/work", "").await;
    shown("/jobs/running/work?full=true", "/0").await;
    worker.fail("a", "g").await;
    shown("/failed/g", "/jobs/0").await;
    let again = json!({"id": "a", "meta": 1, "priority": -1});
    worker.add("work", again).await;
    shown("/get/work/2", "/0").await;
    worker.complete("work", "a").await;
    shown("/jobs/complete?full=true", "/0").await;
    assert_eq!(worker.job("b").await["tracked"], false);
    assert_eq!(worker.post("/untrack", json!("a")).await.ok(), "a");
    assert_eq!(worker.job("a").await["tracked"], false);
    let none = json!({"jobs": [], "expired": []});
    assert_eq!(worker.get("/tracked").await.ok(), none);
}

#[tokio::test]
async fn tracked_jobs_are_listed_by_tracking_time() {
    let server = Server::start();
    let none = json!({"jobs": [], "expired": []});
    assert_eq!(server.at(0).get("/tracked").await.ok(), none);
    server.at(0).add_ids("work", &["a", "b", "c"]).await;
    for (now, id) in [(3, "b"), (1, "c"), (2, "a")] {
        // As an ID, and as an item.
        let item = if id == "a" {
            json!({"id": id})
        } else {
            json!(id)
        };
        assert_eq!(server.at(now).post("/track", item).await.ok(), id);
    }
    let tracked = server.at(5).get("/tracked").await.ok();
    assert_eq!(ids(&tracked["jobs"]), ["c", "a", "b"]);
    assert_eq!(tracked["jobs"][0], server.at(5).job("c").await);
}

#[tokio::test]
async fn a_removed_tracked_job_is_listed_as_expired_until_it_exists_again() {
    let server = Server::start();
    let worker = server.by("w");
    worker.set("jobs-history", json!(100)).await.ok();
    worker.at(0).add_ids("work", &["old", "gone"]).await;
    worker.at(0).post("/track", json!("old")).await.ok();
    worker.at(1).post("/track", json!("gone")).await.ok();
    worker.at(1).pop("work").await;
    worker.at(1).complete("work", "old").await;
    worker.at(2).post("/cancel", json!("gone")).await.ok();
    let tracked = worker.at(2).get("/tracked").await.ok();
    assert_eq!(ids(&tracked["jobs"]), ["old"]);
    assert_eq!(tracked["expired"], json!(["gone"]));
    // Completing another job deletes the old complete job.
    worker
        .at(101)
        .add_and_pop(json!({"id": "last", "meta": 1}))
        .await;
    worker.at(101).complete("work", "last").await;
    let tracked = worker.at(101).get("/tracked").await.ok();
    assert_eq!(tracked, json!({"jobs": [], "expired": ["old", "gone"]}));
    worker.at(102).add_ids("work", &["gone"]).await;
    assert_eq!(worker.at(102).job("gone").await["tracked"], true);
    // A job that does not exist can be untracked.
    assert_eq!(
        worker.at(102).post("/untrack", json!("old")).await.ok(),
        "old"
    );
    let tracked = worker.at(102).get("/tracked").await.ok();
    assert_eq!(ids(&tracked["jobs"]), ["gone"]);
    assert_eq!(tracked["expired"], json!([]));
}

#[tokio::test]
async fn tracking_can_tag_the_job() {
    let server = Server::start();
    let item = json!({"id": "a", "meta": 1, "tags": ["x"]});
    server.at(0).add("work", item).await;
    let item = json!({"id": "a", "tags": ["y", "x"]});
    assert_eq!(server.at(1).post("/track", item).await.ok(), "a");
    let job = server.at(1).job("a").await;
    assert_eq!(
        (&job["tracked"], &job["tags"]),
        (&json!(true), &json!(["x", "y"]))
    );
    let found = server.at(1).get("/tag/y").await.ok();
    assert_eq!(found["jobs"], json!(["a"]));
    // Untracking keeps the tags.
    server.at(2).post("/untrack", json!("a")).await.ok();
    assert_eq!(server.at(2).job("a").await["tags"], json!(["x", "y"]));
}

#[tokio::test]
async fn only_existing_jobs_can_be_tracked_and_any_id_untracked() {
    let server = Server::start();
    let client = server.at(0);
    client.add_ids("work", &["a", "b"]).await;
    let refused = client.post("/track", json!("nobody")).await;
    assert_eq!(refused.assert_rejected(404, "no_such_job")["id"], "nobody");
    for id in ["nobody", "a"] {
        assert_eq!(client.post("/untrack", json!(id)).await.ok(), id);
    }
    let items = json!(["b", "nobody", {"id": "a"}, {}, "a"]);
    let whole = client.post("/track", items).await.whole();
    assert_eq!(whole["results"], json!(["b", false, "a", false, "a"]));
    assert_eq!(whole["errors"][0], Value::Null);
    assert_eq!(whole["errors"][1]["code"], "no_such_job");
    assert_eq!(whole["errors"][3]["field"], "id");
    let tracked = client.get("/tracked").await.ok();
    assert_eq!(ids(&tracked["jobs"]).len(), 2);
    let items = json!(["a", "nobody", {"id": "b"}]);
    let whole = client.post("/untrack", items).await.whole();
    assert_eq!(whole["results"], json!(["a", "nobody", "b"]));
    assert_eq!(whole.get("errors"), None);
}

#[tokio::test]
async fn invalid_items_are_rejected_with_their_field() {
    let server = Server::start();
    let client = server.at(0);
    client.add_ids("work", &["a"]).await;
    for path in ["/track", "/untrack"] {
        for item in [json!({}), json!({"id": 1}), json!({"id": ""}), json!("")] {
            client.post(path, item).await.assert_rejected_field("id");
        }
    }
    for tags in [json!("t"), json!([1]), json!([""])] {
        let item = json!({"id": "a", "tags": tags});
        client
            .post("/track", item)
            .await
            .assert_rejected_field("tags");
    }
    let job = client.job("a").await;
    assert_eq!((&job["tracked"], &job["tags"]), (&json!(false), &json!([])));
}

/// As in qless-core's `test_failed_retries_tracked`.
#[tokio::test]
async fn a_tracked_job_without_retries_left_has_a_failed_event() {
    let server = Server::start();
    let worker = server.by("w").at(0);
    let job = json!({"id": "a", "meta": 1, "retries": 0});
    worker.add("work", job).await;
    worker.post("/track", json!("a")).await.ok();
    worker.get("/get/work").await.ok();
    worker.post("/retry/work", json!({"id": "a"})).await.ok();
    assert_eq!(worker.job("a").await["state"], "failed");
    let said = worker.get("/events?channel=failed").await.ok();
    assert_eq!(said["events"].as_array().map(Vec::len), Some(1), "{said}");
}

#[tokio::test]
async fn the_page_of_tracked_jobs_has_one_form_with_a_button_per_job() {
    let server = Server::with(&[]);
    let client = server.by("w");
    client.add_ids("work", &["a", "b&c"]).await;
    for id in ["a", "b&c"] {
        client.post("/track", json!(id)).await.ok();
    }
    let url = format!("http://{}/ui/tracked", server.address);
    let page = server.http.get(&url).send().await.unwrap();
    let page = page.text().await.unwrap();
    assert_eq!(page.matches("/ui/fn/untrack").count(), 1, "{page}");
    for value in ["a", "b&amp;c"] {
        let button = format!("form=\"untrack\" name=\"id\" value=\"{value}\"");
        assert_eq!(page.matches(&button).count(), 1, "{value}: {page}");
    }
    // What a browser sends for the button.
    let request = server
        .http
        .post(format!("http://{}/ui/fn/untrack", server.address));
    let request = request.header("sec-fetch-site", "same-origin");
    let form = [("back", "/ui/tracked"), ("id", "b&c")];
    let answer = request.form(&form).send().await.unwrap();
    assert!(!answer.status().is_client_error(), "{answer:?}");
    let tracked = client.get("/tracked").await.ok();
    assert_eq!(tracked["jobs"].as_array().unwrap().len(), 1, "{tracked}");
}
