//! What the audit log counts as a change, and its lines in the server's log.

use serde_json::{Value, json};
use switchyard::ui::actions::current_name;

use super::audit::{newest, noted, scene};
use super::{Browser, OPERATOR_KEY, with_keys};
use crate::support::eventually;
use crate::support::log::Logged;

#[tokio::test]
async fn actions_without_an_effect_are_recorded_without_items() {
    let (_server, anna) = scene().await;
    for (action, form) in [
        ("untrack", &[("id", "missing")][..]),
        ("forget_search", &[("name", "missing")]),
        ("set_option", &[("option", "heartbeat"), ("value", "60")]),
        ("unset_option", &[("option", "heartbeat")]),
        ("mend", &[]),
    ] {
        let (before, after, _) = noted(&anna, action, form).await;
        assert_eq!((before, after), (json!([]), json!([])), "{action}");
        assert_eq!(newest(&anna, current_name(action)).await["items"], 0);
    }
}

#[tokio::test]
async fn the_audit_log_records_operations_searches_and_sessions() {
    let (server, anna) = scene().await;
    let worker = server.by("w");
    worker.add_ids("mail", &["a"]).await;
    worker.pop("mail").await;
    worker.fail("a", "Lost").await;
    let form = [("group", "Lost"), ("count", "1")];
    let (before, after, _) = noted(&anna, "retry_group", &form).await;
    assert_eq!(before, json!([null]));
    let facts = ["action", "stage", "jobs"].map(|fact| after[0][fact].clone());
    assert_eq!(facts, [json!("retry"), json!("running"), json!(1)]);
    let form = [("name", "late"), ("text", "state:failed")];
    let saved = json!([{"search": "late", "text": "state:failed"}]);
    let (before, after, _) = noted(&anna, "save_search", &form).await;
    assert_eq!((before, after), (json!([null]), saved));
    let (before, after, _) = noted(&anna, "forget_search", &form[..1]).await;
    assert_eq!(
        (&before[0]["search"], &after),
        (&json!("late"), &json!([null]))
    );
    let (olga, _) = Browser::at(&server).signed_in("olga", OPERATOR_KEY).await;
    olga.post("/ui/logout", &[]).await;
    let session = json!([{"session": "olga"}]);
    let entries = anna.audit("?who=olga").await;
    let changes: Vec<_> = entries
        .iter()
        .map(|entry| (&entry["action"], &entry["before"], &entry["after"]))
        .collect();
    let none = json!([null]);
    assert_eq!(
        changes,
        [
            (&json!("sign_out"), &session, &none),
            (&json!("sign_in"), &none, &session)
        ]
    );
    let page = anna.page("/ui/audit").await;
    for item in ["session olga", "search late", "operation "] {
        assert!(page.contains(item), "{item}: {page}");
    }
}

#[tokio::test]
async fn each_outcome_is_a_line_of_the_log() {
    let logged = Logged::with("error", &with_keys(&["--log-format", "json"]));
    let olga = Browser::at(&logged.server).with_key(OPERATOR_KEY);
    let mail = [("protocol", "qless"), ("namespace", ""), ("queue", "mail")];
    logged.server.by("w").add_ids("mail", &["a"]).await;
    olga.act("pause_queue", &mail).await;
    let line = async || {
        let log = logged.log();
        let lines = log.lines().map(serde_json::from_str::<Value>);
        let mut lines = lines.map(|line| line.expect("a line of JSON"));
        lines.find(|line| line["target"] == "audit")
    };
    eventually("the action is logged", async || line().await.is_some()).await;
    let line = line().await.unwrap();
    assert_eq!(line["message"], "a dashboard action");
    let fields = ["who", "role", "action", "object", "from", "outcome"];
    let facts = fields.map(|it| line[it].clone());
    let expected = [
        "olga",
        "operator",
        "pause_queue",
        "queue mail",
        "127.0.0.1",
        "done",
    ];
    assert_eq!(json!(facts), json!(expected), "{line}");
    let result = line["result"].as_str().unwrap();
    assert!(result.contains("mail"), "{line}");
}
