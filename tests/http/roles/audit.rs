//! The audit log: one entry per action, with its changes.

use reqwest::Method;
use serde_json::{Value, json};
use switchyard::ui::actions::current_name;

use super::{ADMIN, Browser, OPERATOR_KEY, VIEWER_KEY, with_keys};
use crate::support::{Server, eventually};

/// A server, and a browser with all roles.
pub async fn scene() -> (Server, Browser) {
    let server = Server::with(&with_keys(&["--no-auth"]));
    let anna = Browser::at(&server).with_key(super::ADMIN_KEY);
    (server, anna)
}

/// The newest entry, which must be a successful one of this action.
pub async fn newest(browser: &Browser, action: &str) -> Value {
    let entry = browser.audit("").await.remove(0);
    assert_eq!(entry["action"], action, "{entry}");
    assert_eq!(entry["outcome"], "done", "{entry}");
    entry
}

type Change = (Value, Value, String);

/// Posts a form. Returns before, after and target of the newest entry.
pub async fn noted(browser: &Browser, action: &str, form: &[(&str, &str)]) -> Change {
    let count = browser.audit("").await.len();
    browser.act(action, form).await;
    let entries = browser.audit("").await.len();
    assert_eq!(entries, count + 1, "one entry for {action}");
    let mut entry = newest(browser, current_name(action)).await;
    let target = entry["target"].as_str().unwrap().to_owned();
    (entry["before"].take(), entry["after"].take(), target)
}

#[tokio::test]
async fn the_audit_log_records_a_job_before_and_after() {
    let (server, anna) = scene().await;
    let worker = server.by("w");
    let item = json!({"id": "a", "meta": {"card": "hush-hush"}, "priority": 3, "tags": ["red"]});
    worker.add("mail", item).await;
    let job = |state: &str, queue: &str, priority: f64, tags: &[&str], tracked: bool| json!([{"job": "a", "state": state, "queue": queue, "priority": priority, "tags": tags, "tracked": tracked}]);
    let first = job("waiting", "mail", 3.0, &["red"], false);
    let id = ("id", "a");
    let (before, after, target) = noted(&anna, "prioritize", &[id, ("priority", "7.5")]).await;
    let second = job("waiting", "mail", 7.5, &["red"], false);
    assert_eq!((before, &after), (first, &second));
    assert_eq!(target, "job a");
    let (before, after, _) = noted(&anna, "add_tag", &[id, ("tag", "blue")]).await;
    let third = job("waiting", "mail", 7.5, &["red", "blue"], false);
    assert_eq!((before, &after), (second, &third));
    let (_, after, _) = noted(&anna, "remove_tag", &[id, ("tag", "red")]).await;
    let fourth = job("waiting", "mail", 7.5, &["blue"], false);
    assert_eq!(after, fourth);
    let (before, after, _) = noted(&anna, "track", &[id]).await;
    let is_tracked = |facts: &Value| facts[0]["tracked"].clone();
    assert_eq!(
        (is_tracked(&before), is_tracked(&after)),
        (json!(false), json!(true))
    );
    let (before, after, _) = noted(&anna, "untrack", &[id]).await;
    assert_eq!(
        (is_tracked(&before), is_tracked(&after)),
        (json!(true), json!(false))
    );
    let (_, after, _) = noted(&anna, "move_job", &[id, ("queue", "post")]).await;
    assert_eq!(after[0]["queue"], "post");
    worker.pop("post").await;
    let (before, after, _) = noted(&anna, "time_out", &[id]).await;
    assert_eq!(
        (&before[0]["state"], &after[0]["state"]),
        (&json!("running"), &json!("stalled"))
    );
    worker.pop("post").await;
    worker.fail("a", "Lost").await;
    let (before, after, _) = noted(&anna, "retry", &[id]).await;
    assert_eq!(
        (&before[0]["state"], &after[0]["state"]),
        (&json!("failed"), &json!("waiting"))
    );
    let (before, after, _) = noted(&anna, "note", &[id, ("message", "hush-hush")]).await;
    assert_eq!(before, after, "the text of a note is only in the history");
    let (before, after, _) = noted(&anna, "cancel", &[id]).await;
    assert_eq!(before[0]["job"], "a");
    assert_eq!(after, json!([null]));
    let all = json!(anna.audit("").await).to_string();
    assert!(!all.contains("hush-hush"), "{all}");
}

