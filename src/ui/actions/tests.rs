use leptos::server_fn::axum::server_fn_paths;

use super::*;

const QUEUE: &str = "protocol=lmstfy&namespace=shop&queue=a%2Fb";

/// Path, body, and the expected action, target and link.
const FORMS: &[[&str; 5]] = &[
    [
        "/ui/fn/retry",
        "id=x+y",
        "retry",
        "job x y",
        "/ui/jobs/x%20y",
    ],
    // Fields that the action does not read do not affect the target.
    [
        "/ui/fn/retry",
        "option=heartbeat&group=E&protocol=lmstfy&queue=other&id=x",
        "retry",
        "job x",
        "/ui/jobs/x",
    ],
    [
        "/ui/fn/unset_option",
        "id=x&queue=q&option=heartbeat",
        "unset_option",
        "option heartbeat",
        "/ui/config",
    ],
    [
        "/ui/fn/pause_queue",
        QUEUE,
        "pause_queue",
        "queue shop/a/b",
        "/ui/lmstfy/shop/a%2Fb",
    ],
    [
        "/ui/fn/pause_queues",
        "of=all",
        "pause_queues",
        "all queues",
        "/ui/queues",
    ],
    [
        "/ui/fn/pause_queues",
        "of=all&state=problem",
        "pause_queues",
        "all queues with problems",
        "/ui/queues",
    ],
    [
        "/ui/fn/resume_queues",
        "of=all&q=MAI&state=problem",
        "resume_queues",
        "all queues with problems that match “MAI”",
        "/ui/queues",
    ],
    [
        "/ui/fn/retry_group",
        "group=E",
        "retry_group",
        "failure group E",
        "/ui/failures/E",
    ],
    [
        "/ui/fn/unrecur",
        "id=r",
        "unrecur",
        "recurring job r",
        "/ui/recurring/r",
    ],
    [
        "/ui/fn/recur",
        "form[id]=r",
        "recur",
        "recurring job r",
        "/ui/recurring/r",
    ],
    [
        "/ui/fn/revoke_token",
        "namespace=n&name=sha256:1",
        "revoke_token",
        "token sha256:1 of n",
        "/ui/namespaces/n",
    ],
    ["/ui/fn/mend", "", "repair", "the database", "/ui/check"],
    [
        "/ui/jobq/hosts/job/7",
        "do=event",
        "append_event",
        "job 7 in hosts",
        "/ui/jobq/hosts/job/7",
    ],
    [
        "/ui/jobq/hosts/job/7",
        "",
        "set_state",
        "job 7 in hosts",
        "/ui/jobq/hosts/job/7",
    ],
    [
        "/ui/jobq/a%2Fb",
        "",
        "create_record",
        "queue a/b",
        "/ui/jobq/a%2Fb",
    ],
    ["/ui/check", "", "check", "the database", "/ui/check"],
    [
        "/ui/namespaces",
        "namespace=+n",
        "create_token",
        "namespace n",
        "/ui/namespaces/n",
    ],
];

#[test]
fn the_audit_log_names_the_target_of_a_form() {
    for [path, body, name, text, link] in FORMS {
        let (found, target) = audited(&Form::new(path, body.as_bytes())).unwrap();
        let found = [&*found, &*target.text, &*target.link];
        assert_eq!(found, [*name, *text, *link], "{path}");
    }
    assert!(audited(&Form::new("/ui/nothing", b"")).is_none());
    let (reading, _) = READ_FUNCTIONS[0];
    let name = reading.rsplit('/').next().unwrap();
    for (path, name) in [(reading, name), ("/ui/fn/made-up", "unknown")] {
        let (found, _) = audited(&Form::new(path, b"")).unwrap();
        assert_eq!(found, name);
        assert!(is_stored_name(&found) && !is_stored_name("made-up"));
    }
}

#[test]
fn a_form_cannot_put_a_foreign_address_into_the_audit_log() {
    // Before a browser resolves the dots, these begin like addresses of the dashboard.
    let away = "..%2F..%2Fget%2Fmail%3Fhost%3Dw";
    for (path, field) in [
        ("/ui/fn/stop_operation", "id"),
        ("/ui/fn/undo_operation", "id"),
        ("/ui/fn/revive_job", "queue=mail&protocol=relay&number"),
    ] {
        let body = format!("{field}={away}");
        let (_, target) = audited(&Form::new(path, body.as_bytes())).unwrap();
        assert!(target.text.contains("../../get/mail"), "{target:?}");
        assert_eq!(target.link, "", "{path}");
    }
    for link in ["/ui/../get/mail", "//evil.example", "/get/mail", "/ui\\x"] {
        let target = Target::new("x".to_owned(), link.to_owned());
        assert_eq!(target.link, "", "{link}");
    }
}

#[test]
fn every_server_function_is_a_declared_action_or_only_reads() {
    let paths: Vec<_> = server_fn_paths().map(|(path, _)| path).collect();
    assert!(paths.len() > 60, "{}", paths.len());
    for path in paths {
        let is_action = ACTIONS.iter().any(|action| action.path == path);
        let reads = READ_FUNCTIONS.iter().any(|(known, _)| *known == path);
        assert!(is_action != reads, "{path}");
    }
}

#[test]
fn every_action_that_the_audit_log_records_has_a_target() {
    for action in ACTIONS {
        let is_recorded = action.role > Role::Viewer;
        let form = Form::new(action.path, b"");
        assert_eq!(
            !(action.target)(&form).text.is_empty(),
            is_recorded,
            "{}",
            action.name
        );
    }
}
