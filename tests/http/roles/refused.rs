//! Rejected actions are in the audit log, and cannot displace successful ones.

use serde_json::json;

use super::audit::{newest, scene};
use super::{ADMIN, Browser, OPERATOR_KEY, VIEWER_KEY, with_keys};
use crate::support::Server;
use crate::support::log::Logged;

#[tokio::test]
async fn rejected_actions_of_a_minute_share_an_entry() {
    let server = Server::with(&with_keys(&[]));
    let vera = Browser::at(&server).with_key(VIEWER_KEY);
    for _ in 0..200 {
        let form = [("id", "a"), ("back", "/ui")];
        assert_eq!(vera.post("/ui/fn/cancel", &form).await.status(), 403);
    }
    let entries = vera.audit("?action=cancel").await;
    // The minute may have ended in the meantime.
    assert!((1..=3).contains(&entries.len()), "{entries:?}");
    let said = entries
        .iter()
        .map(|entry| entry["result"].as_str().unwrap());
    let counted = said
        .filter(|said| said.contains("Rejected at least"))
        .count();
    assert!(counted >= 1, "{entries:?}");
}

#[tokio::test]
async fn unknown_actions_of_viewers_share_an_entry() {
    const KINDS: usize = 500;
    let server = Server::with(&with_keys(&[]));
    let vera = Browser::at(&server).with_key(VIEWER_KEY);
    for n in 0..KINDS {
        let path = format!("/ui/fn/made-up-{n}");
        assert_eq!(vera.post(&path, &[("back", "/ui")]).await.status(), 403);
    }
    let entries = vera.audit("").await;
    // The minute may have ended in the meantime.
    assert!((1..=3).contains(&entries.len()), "{}", entries.len());
    let unknown = vera.audit("?action=unknown").await;
    assert_eq!(unknown.len(), entries.len(), "no other name is stored");
    let page = vera.with_key(ADMIN).page("/ui/audit").await;
    assert!(!page.contains("made-up"), "{page}");
}

#[tokio::test]
async fn the_audit_log_records_failed_sign_ins() {
    let server = Server::with(&with_keys(&[]));
    let browser = Browser::at(&server);
    for (name, secret) in [
        ("olga", VIEWER_KEY),
        ("<b>stranger</b>", "a-guess-of-a-secret"),
    ] {
        let form = [("name", name), ("secret", secret)];
        assert_eq!(browser.post("/ui/login", &form).await.status(), 403);
    }
    let entries = browser.audit("?action=sign_in").await;
    let names: Vec<_> = entries
        .iter()
        .map(|entry| (&entry["who"], &entry["outcome"], &entry["from"]))
        .map(|(who, outcome, source)| {
            assert_eq!((outcome, source), (&"refused".into(), &"127.0.0.1".into()));
            who.as_str().unwrap()
        })
        .collect();
    assert_eq!(names, ["unknown", "olga"]);
    let text = format!("{entries:?}");
    assert!(
        !text.contains("stranger") && !text.contains("a-guess"),
        "{text}"
    );
}

#[tokio::test]
async fn a_rejected_form_cannot_link_from_the_audit_page_to_the_api() {
    let server = Server::with(&with_keys(&[]));
    let vera = Browser::at(&server).with_key(VIEWER_KEY);
    let away = "../../get/mail?host=w";
    for (action, field) in [("stop_operation", "id"), ("revive_job", "number")] {
        let form = [(field, away), ("protocol", "relay"), ("back", "/ui")];
        let response = vera.post(&format!("/ui/fn/{action}"), &form).await;
        assert_eq!(response.status(), 403, "{action}");
    }
    let entries = vera.audit("").await;
    assert_eq!(entries.len(), 2, "{entries:?}");
    for entry in entries {
        assert_eq!(entry["link"], "", "{entry}");
    }
    let page = vera.with_key(ADMIN).page("/ui/audit").await;
    assert!(page.contains("../../get/mail"), "the target is text");
    assert!(!page.contains("href=\"/ui/operations/.."), "{page}");
    assert!(!page.contains("/dead/.."), "{page}");
}

#[tokio::test]
async fn chunked_forms_have_their_target_in_the_audit_log() {
    let server = Server::with(&with_keys(&[]));
    server.by("w").add_ids("mail", &["a"]).await;
    let olga = Browser::at(&server).with_key(OPERATOR_KEY);
    let chunks = ["id=", "a&ba", "ck=%2Fui"].map(Ok::<_, std::io::Error>);
    let body = reqwest::Body::wrap_stream(futures::stream::iter(chunks));
    let request = olga
        .request(reqwest::Method::POST, "/ui/fn/track")
        .body(body);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let done = request.header("accept", "text/html").send().await.unwrap();
    assert_eq!(done.status(), 303);
    let entries = olga.audit("?action=track").await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["target"], "job a");
}

