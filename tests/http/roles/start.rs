//! Keys in options, and the role of requests without credentials.

use super::{ADMIN, ADMIN_KEY, Browser, OPERATOR_KEY, VIEWER_KEY, actions};
use crate::support::Server;

async fn status(browser: &Browser, path: &str) -> u16 {
    let request = browser.request(reqwest::Method::GET, path);
    request.send().await.unwrap().status().as_u16()
}

#[test]
fn invalid_keys_are_rejected_and_not_printed() {
    let secret = "hush-hush";
    for key in [
        format!("boss:vera:{secret}"),
        format!("viewer::{secret}"),
        format!("viewer:{}:{secret}", "v".repeat(65)),
        "viewer:vera:".to_owned(),
        secret.to_owned(),
        String::new(),
        format!("viewer:vera:{secret},{secret}"),
        format!("viewer:vera:{secret} operator:olga:{secret}"),
        format!("viewer:vera:{ADMIN}"),
    ] {
        for by_flag in [true, false] {
            let mut program = Server::program();
            program.args(["serve", "--listen", "127.0.0.1:0"]);
            program.args(["--database", "sqlite::memory:", "--admin-token", ADMIN]);
            if by_flag {
                program.args(["--ui-key", &key]);
            } else {
                program.env("SWITCHYARD_UI_KEYS", &key);
            }
            let output = program.output().unwrap();
            assert!(!output.status.success(), "{key}");
            let text = String::from_utf8(output.stderr).unwrap();
            assert!(text.contains("--ui-key"), "{key}: {text}");
            assert!(!text.contains(secret) && !text.contains(ADMIN), "{text}");
        }
    }
}

#[tokio::test]
async fn keys_can_come_from_the_environment() {
    let mut command = Server::command("sqlite::memory:", &[]);
    command
        .env(
            "SWITCHYARD_UI_KEYS",
            "viewer:vera:the-key-of-vera, operator:olga:the-key-of-olga\nadmin:anna:the-key-of-anna",
        )
        .env("SWITCHYARD_ENVIRONMENT", "staging");
    let server = Server::run(command);
    let browser = Browser::at(&server);
    assert_eq!(status(&browser, "/ui").await, 401);
    for key in [VIEWER_KEY, OPERATOR_KEY, ADMIN_KEY] {
        let page = browser.with_key(key).page("/ui").await;
        assert!(page.contains("staging"));
    }
    // These keys also protect the token endpoints, which are for admins only.
    for (key, expected) in [(VIEWER_KEY, 401), (OPERATOR_KEY, 401), (ADMIN_KEY, 200)] {
        let seen = status(&browser.with_key(key), "/token/ns").await;
        assert_eq!(seen, expected, "{key}");
    }
    assert_eq!(status(&browser, "/token/ns").await, 401);
}

#[tokio::test]
async fn without_keys_the_dashboard_is_open_as_configured() {
    for (options, sees, acts, sets) in [
        (&[][..], 200, true, true),
        (&["--ui-open-as", "admin"], 200, true, true),
        (&["--ui-open-as", "operator"], 200, true, false),
        (&["--ui-open-as", "viewer"], 200, false, false),
        (&["--admin-token", ADMIN], 401, false, false),
        (
            &["--admin-token", ADMIN, "--ui-open-as", "viewer"],
            200,
            false,
            false,
        ),
        (
            &["--admin-token", ADMIN, "--ui-open-as", "operator"],
            200,
            true,
            false,
        ),
    ] {
        let server = Server::with(options);
        server.client().add_ids("work", &["a"]).await;
        let browser = Browser::at(&server);
        assert_eq!(status(&browser, "/ui/jobs/a").await, sees, "{options:?}");
        if sees != 200 {
            continue;
        }
        let page = browser.page("/ui/jobs/a").await;
        let is_shown = actions(&page)
            .iter()
            .any(|action| action == "/ui/fn/cancel");
        assert_eq!(is_shown, acts, "{options:?}");
        let has_keys = options.contains(&"--admin-token");
        assert_eq!(page.contains("Sign in"), has_keys, "{options:?}");
        let form = [("id", "a"), ("tag", "x"), ("back", "/ui")];
        let done = browser.post("/ui/fn/add_tag", &form).await.status();
        assert_eq!(done == 303, acts, "{options:?}: {done}");
        let form = [("option", "x"), ("value", "1"), ("back", "/ui")];
        let done = browser.post("/ui/fn/set_option", &form).await.status();
        assert_eq!(done == 303, sets, "{options:?}: {done}");
        if has_keys {
            assert_eq!(status(&browser.with_key("wrong"), "/ui").await, 401);
            assert_eq!(status(&browser.with_key(ADMIN), "/ui/audit").await, 200);
            // Rejected actions of guests are not recorded, so guests cannot fill the audit log.
            let entries = browser.audit("").await;
            assert!(
                entries.iter().all(|entry| entry["outcome"] == "done"),
                "{entries:?}"
            );
        } else {
            let led = browser.open("/ui/login").await;
            assert_eq!(
                led.headers()["location"],
                "/ui",
                "there is nothing to sign in with"
            );
        }
    }
}

#[tokio::test]
async fn the_token_endpoints_are_open_only_to_guests_who_are_admins() {
    for (options, is_open) in [
        (&[][..], true),
        (&["--ui-open-as", "admin"], true),
        (&["--ui-open-as", "operator"], false),
        (&["--ui-open-as", "viewer"], false),
        (&["--ui-open-as", "viewer", "--admin-token", ADMIN], false),
        (&["--ui-open-as", "admin", "--admin-token", ADMIN], false),
    ] {
        let server = Server::with(options);
        let browser = Browser::at(&server);
        for (method, path, done) in [
            (reqwest::Method::POST, "/token/billing?description=x", 201),
            (reqwest::Method::GET, "/token/billing", 200),
            (reqwest::Method::DELETE, "/token/billing/nothing", 204),
        ] {
            let request = browser.request(method.clone(), path);
            let seen = request.send().await.unwrap().status();
            let expected = if is_open { done } else { 401 };
            assert_eq!(seen, expected, "{method} {path} with {options:?}");
        }
    }
}

#[test]
fn invalid_roles_and_names_are_rejected() {
    for (flag, value) in [
        ("--ui-open-as", "everything"),
        ("--environment", ""),
        ("--environment", &"x".repeat(41)),
    ] {
        let mut program = Server::program();
        program.args(["serve", "--database", "sqlite::memory:", flag, value]);
        let output = program.output().unwrap();
        assert!(!output.status.success(), "{flag} {value}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(flag), "{text}");
    }
}
