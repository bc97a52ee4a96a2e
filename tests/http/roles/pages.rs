//! Pages show no button and no link that the user's role forbids.

use std::collections::{BTreeSet, VecDeque};

use reqwest::Method;
use serde_json::json;

use super::{ADMIN_KEY, Browser, OPERATOR_KEY, VIEWER_KEY, actions, with_keys};
use crate::support::{Server, one_in_each_state};

/// A server with jobs of every protocol, so that every page has content.
async fn scene() -> Server {
    let server = Server::with(&with_keys(&["--trust-client-clock", "--no-auth"]));
    one_in_each_state(&server).await;
    let worker = server.by("w").at(50);
    let recur = json!({"id": "nightly", "meta": null, "interval": 3600});
    worker.post("/recur/work", recur).await.accepted();
    for id in ["waiting", "failed"] {
        worker.post("/track", json!(id)).await.accepted();
    }
    worker.post("/pause/work", json!(null)).await.accepted();
    let root = format!("http://{}", server.address);
    for (method, path, body) in [
        (Method::PUT, "/api/shop/mail?tries=1&ttr=60", "hello"),
        (Method::PUT, "/api/shop/mail", "world"),
        (Method::POST, "/api/v0/queue", r#"{"name":"hosts"}"#),
        (
            Method::POST,
            "/api/v0/queue/hosts/job",
            r#"{"payload":{"host":"db"},"state":["CREATED"]}"#,
        ),
    ] {
        let request = server.http.request(method, format!("{root}{path}"));
        let request = request.header("content-type", "application/json");
        let answer = request.body(body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
    }
    server
}

/// The dashboard pages that a page links to, without fragments.
fn links(page: &str) -> Vec<String> {
    let links = page.split("href=\"").skip(1);
    let links = links.map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"));
    let links = links.map(|link| link.split('#').next().unwrap().to_owned());
    let is_page = |link: &String| {
        link.starts_with("/ui")
            && !link.starts_with("/ui/pkg")
            && !link.starts_with("/ui/favicon")
            && !link.starts_with("/ui/login")
            // Omits the same page for another day or period, in another order, or with automatic refresh.
            && !link.contains("day=")
            && !link.contains("sort=")
            && !link.contains("auto=")
            && !(link.starts_with("/ui/stats") && ["from=", "compare="].iter().any(|it| link.contains(it)))
    };
    links.filter(is_page).collect()
}

/// More than there are pages in the scene.
const PAGES_MAX: usize = 800;

/// All reachable pages, and the forms on them.
async fn reached(server: &Server, key: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let browser = Browser::at(server).with_key(key);
    let mut waiting = VecDeque::from(["/ui".to_owned()]);
    let (mut seen, mut posted) = (BTreeSet::from(["/ui".to_owned()]), BTreeSet::new());
    while let Some(path) = waiting.pop_front() {
        let response = browser.open(&path).await;
        let status = response.status().as_u16();
        assert!(status == 200, "{path}: {status}");
        let text = response.text().await.unwrap();
        if path.contains("/body") || path.contains("/audit.") || path.contains("/jobs.") {
            continue;
        }
        posted.extend(actions(&text));
        for link in links(&text) {
            if seen.len() < PAGES_MAX && seen.insert(link.clone()) {
                waiting.push_back(link);
            }
        }
    }
    assert!((40..PAGES_MAX).contains(&seen.len()), "{}", seen.len());
    (seen, posted)
}

#[tokio::test]
async fn viewers_see_no_forbidden_buttons_or_links() {
    let server = scene().await;
    let (pages, posted) = reached(&server, VIEWER_KEY).await;
    let everybodys = ["theme", "set_clock", "set_density", "set_keys"];
    let everybodys = everybodys.map(|action| format!("/ui/fn/{action}"));
    assert_eq!(posted, BTreeSet::from(everybodys));
    for closed in ["/ui/namespaces", "/ui/check", "/ui/audit"] {
        assert!(
            !pages.iter().any(|page| page.starts_with(closed)),
            "{closed}"
        );
    }
    for open in [
        "/ui/jobs/failed",
        "/ui/jobq/hosts/job/1",
        "/ui/lmstfy/shop/mail",
    ] {
        assert!(pages.contains(open), "{open}: {pages:?}");
    }
    // The API calls for an action are shown to all roles.
    let page = Browser::at(&server)
        .with_key(VIEWER_KEY)
        .page("/ui/jobs/failed")
        .await;
    assert!(page.contains("API call (curl)"));
    assert!(!page.contains("/ui/fn/retry"), "{page}");
}

#[tokio::test]
async fn operators_see_their_actions_and_admins_see_all() {
    let server = scene().await;
    let (pages, operators) = reached(&server, OPERATOR_KEY).await;
    assert!(!pages.contains("/ui/audit"));
    for action in ["retry", "cancel", "unpause_queue", "recur", "make_queue"] {
        let action = format!("/ui/fn/{action}");
        assert!(operators.contains(&action), "{action}: {operators:?}");
    }
    assert!(operators.contains("/ui/jobq/hosts/job/1"));
    for action in [
        "set_option",
        "set_queue_option",
        "unset_option",
        "delete_queue",
        "destroy_queue",
        "mend",
    ] {
        let action = format!("/ui/fn/{action}");
        assert!(!operators.contains(&action), "{action}");
    }
    let (pages, admins) = reached(&server, ADMIN_KEY).await;
    assert!(pages.contains("/ui/audit"));
    assert!(operators.is_subset(&admins), "{operators:?} {admins:?}");
    for action in [
        "set_option",
        "set_queue_option",
        "delete_queue",
        "destroy_queue",
    ] {
        let action = format!("/ui/fn/{action}");
        assert!(admins.contains(&action), "{action}");
    }
    assert!(admins.contains("/ui/namespaces"));
}

#[tokio::test]
async fn pages_are_shared_only_within_a_role() {
    let server = scene().await;
    let root = Browser::at(&server);
    for _ in 0..2 {
        for (key, sees) in [
            (VIEWER_KEY, false),
            (OPERATOR_KEY, true),
            (VIEWER_KEY, false),
            (ADMIN_KEY, true),
        ] {
            let request = root.with_key(key).request(Method::GET, "/ui/jobs/failed");
            let request = request.header("x-switchyard-refresh", "1");
            let page = request.send().await.unwrap().text().await.unwrap();
            assert_eq!(page.contains("/ui/fn/retry"), sees, "{key}");
        }
    }
    // A shared rendering must not be sent to a user of another role, in either order.
    for (key, closed) in [(ADMIN_KEY, false), (VIEWER_KEY, true)] {
        let request = root.with_key(key).request(Method::GET, "/ui/audit");
        let request = request.header("x-switchyard-refresh", "1");
        let page = request.send().await.unwrap();
        assert_eq!(
            page.status(),
            200,
            "browsers log responses with any other status"
        );
        let page = page.text().await.unwrap();
        assert_eq!(page.contains("You need the admin role"), closed);
    }
}

#[tokio::test]
async fn a_refresh_sends_only_what_has_changed() {
    let server = scene().await;
    let root = Browser::at(&server);
    let refresh = async |key: &str, base: &str| {
        let request = root.with_key(key).request(Method::GET, "/ui/queues");
        let request = request.header("x-switchyard-refresh", "1");
        let request = request.header("x-switchyard-base", base);
        let response = request.send().await.unwrap();
        assert_eq!(
            response.headers()["content-type"],
            "text/plain; charset=utf-8"
        );
        let text = response.text().await.unwrap();
        let (id, rest) = text.split_once('\n').unwrap();
        (id.to_owned(), rest.to_owned())
    };
    let (id, whole) = refresh(VIEWER_KEY, "none").await;
    let (length, page) = whole.split_once('\n').unwrap();
    assert_eq!(length, format!("+{}", page.len()));
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("</html>"));
    server.by("w").add_ids("another-queue", &["new"]).await;
    let changed = loop {
        let (next, changed) = refresh(VIEWER_KEY, &id).await;
        if changed.contains("another-queue") {
            assert_ne!(next, id);
            break changed;
        }
    };
    assert!(changed.len() < page.len() / 3, "{changed}");
    assert!(
        changed.starts_with("=0 ") && !changed.contains("<!DOCTYPE"),
        "{changed}"
    );
    // No difference is sent for another user's rendering or for an unknown one.
    for (key, base) in [
        (ADMIN_KEY, id.as_str()),
        (VIEWER_KEY, "0123"),
        (VIEWER_KEY, ""),
    ] {
        let (_, whole) = refresh(key, base).await;
        assert!(whole.contains("<!DOCTYPE html>"), "{key} {base}");
    }
}

#[tokio::test]
async fn a_refresh_never_makes_a_page_of_a_download() {
    let server = Server::with(&with_keys(&["--no-auth"]));
    let script = "<script>alert(1)</script>";
    let url = format!("http://{}/api/shop/mail", server.address);
    let made = server.http.put(url).body(script).send().await.unwrap();
    let made: serde_json::Value = made.json().await.unwrap();
    let id = made["job_id"].as_str().unwrap();
    let anna = Browser::at(&server).with_key(ADMIN_KEY);
    let body = format!("/ui/lmstfy/shop/mail/job/{id}/body");
    assert_eq!(anna.page(&body).await, script);
    for path in [&*body, "/ui/audit.csv", "/ui/find?q=a"] {
        let request = anna.request(Method::GET, path);
        let request = request.header("x-switchyard-refresh", "1");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 503, "{path}");
        assert_eq!(response.text().await.unwrap(), "", "{path}");
    }
    let request = anna.request(Method::GET, "/ui/queues");
    let request = request.header("x-switchyard-refresh", "1");
    let response = request.send().await.unwrap();
    let policy = &response.headers()["content-security-policy"];
    assert_eq!(policy, "default-src 'none'; sandbox");
}