#[tokio::test]
async fn changes_of_many_jobs_are_counted_and_the_first_are_named() {
    let (server, anna) = scene().await;
    let mail = format!("http://{}/api/shop/mail", server.address);
    for n in 0..60 {
        let request = server.http.put(format!("{mail}?tries=1"));
        let response = request.body(format!("letter {n}")).send().await.unwrap();
        assert_eq!(response.status(), 201);
    }
    let consumed = server.http.get(format!("{mail}?count=60&ttr=0"));
    assert_eq!(consumed.send().await.unwrap().status(), 200);
    // Maintenance dead-letters them.
    eventually("all are dead", async || {
        let size = server.http.get(format!("{mail}/deadletter"));
        let size: Value = size.send().await.unwrap().json().await.unwrap();
        size["deadletter_size"] == 60
    })
    .await;
    let form = [
        ("protocol", "lmstfy"),
        ("namespace", "shop"),
        ("queue", "mail"),
        ("count", "60"),
        ("ttl", "3600"),
    ];
    let (before, after, target) = noted(&anna, "respawn", &form).await;
    assert_eq!(target, "queue shop/mail");
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert_eq!(before.len(), after.len());
    assert!((10..60).contains(&before.len()), "{}", before.len());
    assert!(json!(before).to_string().len() <= 4_096);
    assert_eq!(
        (&before[0]["state"], &after[0]["state"]),
        (&json!("dead"), &json!("waiting"))
    );
    let entry = newest(&anna, "respawn").await;
    assert_eq!(entry["items"], 60);
    assert_eq!(entry["result"], "Respawned 60 dead jobs in shop/mail.");
}

#[tokio::test]
async fn the_audit_log_names_the_group_of_a_retry() {
    let (server, anna) = scene().await;
    let worker = server.by("w");
    worker.add_ids("mail", &["a", "b"]).await;
    worker.pop_ids("mail", 2).await;
    worker.fail("a", "Lost").await;
    worker.fail("b", "Lost").await;
    let form = [("group", "Lost"), ("count", "2")];
    let (.., target) = noted(&anna, "retry_group", &form).await;
    assert_eq!(target, "failure group Lost");
    let entry = newest(&anna, "retry_group").await;
    assert_eq!(entry["result"], "Operation started.");
}

#[tokio::test]
async fn the_audit_log_records_queues_options_and_workers() {
    let (server, anna) = scene().await;
    server.by("w").add_ids("mail", &["a"]).await;
    let mail = [("protocol", "qless"), ("namespace", ""), ("queue", "mail")];
    let queue = |paused: bool| json!([{"queue": "mail", "paused": paused, "listed": true}]);
    let (before, after, target) = noted(&anna, "pause_queue", &mail).await;
    assert_eq!((before, after), (queue(false), queue(true)));
    assert_eq!(target, "queue mail");
    let (before, after, _) = noted(&anna, "pause_queue", &mail).await;
    assert_eq!(
        (before, after),
        (json!([]), json!([])),
        "it was paused already"
    );
    noted(&anna, "unpause_queue", &mail).await;
    let option = |value: &str| json!([{"option": "heartbeat", "value": value}]);
    let form = [("option", "heartbeat"), ("value", "90")];
    let (before, after, target) = noted(&anna, "set_option", &form).await;
    assert_eq!((before, after), (option("60"), option("90")));
    assert_eq!(target, "option heartbeat");
    let (before, after, _) = noted(&anna, "unset_option", &form[..1]).await;
    assert_eq!((before, after), (option("90"), option("60")));
    let (before, after, _) = noted(&anna, "set_option", &[("option", "own"), ("value", "1")]).await;
    assert_eq!(
        (before, after),
        (json!([null]), json!([{"option": "own", "value": "1"}]))
    );
    let (before, after, target) = noted(&anna, "forget_worker", &[("worker", "w")]).await;
    assert_eq!((before, after), (json!([{"worker": "w"}]), json!([null])));
    assert_eq!(target, "worker w");
    let (_, _, target) = noted(&anna, "mend", &[]).await;
    assert_eq!(target, "the database");
    // An entry is found by the current and by the former name of its action.
    for name in ["repair", "mend"] {
        let found = anna.audit(&format!("?action={name}")).await;
        assert_eq!(
            (found.len(), &found[0]["action"]),
            (1, &json!("repair")),
            "{name}"
        );
    }
    let page = anna.page("/ui/audit").await;
    assert!(
        page.contains(">repair<") && !page.contains(">mend<"),
        "{page}"
    );
}

