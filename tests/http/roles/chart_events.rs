//! The charts of the statistics mark what users have changed.

use super::audit::scene;
use super::{Browser, OPERATOR_KEY, VIEWER_KEY};

#[tokio::test]
async fn charts_mark_pauses_options_and_operations() {
    let (server, anna) = scene().await;
    let olga = Browser::at(&server).with_key(OPERATOR_KEY);
    let vera = Browser::at(&server).with_key(VIEWER_KEY);
    server.by("w").add_ids("mail", &["a"]).await;
    server.by("w").add_ids("post", &["b"]).await;
    assert!(!vera.page("/ui/stats").await.contains("Marked events"));
    olga.act("pause_queue", &[("queue", "mail")]).await;
    olga.act("pause_queue", &[("queue", "post")]).await;
    olga.act("unpause_queue", &[("queue", "mail")]).await;
    olga.act("track", &[("id", "a")]).await;
    let option = [("option", "heartbeat"), ("value", "90")];
    anna.act("set_option", &option).await;
    let shown = vera.page("/ui/stats").await;
    for words in [
        "Marked events",
        "Pause: queue mail",
        "Pause: queue post",
        "Resume: queue mail",
        "Change: option heartbeat",
        "The marked events are listed below.",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // Viewers see what has changed, but not who did it; other actions are not marked.
    for words in ["olga", "anna", "/ui/audit", ": job a"] {
        assert!(!shown.contains(words), "{words}: {shown}");
    }
    let mail = vera.page("/ui/stats?queue=queues/mail").await;
    assert!(mail.contains("Pause: queue mail") && mail.contains("Change: option heartbeat"));
    assert!(!mail.contains("queue post"), "{mail}");
    let audit = "/ui/audit?from=";
    assert!(anna.page("/ui/stats").await.contains(audit));
    // Before these actions, there is nothing to mark.
    let hours_ago = |hours: i64| {
        let at = chrono::Utc::now() - chrono::Duration::hours(hours);
        at.format("%Y-%m-%dT%H:%M").to_string()
    };
    let path = format!("/ui/stats?from={}&to={}", hours_ago(3), hours_ago(2));
    let past = vera.page(&path).await;
    assert!(!past.contains("Marked events"));
}