#[tokio::test]
async fn every_page_shows_the_environment_as_configured() {
    let more = ["--environment", "<b>production & more</b>"];
    let server = Server::with(&with_keys(&more));
    let browser = Browser::at(&server);
    let escaped = "&lt;b&gt;production &amp; more&lt;/b&gt;";
    assert!(browser.page("/ui/login").await.contains(escaped));
    let vera = browser.with_key(VIEWER_KEY);
    for path in ["/ui", "/ui/queues", "/ui/jobs"] {
        let page = vera.page(path).await;
        assert!(
            page.contains(escaped) && !page.contains("<b>production"),
            "{path}"
        );
    }
    let plain = Server::with(&[]);
    let page = Browser::at(&plain).page("/ui").await;
    assert!(!page.contains("Environment: "));
}

#[tokio::test]
async fn only_a_form_of_the_dashboard_runs_the_check() {
    let server = Server::with(&with_keys(&[]));
    let anna = Browser::at(&server).with_key(ADMIN_KEY);
    const FOUND: &str = "No inconsistencies found.";
    let page = anna.page("/ui/check?run=1").await;
    assert!(!page.contains(FOUND) && actions(&page).contains(&"/ui/check".to_owned()));
    let foreign = anna.request(Method::POST, "/ui/check");
    let foreign = foreign.header("sec-fetch-site", "cross-site");
    assert_eq!(foreign.send().await.unwrap().status(), 403);
    assert!(anna.audit("").await.is_empty());
    let checked = anna.post("/ui/check", &[]).await;
    assert_eq!(checked.status(), 200);
    assert!(checked.text().await.unwrap().contains(FOUND));
    let entry = anna.audit("").await.remove(0);
    assert_eq!([&entry["action"], &entry["result"]], ["check", FOUND]);
}
