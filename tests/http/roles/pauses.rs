//! Pauses with a reason and an end, and of several queues, in the dashboard.

use std::time::Duration;

use serde_json::{Value, json};

use super::audit::{newest, noted, scene};
use super::{Browser, OPERATOR_KEY, VIEWER_KEY};
use crate::support::Server;

/// A longer wait is a hang.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The row of a queue in the list that the command line reads.
async fn row(browser: &Browser, queue: &str) -> Value {
    let request = browser.request(reqwest::Method::POST, "/ui/fn/queues");
    let response = request.header("accept", "application/json");
    let response = response.form::<[(&str, &str)]>(&[]).send().await.unwrap();
    let rows: Vec<Value> = response.json().await.unwrap();
    let found = rows
        .into_iter()
        .find(|row| row["queue_ref"]["queue"] == queue);
    found.expect("the queue is listed")
}

async fn paused(browser: &Browser, queues: &[&str]) -> Vec<bool> {
    let mut paused = Vec::new();
    for queue in queues {
        paused.push(row(browser, queue).await["paused"] == true);
    }
    paused
}

#[tokio::test]
async fn a_pause_shows_its_reason_its_end_and_its_user() {
    let (server, anna) = scene().await;
    let olga = Browser::at(&server).with_key(OPERATOR_KEY);
    server.by("w").add_ids("mail", &["a"]).await;
    let form = [
        ("queue", "mail"),
        ("reason", " <b>deploy</b> "),
        ("duration", "2"),
        ("unit", "3600"),
    ];
    olga.act("pause_queue", &form).await;
    let entry = newest(&anna, "pause_queue").await;
    let after = &entry["after"][0];
    assert_eq!(
        (&after["paused"], &after["reason"]),
        (&json!(true), &json!("<b>deploy</b>"))
    );
    assert!(
        after["until"].as_str().is_some_and(|it| it.ends_with('Z')),
        "{entry}"
    );
    let said = entry["result"].as_str().unwrap();
    assert!(said.starts_with("Queue “mail” paused until 2"), "{said}");
    let shown = row(&olga, "mail").await;
    let pause = &shown["pause"];
    assert_eq!(
        (&pause["by"], &pause["reason"]),
        (&json!("olga"), &json!("<b>deploy</b>"))
    );
    let length = pause["until"].as_i64().unwrap() - pause["since"].as_i64().unwrap();
    assert!((7_200_000_000 - length).abs() < 60_000_000, "{length}");
    for path in ["/ui", "/ui/queues", "/ui/queues/mail"] {
        let page = olga.page(path).await;
        assert!(page.contains("&lt;b&gt;deploy"), "{path}: {page}");
        assert!(page.contains("by olga"), "{path}");
    }
    // Without an end and a reason, the queue stays paused, and the reason remains.
    anna.act("pause_queue", &form[..1]).await;
    let shown = row(&olga, "mail").await;
    assert_eq!(shown["pause"]["until"], Value::Null);
    assert_eq!(shown["pause"]["reason"], "<b>deploy</b>");
    let (_, after, _) = noted(&anna, "unpause_queue", &form[..1]).await;
    assert_eq!(
        after,
        json!([{"queue": "mail", "paused": false, "listed": true}])
    );
    let form = [("queue", "mail"), ("until", "2999-01-01T10:00")];
    anna.act("pause_queue", &form).await;
    let page = olga.page("/ui/queues/mail").await;
    assert!(page.contains("2999-01-01 10:00"), "{page}");
}

