//! Which role what takes. The actions are read from the sources, so that none is forgotten.

use std::fs;
use std::path::Path;

use reqwest::Method;

use super::{ANNA, Browser, OLGA, VERA, with_keys};
use crate::support::Server;

/// What only administrators may do.
const ADMINS: [&str; 8] = [
    "set_option",
    "set_queue_option",
    "unset_option",
    "mend",
    "revoke_token",
    "destroy_queue",
    "delete_queue",
    "forget_queue",
];

/// What everybody may do who comes in.
const EVERYBODYS: [&str; 4] = ["theme", "set_clock", "set_density", "set_keys"];

/// What pages of administrators ask for.
const READ_BY_ADMINS: [&str; 4] = ["namespaces", "namespace", "check", "audit"];

/// What pages with long forms ask for, which viewers may not post.
const READ_BY_OPERATORS: [&str; 2] = ["new_job", "confirm"];

/// The server functions in a file or a folder of `src/api`, each with the role that it declares.
fn functions(place: &str) -> Vec<(String, String)> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/api")
        .join(place);
    let files = if place.is_dir() {
        let entries = fs::read_dir(&place).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    } else {
        vec![place]
    };
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for rest in text.split("#[server]\npub async fn ").skip(1) {
            let name = rest.split('(').next().unwrap();
            // The first thing that it does.
            let body = rest.split_once("Trouble> {\n").expect("a body").1;
            let first = body.lines().next().unwrap();
            let role = first.split_once("desk::Desk::here(Role::");
            let role = role.and_then(|(_, rest)| rest.strip_suffix(")?;"));
            let role = role.unwrap_or_else(|| panic!("{name} declares no role: {first}"));
            found.push((name.to_owned(), role.to_owned()));
        }
        assert_eq!(
            text.matches("#[server]").count(),
            text.matches("#[server]\npub async fn ").count(),
            "{} has a server function that is not understood",
            file.display()
        );
    }
    found
}

/// What the roles are answered: 403, or anything else.
async fn forbidden(server: &Server, method: Method, path: &str) -> [bool; 3] {
    let mut forbidden = [false; 3];
    for (key, forbidden) in [VERA, OLGA, ANNA].into_iter().zip(&mut forbidden) {
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
async fn every_action_takes_its_role() {
    let server = Server::with(&with_keys(&[]));
    let acts = [functions("act.rs"), functions("act")].concat();
    assert!(acts.len() > 35, "{acts:?}");
    for known in ADMINS.iter().chain(&EVERYBODYS) {
        assert!(
            acts.iter().any(|(act, _)| act == known),
            "{known} is no action"
        );
    }
    for (act, declared) in &acts {
        let (expected, role) = if ADMINS.contains(&act.as_str()) {
            (ADMIN, "Admin")
        } else if EVERYBODYS.contains(&act.as_str()) {
            (VIEWER, "Viewer")
        } else {
            (OPERATOR, "Operator")
        };
        assert_eq!(declared, role, "{act}");
        let path = format!("/ui/fn/{act}");
        let seen = forbidden(&server, Method::POST, &path).await;
        assert_eq!(seen, expected, "{act}");
    }
    for (read, declared) in functions("read.rs") {
        // A form that asks for something to read is no page, so it takes an operator at least.
        let (expected, role) = if READ_BY_ADMINS.contains(&read.as_str()) {
            (ADMIN, "Admin")
        } else if READ_BY_OPERATORS.contains(&read.as_str()) {
            (OPERATOR, "Operator")
        } else {
            (OPERATOR, "Viewer")
        };
        assert_eq!(declared, role, "{read}");
        let path = format!("/ui/fn/{read}");
        let seen = forbidden(&server, Method::POST, &path).await;
        assert_eq!(seen, expected, "{read}");
    }
    for (path, expected) in [
        ("/ui/namespaces", ADMIN),
        ("/ui/namespaces/x", ADMIN),
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
async fn every_page_takes_its_role() {
    let server = Server::with(&with_keys(&[]));
    for (path, expected) in [
        ("/ui", VIEWER),
        ("/ui/queues", VIEWER),
        ("/ui/jobs", VIEWER),
        ("/ui/config", VIEWER),
        ("/ui/dead", VIEWER),
        ("/ui/nowhere", VIEWER),
        ("/ui/namespaces", ADMIN),
        ("/ui/namespaces/", ADMIN),
        ("/ui/namespaces/x", ADMIN),
        ("/ui/name%73paces", ADMIN),
        ("/ui//namespaces", ADMIN),
        ("/ui/check", ADMIN),
        ("/ui/check?run=1", ADMIN),
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
async fn what_is_refused_is_not_done() {
    let server = Server::with(&with_keys(&[]));
    server.anyone().add_ids("work", &["a"]).await;
    let vera = Browser::at(&server).with_key(VERA);
    let form = [("id", "a"), ("back", "/ui"), ("after", "/ui")];
    assert_eq!(vera.post("/ui/fn/cancel", &form).await.status(), 403);
    assert_eq!(server.anyone().state("a").await, "waiting");
    let olga = Browser::at(&server).with_key(OLGA);
    let form = [("option", "heartbeat"), ("value", "5"), ("back", "/ui")];
    assert_eq!(olga.post("/ui/fn/set_option", &form).await.status(), 403);
    let config = server.anyone().get("/config").await.ok();
    assert_eq!(config["heartbeat"], 60);
    olga.act("cancel", &[("id", "a")]).await;
    let gone = server.anyone().get("/job/a").await;
    assert_eq!(gone.status, 404);
}
