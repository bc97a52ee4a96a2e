//! Retrying a job with another payload, and completing a job by hand: who may, and what the audit log records.

use reqwest::{Method, Response};
use serde_json::json;

use super::{ADMIN_KEY, Browser, OPERATOR_KEY, VIEWER_KEY, actions, with_keys};
use crate::support::Server;

/// The value of a hidden field of the form that posts to `action`.
#[track_caller]
fn hidden(page: &str, action: &str, field: &str) -> String {
    let (_, form) = page
        .split_once(&format!("action=\"{action}\""))
        .unwrap_or_else(|| panic!("no form {action}"));
    let form = form.split("</form>").next().unwrap();
    let (_, value) = form
        .split_once(&format!("name=\"{field}\" value=\""))
        .unwrap_or_else(|| panic!("no field {field}"));
    value.split('"').next().unwrap().to_owned()
}

async fn failed(server: &Server, id: &str, meta: &str) {
    let worker = server.by("w");
    worker
        .add(
            "mail",
            json!({"id": id, "meta": {"card": meta}, "priority": -9}),
        )
        .await;
    worker.pop("mail").await;
    worker.fail(id, "Lost").await;
}

/// Checks that the audit log describes the change of the payload without showing it.
async fn assert_recorded(browser: &Browser) {
    let entries = browser.audit("").await;
    let all = json!(entries).to_string();
    assert!(
        !all.contains("hush-hush") && !all.contains("secret-2"),
        "{all}"
    );
    let entry = entries
        .iter()
        .find(|entry| entry["action"] == "edit_and_retry" && entry["items"] == 1)
        .expect("an entry with a change");
    let payload = |side: &str| entry[side][0]["payload"].as_str().unwrap().to_owned();
    assert!(
        payload("before").starts_with("20 bytes, SHA-256 "),
        "{entry}"
    );
    assert!(
        payload("after").starts_with("19 bytes, SHA-256 "),
        "{entry}"
    );
    assert_eq!(entry["target"], "job a");
}

async fn post(who: &Browser, form: [(&str, String); 5]) -> Response {
    let pairs: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, &**value)).collect();
    who.post("/ui/edit", &pairs).await
}

#[tokio::test]
async fn operators_edit_and_retry_and_the_audit_log_has_no_payload() {
    let server = Server::with(&with_keys(&[]));
    failed(&server, "a", "hush-hush").await;
    let browser = Browser::at(&server);
    let (olga, vera) = (browser.with_key(OPERATOR_KEY), browser.with_key(VIEWER_KEY));
    assert!(!vera.page("/ui/jobs/a").await.contains("/ui/edit"));
    assert_eq!(vera.open("/ui/edit?job=a").await.status(), 403);
    assert!(olga.page("/ui/jobs/a").await.contains("/ui/edit?job=a"));
    let page = olga.page("/ui/edit?job=a").await;
    assert!(page.contains("hush-hush"));
    let field = |name| hidden(&page, "/ui/edit?job=a", name);
    let (state, since) = (field("state"), field("since"));
    let form = |data: &'static str, delay: &'static str| {
        [
            ("id", "a".to_owned()),
            ("state", state.clone()),
            ("since", since.clone()),
            ("data", data.to_owned()),
            ("delay", delay.to_owned()),
        ]
    };
    assert_eq!(post(&vera, form("1", "")).await.status(), 403);
    for (data, delay, why) in [
        ("{\"card\": ", "", "The payload is not valid JSON"),
        ("{}", "-1", "The delay must be between 0 s"),
        ("{}", "soon", "The delay must be a number"),
    ] {
        let refused = post(&olga, form(data, delay)).await;
        assert_eq!(refused.status(), 200);
        let text = refused.text().await.unwrap();
        assert!(text.contains(why), "{why}");
        assert!(
            text.contains(&data.replace('"', "&quot;")) || text.contains(data),
            "{text}"
        );
    }
    assert_eq!(server.client().state("a").await, "failed");
    let done = post(&olga, form("{ \"card\": \"secret-2\" }", "60")).await;
    assert_eq!(
        (done.status().as_u16(), &done.headers()["location"]),
        (303, &"/ui/jobs/a".parse().unwrap())
    );
    let job = server.client().job("a").await;
    assert_eq!(job["state"], "scheduled");
    // The same form again: the job has changed.
    let refused = post(&olga, form("3", "")).await;
    let text = refused.text().await.unwrap();
    assert!(
        text.contains("has changed since the page was loaded, and is now in state scheduled"),
        "{text}"
    );
    assert_recorded(&olga).await;
}