#[tokio::test]
async fn a_pause_that_is_not_valid_changes_nothing() {
    let (server, anna) = scene().await;
    server.by("w").add_ids("mail", &["a"]).await;
    let long = "x".repeat(501);
    for (form, why) in [
        (vec![("duration", "0")], "must be in the future"),
        (vec![("duration", "-1")], "between 0 s and 100 years"),
        (vec![("duration", "soon")], "must be a number"),
        (vec![("until", "2001-01-01T00:00")], "must be in the future"),
        (vec![("until", "tomorrow")], "must be a UTC time"),
        (
            vec![("duration", "1"), ("until", "2999-01-01T00:00")],
            "not both",
        ),
        (vec![("reason", &*long)], "at most 500 characters"),
        (vec![("reason", "a\u{7}b")], "no control characters"),
    ] {
        let form = [&[("queue", "mail")], &*form].concat();
        anna.act("pause_queue", &form).await;
        let entry = anna.audit("").await.remove(0);
        assert_eq!(entry["outcome"], "refused", "{entry}");
        assert!(entry["result"].as_str().unwrap().contains(why), "{entry}");
    }
    assert_eq!(paused(&anna, &["mail"]).await, [false]);
}

#[tokio::test]
async fn several_and_all_queues_are_paused_and_resume() {
    let (server, anna) = scene().await;
    let olga = Browser::at(&server).with_key(OPERATOR_KEY);
    for queue in ["mail", "mail2", "images"] {
        server.by("w").add_ids(queue, &[queue]).await;
    }
    anna.act("make_queue", &[("name", "records")]).await;
    let all = ["mail", "mail2", "images"];
    let several = [
        ("queues[]", "queues/mail"),
        ("queues[]", "queues/images"),
        ("reason", "deploy"),
    ];
    olga.act("pause_queues", &several).await;
    assert_eq!(
        newest(&anna, "pause_queues").await["result"],
        "2 queues paused."
    );
    assert_eq!(paused(&olga, &all).await, [true, false, true]);
    let one = [("only", "queues/mail")];
    let (_, _, target) = noted(&anna, "resume_queues", &one).await;
    assert_eq!(target, "queue mail");
    assert_eq!(paused(&olga, &all).await, [false, false, true]);
    let matching = [("of", "all"), ("q", "MAI")];
    olga.act("pause_queues", &matching).await;
    let entry = newest(&anna, "pause_queues").await;
    assert_eq!(entry["result"], "2 queues paused.");
    assert_eq!(entry["target"], "all queues that match “MAI”");
    assert_eq!(paused(&olga, &all).await, [true, true, true]);
    olga.act("resume_queues", &[("of", "all")]).await;
    assert_eq!(
        newest(&anna, "resume_queues").await["result"],
        "3 queues resumed."
    );
    assert_eq!(paused(&olga, &all).await, [false, false, false]);
    for form in [
        vec![("of", "selected")],
        vec![("queues[]", "queues/mail"), ("queues[]", "queues/missing")],
        vec![("queues[]", "jobq/records")],
    ] {
        olga.act("pause_queues", &form).await;
        assert_eq!(
            anna.audit("").await.remove(0)["outcome"],
            "refused",
            "{form:?}"
        );
    }
    assert_eq!(paused(&olga, &all).await, [false, false, false]);
    let page = Browser::at(&server)
        .with_key(VIEWER_KEY)
        .page("/ui/queues")
        .await;
    assert!(!page.contains("pause_queues"), "{page}");
}

#[tokio::test]
async fn a_queue_resumes_at_the_end_of_its_pause() {
    let server = Server::with(&[]);
    let browser = Browser::at(&server);
    server.by("holder").add_ids("mail", &["a"]).await;
    let pause = async |duration: &str| {
        let form = [("queue", "mail"), ("duration", duration)];
        browser.act("pause_queue", &form).await;
    };
    pause("3600").await;
    let shown = server.client().get("/queue/mail").await.ok();
    assert_eq!(shown["paused"], true);
    let worker = server.by("w");
    // A claim of a paused queue does not list the worker; the second queue does.
    let poll = worker.get("/get?queue=mail&queue=idle&wait=60");
    let ends = async {
        server.client().wait_until_seen("w").await;
        pause("0.2").await;
    };
    let (job, ()) = tokio::join!(tokio::time::timeout(WAIT_MAX, poll), ends);
    assert_eq!(job.expect("the poll wakes").ok()["id"], "a");
    let shown = server.client().get("/queue/mail").await.ok();
    assert_eq!(shown["paused"], false);
}
