//! The role that each action, server function and page requires.

use reqwest::Method;
use switchyard::ui::access::READ_FUNCTIONS;
use switchyard::ui::actions;

use super::{ADMIN_KEY, Browser, OPERATOR_KEY, VIEWER_KEY, with_keys};
use crate::support::Server;

/// Actions for admins only.
const ADMINS: [&str; 12] = [
    "/ui/fn/complete",
    "/ui/fn/create_alert",
    "/ui/fn/delete_alert",
    "/ui/fn/test_alert",
    "/ui/fn/set_option",
    "/ui/fn/set_queue_option",
    "/ui/fn/unset_option",
    "/ui/fn/mend",
    "/ui/fn/revoke_token",
    "/ui/fn/destroy_queue",
    "/ui/fn/delete_queue",
    "/ui/fn/forget_queue",
];

/// Actions that change only settings of the browser.
const VIEWERS: [&str; 5] = [
    "/ui/fn/see_failures",
    "/ui/fn/theme",
    "/ui/fn/set_clock",
    "/ui/fn/set_density",
    "/ui/fn/set_keys",
];

/// Server functions that only pages for operators call.
const READ_BY_OPERATORS: [&str; 4] = [
    "/ui/fn/confirm",
    "/ui/fn/edit",
    "/ui/fn/new_job",
    "/ui/fn/redis_clients",
];

/// Server functions that only pages for admins call.
const READ_BY_ADMINS: [&str; 4] = [
    "/ui/fn/alerts",
    "/ui/fn/namespaces",
    "/ui/fn/namespace",
    "/ui/fn/audit",
];

/// For viewer, operator and admin, whether the response is 403.
async fn forbidden(server: &Server, method: Method, path: &str) -> [bool; 3] {
    let mut forbidden = [false; 3];
    for (key, forbidden) in [VIEWER_KEY, OPERATOR_KEY, ADMIN_KEY]
        .into_iter()
        .zip(&mut forbidden)
    {
        let browser = Browser::at(server).with_key(key);
        let form = "application/x-www-form-urlencoded";
        let request = browser
            .request(method.clone(), path)
            .header("accept", "text/html")
            .header("content-type", form);
        let response = request.body("").send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        *forbidden = status == 403;
        assert_eq!(
            *forbidden,
            text.contains("You need the "),
            "{method} {path}: {status}"
        );
        if *forbidden {
            assert!(text.contains("Not allowed"), "{path}");
        }
    }
    forbidden
}

const VIEWER: [bool; 3] = [false, false, false];
const OPERATOR: [bool; 3] = [true, false, false];
const ADMIN: [bool; 3] = [true, true, false];

#[tokio::test]
async fn every_action_requires_its_role() {
    let server = Server::with(&with_keys(&[]));
    let actions: Vec<&str> = actions::all()
        .map(|action| action.path)
        .filter(|path| path.starts_with("/ui/fn/"))
        .collect();
    assert!(actions.len() > 35, "{actions:?}");
    for known in ADMINS.iter().chain(&VIEWERS) {
        assert!(actions.contains(known), "{known} is not an action");
    }
    for path in actions {
        let expected = if ADMINS.contains(&path) {
            ADMIN
        } else if VIEWERS.contains(&path) {
            VIEWER
        } else {
            OPERATOR
        };
        let seen = forbidden(&server, Method::POST, path).await;
        assert_eq!(seen, expected, "{path}");
    }
    assert!(READ_FUNCTIONS.len() > 30, "{}", READ_FUNCTIONS.len());
    for (path, _) in READ_FUNCTIONS {
        let expected = if READ_BY_ADMINS.contains(path) {
            ADMIN
        } else if READ_BY_OPERATORS.contains(path) {
            OPERATOR
        } else {
            VIEWER
        };
        let seen = forbidden(&server, Method::POST, path).await;
        assert_eq!(seen, expected, "{path}");
    }
    for (path, expected) in [
        ("/ui/check", ADMIN),
        ("/ui/namespaces", ADMIN),
        ("/ui/namespaces/x", ADMIN),
        ("/ui/edit", OPERATOR),
        ("/ui/jobq/q", OPERATOR),
        ("/ui/jobq/q/job/1", OPERATOR),
        ("/ui/logout", VIEWER),
        ("/ui/fn/of_the_future", OPERATOR),
    ] {
        let seen = forbidden(&server, Method::POST, path).await;
        assert_eq!(seen, expected, "{path}");
    }
}

#[tokio::test]
async fn every_page_requires_its_role() {
    let server = Server::with(&with_keys(&[]));
    for (path, expected) in [
        ("/ui", VIEWER),
        ("/ui/queues", VIEWER),
        ("/ui/jobs", VIEWER),
        ("/ui/jobs.csv", VIEWER),
        ("/ui/jobs.jsonl", VIEWER),
        ("/ui/config", VIEWER),
        ("/ui/dead", VIEWER),
        ("/ui/nowhere", VIEWER),
        ("/ui/namespaces", ADMIN),
        ("/ui/namespaces/", ADMIN),
        ("/ui/namespaces/x", ADMIN),
        ("/ui/name%73paces", ADMIN),
        ("/ui//namespaces", ADMIN),
        ("/ui/check", ADMIN),
        ("/ui/alerts", ADMIN),
        ("/ui/audit", ADMIN),
        ("/ui/%61udit", ADMIN),
        ("/ui/audit.csv", ADMIN),
        ("/ui/audit.json", ADMIN),
    ] {
        let seen = forbidden(&server, Method::GET, path).await;
        assert_eq!(seen, expected, "{path}");
    }
}

#[tokio::test]
async fn forbidden_actions_change_nothing() {
    let server = Server::with(&with_keys(&[]));
    server.client().add_ids("work", &["a"]).await;
    let vera = Browser::at(&server).with_key(VIEWER_KEY);
    let form = [("id", "a"), ("back", "/ui"), ("after", "/ui")];
    assert_eq!(vera.post("/ui/fn/cancel", &form).await.status(), 403);
    assert_eq!(server.client().state("a").await, "waiting");
    let olga = Browser::at(&server).with_key(OPERATOR_KEY);
    let form = [("option", "heartbeat"), ("value", "5"), ("back", "/ui")];
    assert_eq!(olga.post("/ui/fn/set_option", &form).await.status(), 403);
    let config = server.client().get("/config").await.ok();
    assert_eq!(config["heartbeat"], 60);
    olga.act("cancel", &[("id", "a")]).await;
    let gone = server.client().get("/job/a").await;
    assert_eq!(gone.status, 404);
}
