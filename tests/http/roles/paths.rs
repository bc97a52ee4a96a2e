//! No spelling of a path avoids the check of roles. Requests are raw, because clients normalize paths.

use reqwest::Method;

use super::{ADMIN_KEY, Browser, OPERATOR_KEY, VIEWER_KEY, with_keys};
use crate::support::{Server, raw};

/// Pages for admins only.
const ADMIN_PAGES: [&str; 6] = [
    "audit",
    "audit.csv",
    "audit.json",
    "namespaces",
    "namespaces/billing",
    "check",
];

/// Pages for operators and admins.
const OPERATOR_PAGES: [&str; 3] = ["put", "confirm?do=retry&of=all", "redis"];

/// Paths that a router could resolve to the page.
fn spellings(page: &str) -> Vec<String> {
    let ways = [
        "/ui/queues/../",
        "/ui/queues/%2e%2e/",
        "/ui/queues/%2E%2E/",
        "/ui/queues/.%2e/",
        "/ui/queues/%2E./",
        "/ui/a/billing/../../",
        "/ui/./",
        "/ui/%2e/",
        "/ui/../ui/",
        "/ui/queues/..\\",
        "/ui\\",
        "/ui/queues\\..\\",
        "/ui/queues/%2e%2e\\",
        "/ui/fn/../",
        "/ui/pkg/x/../../",
    ];
    ways.map(|way| format!("{way}{page}")).to_vec()
}

/// Spellings that name something else and do not lead back to the page.
fn names(page: &str) -> [String; 4] {
    ["..%2F", "..%5C", "%2e%2e%2f", "~../"].map(|way| format!("/ui/queues/{way}{page}"))
}

/// Sends a GET request with exactly this path. Returns status and body of the response.
async fn get(server: &Server, path: &str, key: &str, more: &str) -> (u16, String) {
    let shown = if key.is_empty() {
        String::new()
    } else {
        format!("authorization: Bearer {key}\r\n")
    };
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: text/html\r\n{shown}{more}\r\n"
    );
    raw::exchange(server, request.as_bytes()).await
}

/// The heading of a page, as an admin sees it.
async fn heading(server: &Server, page: &str) -> Option<String> {
    let (_, text) = get(server, &format!("/ui/{page}"), ADMIN_KEY, "").await;
    let (_, rest) = text.split_once("<h1")?;
    Some(rest.split_once("</h1>")?.0.to_owned())
}

#[tokio::test]
async fn no_spelling_of_a_path_avoids_its_role() {
    let closed = Server::with(&with_keys(&[]));
    let guests = Server::with(&with_keys(&["--ui-open-as", "viewer"]));
    for (server, key) in [
        (&closed, VIEWER_KEY),
        (&closed, OPERATOR_KEY),
        (&guests, ""),
        (&guests, VIEWER_KEY),
    ] {
        let of_operators = OPERATOR_PAGES.iter().filter(|_| key != OPERATOR_KEY);
        for page in ADMIN_PAGES.iter().chain(of_operators) {
            for path in spellings(page) {
                for more in ["", "x-switchyard-refresh: 1\r\n"] {
                    let (status, text) = get(server, &path, key, more).await;
                    assert!([400, 404].contains(&status), "{path} by {key:?}: {status}");
                    assert!(!text.contains("<main"), "{path}: {text}");
                }
            }
            let Some(heading) = heading(server, page).await else {
                continue;
            };
            for path in names(page) {
                let (_, text) = get(server, &path, key, "").await;
                assert!(!text.contains(&heading), "{path} by {key:?}: {heading}");
            }
        }
    }
}

#[tokio::test]
async fn forms_are_posted_to_exact_paths() {
    let server = Server::with(&with_keys(&[]));
    for path in [
        "/ui/jobq/../namespaces",
        "/ui/jobq/%2e%2e",
        "/ui/fn/theme/../mend",
        "/ui/fn/..\\fn\\mend",
    ] {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {VIEWER_KEY}\r\n\
             origin: http://localhost\r\ncontent-length: 0\r\n\r\n"
        );
        let (status, text) = raw::exchange(&server, request.as_bytes()).await;
        assert!([400, 404].contains(&status), "{path}: {status} {text}");
    }
}

/// Postgres accepts no text with NUL.
#[tokio::test]
async fn an_address_with_nul_finds_nothing() {
    let server = Server::with(&with_keys(&[]));
    let browser = Browser::at(&server);
    let ada = browser.with_key(ADMIN_KEY);
    for path in [
        "/ui/tags/%00",
        "/ui/failures/%00",
        "/ui/recurring/%00",
        "/ui/workers/%00",
        "/ui/jobs/%00",
        "/ui/audit?who=%00",
        "/ui/audit?target=a%00",
    ] {
        let status = ada.open(path).await.status().as_u16();
        assert!([200, 404].contains(&status), "{path}: {status}");
    }
    for (function, field) in [
        ("worker", "name"),
        ("failure", "group"),
        ("tagged", "tag"),
        ("recurring", "id"),
    ] {
        let request = browser
            .with_key(VIEWER_KEY)
            .request(Method::POST, &format!("/ui/fn/{function}"));
        let response = request.form(&[(field, "a\0")]).send().await.unwrap();
        assert_eq!(response.status(), 400, "{function}");
    }
}

#[tokio::test]
async fn redirects_never_lead_to_ambiguous_paths() {
    let server = Server::with(&with_keys(&[]));
    let browser = Browser::at(&server);
    let olga = browser.with_key(OPERATOR_KEY);
    for next in [
        "/ui/../get/mail?host=evil",
        "/ui/queues/%2e%2e/%2E%2e/get/mail",
        "/ui/..",
        "/ui/./..#/ui",
        "/ui\\..\\get",
    ] {
        let form = [("name", "vera"), ("secret", VIEWER_KEY), ("next", next)];
        let signed_in = browser.post("/ui/login", &form).await;
        assert_eq!(signed_in.status(), 303, "{next}");
        assert_eq!(signed_in.headers()["location"], "/ui", "{next}");
        let form = [("theme", "dark"), ("back", next)];
        let chosen = olga.post("/ui/fn/theme", &form).await;
        assert_eq!(chosen.headers()["location"], "/ui", "{next}");
    }
    let request = olga.request(Method::GET, "/ui/login?next=/ui/../get/mail");
    let page = request.send().await.unwrap().text().await.unwrap();
    assert!(!page.contains("href=\"/ui/../"), "{page}");
}