#[tokio::test]
async fn the_audit_log_records_recurring_jobs() {
    let (_server, anna) = scene().await;
    let field = |name: &'static str, value: &'static str| (name, value);
    let form = [
        field("form[queue]", "mail"),
        field("form[id]", "nightly"),
        field("form[interval]", "5"),
        field("form[unit]", "60"),
        field("form[offset]", "0"),
        field("form[priority]", "0"),
        field("form[retries]", "2"),
        field("form[backlog]", "0"),
        field("form[klass]", ""),
        field("form[data]", r#"{"card":"hush-hush"}"#),
    ];
    let (before, after, target) = noted(&anna, "recur", &form).await;
    assert_eq!(
        (&before[0], target.as_str()),
        (&Value::Null, "recurring job nightly")
    );
    assert_eq!(
        (&after[0]["recurring"], &after[0]["interval"]),
        (&json!("nightly"), &json!(300.0))
    );
    let mut form = form.to_vec();
    form[2] = field("form[interval]", "10");
    let (before, after, _) = noted(&anna, "change_recurring", &form).await;
    assert_eq!(
        (&before[0]["interval"], &after[0]["interval"]),
        (&json!(300.0), &json!(600.0))
    );
    let (before, after, _) = noted(&anna, "unrecur", &[("id", "nightly")]).await;
    assert_eq!(
        (&before[0]["interval"], &after),
        (&json!(600.0), &json!([null]))
    );
    assert!(
        !json!(anna.audit("").await)
            .to_string()
            .contains("hush-hush")
    );
}

#[tokio::test]
async fn the_audit_log_names_tokens_by_their_public_name() {
    let (_server, anna) = scene().await;
    let form = [("namespace", "shop"), ("description", "the mailer")];
    let made = anna.post("/ui/namespaces", &form).await;
    let page = made.text().await.unwrap();
    let secret = page.split("id=\"secret-text\"").nth(1).unwrap();
    let secret = secret.split('>').nth(1).unwrap().split('<').next().unwrap();
    assert!(secret.len() > 30, "{secret}");
    let entry = newest(&anna, "create_token").await;
    assert_eq!(entry["target"], "namespace shop");
    assert_eq!(entry["before"], json!([null]));
    let name = entry["after"][0]["token"].as_str().unwrap().to_owned();
    assert!(name.starts_with("sha256:"), "{name}");
    let form = [("namespace", "shop"), ("name", name.as_str())];
    let (before, after, target) = noted(&anna, "revoke_token", &form).await;
    assert_eq!(before, json!([{"token": name, "namespace": "shop"}]));
    assert_eq!(
        (after, target),
        (json!([null]), format!("token {name} of shop"))
    );
    assert!(!json!(anna.audit("").await).to_string().contains(secret));
    let page = anna.page("/ui/audit").await;
    assert!(page.contains(&name) && !page.contains(secret));
}

#[tokio::test]
async fn the_audit_log_records_jobs_of_other_protocols() {
    let (server, anna) = scene().await;
    let root = format!("http://{}", server.address);
    for _ in 0..3 {
        let request = server.http.put(format!("{root}/api/shop/mail"));
        let response = request.body("hush-hush").send().await.unwrap();
        assert_eq!(response.status(), 201);
    }
    let mail = [
        ("protocol", "lmstfy"),
        ("namespace", "shop"),
        ("queue", "mail"),
    ];
    let (before, after, target) = noted(&anna, "destroy_queue", &mail).await;
    assert_eq!((before, after), (json!([null]), json!([{"deleted": 3}])));
    assert_eq!(target, "queue shop/mail");
    assert_eq!(newest(&anna, "destroy_queue").await["items"], 3);
    let (before, after, _) = noted(&anna, "make_queue", &[("name", "hosts")]).await;
    assert_eq!(
        (&before, &after[0]["queue"]),
        (&json!([null]), &json!("hosts"))
    );
    let form = [
        ("payload", r#"{"card":"hush-hush"}"#),
        ("state", r#"["CREATED","hush-hush"]"#),
    ];
    assert_eq!(anna.post("/ui/jobq/hosts", &form).await.status(), 303);
    let entry = newest(&anna, "create_record").await;
    assert_eq!(
        (&entry["before"], &entry["after"][0]["state"]),
        (&json!([null]), &json!("record"))
    );
    let form = [
        ("do", "state"),
        ("old", r#"["CREATED","hush-hush"]"#),
        ("new", r#"["BOOTED","hush-hush"]"#),
    ];
    assert_eq!(anna.post("/ui/jobq/hosts/job/1", &form).await.status(), 303);
    let entry = newest(&anna, "set_state").await;
    let (before, after) = (&entry["before"][0]["label"], &entry["after"][0]["label"]);
    assert!(before.as_str().unwrap().contains("CREATED"), "{entry}");
    assert!(after.as_str().unwrap().contains("BOOTED"), "{entry}");
    // The same request again now conflicts.
    assert_eq!(anna.post("/ui/jobq/hosts/job/1", &form).await.status(), 200);
    let entry = anna.audit("").await.remove(0);
    assert_eq!(
        (&entry["outcome"], &entry["action"]),
        (&json!("refused"), &json!("set_state"))
    );
    let form = [("do", "event"), ("event", r#""hush-hush""#)];
    assert_eq!(anna.post("/ui/jobq/hosts/job/1", &form).await.status(), 303);
    newest(&anna, "append_event").await;
    let hosts = [("protocol", "jobq"), ("namespace", ""), ("queue", "hosts")];
    noted(&anna, "delete_queue", &hosts).await;
    let all = json!(anna.audit("").await).to_string();
    assert!(!all.contains("hush-hush"), "{all}");
}

#[tokio::test]
async fn the_audit_log_records_rejected_actions_with_reasons() {
    let (server, anna) = scene().await;
    server.by("w").add_ids("mail", &["a"]).await;
    for (browser, who, action, form, said) in [
        (
            &anna,
            "anna",
            "retry",
            &[("id", "a")][..],
            "is in state waiting, not failed",
        ),
        (
            &anna,
            "anna",
            "retry",
            &[("id", "nobody")],
            "does not exist",
        ),
        (
            &anna.with_key(VIEWER_KEY),
            "vera",
            "cancel",
            &[("id", "a")],
            "Requires the operator role.",
        ),
        (
            &anna.with_key(OPERATOR_KEY),
            "olga",
            "set_option",
            &[("option", "x")],
            "Requires the admin role.",
        ),
        (
            &anna,
            "anna",
            "prioritize",
            &[("id", "a")],
            "failed with status",
        ),
    ] {
        let form = if action == "prioritize" {
            form.to_vec()
        } else {
            [form, &[("back", "/ui"), ("after", "/ui")]].concat()
        };
        let count = anna.audit("").await.len();
        browser.post(&format!("/ui/fn/{action}"), &form).await;
        let entries = anna.audit("").await;
        assert_eq!(entries.len(), count + 1, "{action}");
        let entry = &entries[0];
        assert_eq!(
            (&entry["who"], &entry["action"]),
            (&json!(who), &json!(action))
        );
        assert_eq!(entry["outcome"], "refused");
        let outcome = entry["result"].as_str().unwrap();
        assert!(outcome.contains(said), "{outcome}");
        assert_eq!(
            (&entry["before"], &entry["after"]),
            (&json!([]), &json!([]))
        );
    }
    // Display settings are not recorded.
    anna.post("/ui/fn/theme", &[("theme", "dark"), ("back", "/ui")])
        .await;
    assert!(anna.audit("?action=theme").await.is_empty());
}

#[tokio::test]
async fn an_entry_names_user_and_address() {
    let (server, anna) = scene().await;
    server.by("w").add_ids("mail", &["a"]).await;
    let (olga, _) = Browser::at(&server).signed_in("olga", OPERATOR_KEY).await;
    let form = [("id", "a"), ("back", "/ui")];
    let done = olga.post("/ui/fn/track", &form).await;
    let request_id = done.headers()["x-request-id"].to_str().unwrap().to_owned();
    olga.post("/ui/logout", &[]).await;
    let entries = anna.audit("").await;
    let actions: Vec<_> = entries.iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["sign_out", "track", "sign_in"]);
    let entry = &entries[1];
    assert_eq!(
        (&entry["who"], &entry["role"]),
        (&json!("olga"), &json!("operator"))
    );
    assert_eq!(entry["request_id"], request_id.as_str());
    assert_eq!(entry["from"], "127.0.0.1");
    assert_eq!(entry["link"], "/ui/jobs/a");
    assert!(entry["at"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn the_audit_log_is_filtered_paged_and_exported() {
    let (server, anna) = scene().await;
    assert!(anna.page("/ui/audit").await.contains("No entries yet."));
    let ids: Vec<String> = (0..60).map(|n| format!("=job {n}")).collect();
    let borrowed: Vec<&str> = ids.iter().map(String::as_str).collect();
    server.by("w").add_ids("mail", &borrowed).await;
    let olga = anna.with_key(OPERATOR_KEY);
    for id in &ids {
        olga.act("track", &[("id", id)]).await;
    }
    anna.act("track", &[("id", "=job 7")]).await;
    anna.act("untrack", &[("id", "=job 7")]).await;
    for (query, count) in [
        ("", 62),
        ("?who=olga", 60),
        ("?who=anna", 2),
        ("?who=nobody", 0),
        ("?action=untrack", 1),
        ("?who=olga&action=untrack", 0),
        ("?target=JOB%207", 3),
        ("?target=%25", 0),
        ("?from=2020-01-01T00:00", 62),
        ("?until=2020-01-01T00:00", 0),
        ("?from=2020-01-01&until=2999-12-31", 62),
        ("?from=2999-12-31", 0),
        ("?from=yesterday", 0),
    ] {
        assert_eq!(anna.audit(query).await.len(), count, "{query}");
        let page = anna.page(&format!("/ui/audit{query}")).await;
        assert_eq!(
            page.matches("<tr data-key").count(),
            count.min(20),
            "{query}"
        );
    }
    let page = anna.page("/ui/audit?from=yesterday").await;
    assert!(page.contains("“yesterday” is not a valid time"));
    // The second page starts where the first ends, even if entries were added in between.
    let page = anna.page("/ui/audit?who=olga").await;
    let next = page.split("rel=\"next\" href=\"").nth(1).unwrap();
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    olga.act("untrack", &[("id", "=job 0")]).await;
    let second = anna.page(&next).await;
    assert_eq!(second.matches("<tr data-key").count(), 20);
    assert!(
        second.contains("=job 39<") && second.contains("=job 20<"),
        "the next twenty"
    );
    exported(&anna, &Browser::at(&server)).await;
}

/// Checks the exports of the two entries of an admin; users without the role get none.
async fn exported(anna: &Browser, missing: &Browser) {
    let csv = anna.open("/ui/audit.csv?who=anna").await;
    assert_eq!(csv.headers()["content-type"], "text/csv; charset=utf-8");
    assert!(
        csv.headers()["content-disposition"]
            .to_str()
            .unwrap()
            .contains("audit.csv")
    );
    let csv = csv.text().await.unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3, "{csv}");
    assert!(lines[0].starts_with("at,who,role,action,target,"));
    assert!(lines[2].contains(",anna,admin,track,job =job 7,"), "{csv}");
    let json = anna.open("/ui/audit.json").await;
    assert_eq!(json.headers()["x-switchyard-more"], "false");
    assert_eq!(json.headers()["cache-control"], "no-store");
    assert_eq!(
        anna.with_key(VIEWER_KEY)
            .open("/ui/audit.csv")
            .await
            .status(),
        403
    );
    let asked = missing.request(Method::GET, "/ui/audit.csv");
    assert_eq!(asked.send().await.unwrap().status(), 401);
    assert_eq!(anna.with_key(ADMIN).open("/ui/audit").await.status(), 200);
}