#[tokio::test]
async fn a_viewer_cannot_fill_the_log_with_long_errors() {
    let server = Logged::with("warn", &with_keys(&[]));
    let vera = Browser::at(&server.server).with_key(VIEWER_KEY);
    let name = "\u{202e}".repeat(5_000);
    let form = [("name", name.as_str()), ("back", "/ui")];
    for _ in 0..30 {
        assert_eq!(vera.post("/ui/fn/worker", &form).await.status(), 404);
    }
    let log = server.log();
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("a dashboard request failed"))
        .collect();
    // The minute may have ended in the meantime.
    assert!((1..=20).contains(&lines.len()), "{log}");
    assert!(lines.iter().all(|line| line.len() < 4_000), "{log}");
}

/// A server function would read `[id]` as `id`, and the entry would have no target.
#[tokio::test]
async fn a_form_cannot_hide_its_target() {
    let (server, anna) = scene().await;
    server
        .by("w")
        .add("mail", json!({"id": "a", "meta": 1}))
        .await;
    let count = anna.audit("").await.len();
    let long = format!("\"{}\"", "x".repeat(70_000));
    for (path, form) in [
        (
            "/ui/fn/prioritize",
            [("[id]", "a"), ("priority", "5"), ("back", "/ui")],
        ),
        (
            "/ui/put",
            [("data", &*long), ("queue", "mail"), ("id", "b")],
        ),
        ("/ui/edit", [("data", &*long), ("delay", ""), ("id", "a")]),
        (
            "/ui/jobq/mail/job/1",
            [("old", "null"), ("event", &*long), ("do", "event")],
        ),
    ] {
        assert_eq!(anna.post(path, &form).await.status(), 400, "{path}");
    }
    assert_eq!(anna.audit("").await.len(), count);
    assert_eq!(server.by("w").job("a").await["priority"], 0.0);
    let form = [("queue", "mail"), ("id", "b"), ("data", &*long)];
    assert_eq!(anna.post("/ui/put", &form).await.status(), 303);
    assert_eq!(newest(&anna, "put").await["target"], "job b");
}

#[tokio::test]
async fn an_invalid_form_cannot_hide_a_forbidden_action() {
    let server = Server::with(&with_keys(&[]));
    let vera = Browser::at(&server).with_key(VIEWER_KEY);
    for (action, field) in [("set_option", ("[x]", "")), ("cancel", ("id", "a\0"))] {
        let form = [("option", "x"), field, ("back", "/ui")];
        let response = vera.post(&format!("/ui/fn/{action}"), &form).await;
        assert_eq!(response.status(), 400, "{action}");
        let entries = vera.audit(&format!("?action={action}")).await;
        assert_eq!(entries.len(), 1, "{action}: {entries:?}");
        assert_eq!(entries[0]["target"], "");
        let said = entries[0]["result"].as_str().unwrap();
        assert!(said.starts_with("Requires the "), "{said}");
    }
}

#[tokio::test]
async fn a_form_has_at_most_1_100_fields() {
    let server = Server::with(&with_keys(&[]));
    let olga = Browser::at(&server).with_key(OPERATOR_KEY);
    for (path, first) in [("/ui/fn/track", "id=a"), ("/ui/fn/search", "text=a")] {
        for (fields, is_refused) in [(1_099, false), (1_100, false), (1_101, true)] {
            let form = format!("{first}{}", "&x=1".repeat(fields - 1));
            let request = olga.request(reqwest::Method::POST, path).body(form);
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            let response = request.send().await.unwrap();
            let text = response.text().await.unwrap();
            let why = "The form has more than 1100 fields.";
            assert_eq!(text.contains(why), is_refused, "{path} {fields}: {text}");
        }
    }
    let vera = Browser::at(&server).with_key(VIEWER_KEY);
    let form = vec![("id", "a"); 1_101];
    assert_eq!(vera.post("/ui/fn/cancel", &form).await.status(), 400);
    let entries = vera.audit("?action=cancel").await;
    assert_eq!(entries.len(), 1, "the action is forbidden, too");
    assert_eq!(entries[0]["target"], "");
}