#[tokio::test]
async fn only_admins_complete_jobs_by_hand() {
    let server = Server::with(&with_keys(&[]));
    server.client().add_ids("mail", &["a"]).await;
    let browser = Browser::at(&server);
    let (olga, anna) = (browser.with_key(OPERATOR_KEY), browser.with_key(ADMIN_KEY));
    let complete = "/ui/fn/complete";
    let page = olga.page("/ui/jobs/a").await;
    assert!(!actions(&page).iter().any(|action| action == complete));
    let page = anna.page("/ui/jobs/a").await;
    let field = |name| hidden(&page, complete, name);
    let (state, since) = (field("state"), field("since"));
    let form = [
        ("id", "a"),
        ("state", &*state),
        ("since", &*since),
        ("back", "/ui/jobs/a"),
    ];
    assert_eq!(olga.post(complete, &form).await.status(), 403);
    assert_eq!(server.client().state("a").await, "waiting");
    let done = anna.post(complete, &form).await;
    assert_eq!(done.status(), 303);
    let flash = done.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(flash.contains("completed"), "{flash}");
    assert_eq!(server.client().state("a").await, "complete");
    let entry = anna.audit("").await;
    let entry = entry
        .iter()
        .find(|entry| entry["action"] == "complete" && entry["items"] == 1)
        .unwrap();
    assert_eq!(entry["before"][0]["state"], "waiting");
    assert_eq!(entry["after"][0]["state"], "complete");
    // The form is outdated, and no longer has a button.
    anna.act("complete", &form[..3]).await;
    let page = anna.page("/ui/jobs/a").await;
    assert!(!page.contains(complete));
    let request = anna
        .request(Method::GET, "/ui/operations")
        .header("accept", "text/html");
    let list = request.send().await.unwrap().text().await.unwrap();
    assert!(list.contains("Complete 1 job"), "{list}");
}

/// Their state began after the last change of the job.
#[tokio::test]
async fn a_stalled_job_and_one_that_became_due_are_completed_by_hand() {
    let server = Server::with(&with_keys(&[]));
    let client = server.client();
    client.set("held-heartbeat", json!(-10)).await.accepted();
    client.add_ids("held", &["stalled"]).await;
    server.by("w").pop("held").await;
    let due = json!({"id": "due", "meta": 1, "delay": 0.01});
    client.add("mail", due).await;
    let anna = Browser::at(&server).with_key(ADMIN_KEY);
    let complete = "/ui/fn/complete";
    for (id, state) in [("stalled", "stalled"), ("due", "waiting")] {
        let page = loop {
            let page = anna.page(&format!("/ui/jobs/{id}")).await;
            if hidden(&page, complete, "state") == state {
                break page;
            }
        };
        let since = hidden(&page, complete, "since");
        let form = [("id", id), ("state", state), ("since", &*since)];
        anna.act("complete", &form).await;
        assert_eq!(client.state(id).await, "complete", "{id}");
    }
}

#[tokio::test]
async fn the_audit_log_names_the_job_of_a_long_form() {
    let server = Server::with(&with_keys(&[]));
    failed(&server, "a", "card").await;
    let browser = Browser::at(&server);
    let olga = browser.with_key(OPERATOR_KEY);
    let page = olga.page("/ui/edit?job=a").await;
    let field = |name| hidden(&page, "/ui/edit?job=a", name);
    let form = [
        ("id", "a".to_owned()),
        ("state", field("state")),
        ("since", field("since")),
        ("data", json!("long ".repeat(40_000)).to_string()),
        ("delay", String::new()),
    ];
    assert_eq!(post(&olga, form).await.status(), 303);
    let entry = browser.with_key(ADMIN_KEY).audit("").await.remove(0);
    assert_eq!(
        [&entry["action"], &entry["target"], &entry["items"]],
        [&json!("edit_and_retry"), &json!("job a"), &json!(1)]
    );
}

#[tokio::test]
async fn an_equal_payload_is_not_replaced_unless_it_is_too_large_for_the_page() {
    let server = Server::with(&with_keys(&[]));
    let olga = Browser::at(&server).with_key(OPERATOR_KEY);
    for (id, bytes, is_replaced) in [
        ("a", 10, false),
        ("b", 900_000, false),
        ("c", 1 << 20, true),
    ] {
        let card = "x".repeat(bytes);
        failed(&server, id, &card).await;
        let address = format!("/ui/edit?job={id}");
        let page = olga.page(&address).await;
        assert_eq!(page.contains("cannot be edited here"), is_replaced, "{id}");
        let field = |name| hidden(&page, &address, name);
        let form = [
            ("id", id.to_owned()),
            ("state", field("state")),
            ("since", field("since")),
            ("data", format!("{{ \"card\": \"{card}\" }}")),
            ("delay", "3600".to_owned()),
        ];
        let done = post(&olga, form).await;
        assert_eq!(done.status(), 303, "{id}");
        let flash = done.headers()["set-cookie"].to_str().unwrap();
        assert_eq!(flash.contains("new%20payload"), is_replaced, "{flash}");
    }
}
