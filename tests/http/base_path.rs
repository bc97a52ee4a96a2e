//! The server below a path of its host name: `--base-path`, and `X-Forwarded-Prefix` of trusted proxies.

use crate::support::Server;
use crate::support::raw::ask;

const KEY: [&str; 2] = ["--ui-key", "admin:anna:the-key-of-anna"];

const PROXY: [u8; 4] = [127, 0, 0, 1];
const OTHER: [u8; 4] = [127, 0, 0, 2];

/// The addresses in a page that begin with a slash, in attributes that browsers follow.
fn links(page: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for attribute in [" href=\"/", " action=\"/", " formaction=\"/", " src=\"/"] {
        let found = page.split(attribute).skip(1);
        links.extend(found.map(|rest| rest.split('"').next().unwrap()));
    }
    assert!(links.len() > 5, "{page}");
    links
}

#[tokio::test]
async fn the_server_answers_below_its_base_path_and_at_the_root() {
    let server = Server::with(&["--base-path", "/queues/"]);
    let job = r#"{"data": {"id": "a", "meta": 1}}"#;
    let answer = ask(&server, PROXY, "POST /queues/add/mail", "", job).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    for path in [
        "/queues/job/a",
        "/job/a",
        "/health",
        "/queues/health",
        "/queues/ui",
        "/ui",
    ] {
        let answer = ask(&server, PROXY, &format!("GET {path}"), "", "").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    }
    for path in ["/queues", "/queuesx/ui", "/other/ui"] {
        let answer = ask(&server, PROXY, &format!("GET {path}"), "", "").await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
    }
    let answer = ask(&server, PROXY, "GET /queues/openapi/qless.json", "", "").await;
    assert!(answer.contains(r#""servers": [{"url": "/queues"}]"#));
}

#[tokio::test]
async fn every_link_of_a_page_has_the_base_path() {
    let server = Server::with(&["--base-path", "/queues"]);
    let job = r#"{"data": {"id": "a", "meta": {"text": "<a href=\"/ui\"> href=\"/ui\""}}}"#;
    ask(&server, PROXY, "POST /add/mail", "", job).await;
    for page in [
        "",
        "/queues",
        "/queues/mail",
        "/jobs/a",
        "/put",
        "/recurring",
        "/about",
        "/nothing",
    ] {
        for root in ["/queues/ui", "/ui"] {
            let page = ask(&server, PROXY, &format!("GET {root}{page}"), "", "").await;
            for link in links(&page) {
                assert!(link.starts_with("queues/ui"), "{root}: {link}");
                assert!(!link.starts_with("queues/queues"), "{root}: {link}");
            }
            // The script that loads the islands.
            assert!(page.contains("\"/queues\""), "{page}");
        }
    }
    let page = ask(&server, PROXY, "GET /ui/jobs/a", "", "").await;
    assert!(
        page.contains("http://localhost/queues/"),
        "a curl command: {page}"
    );
    assert!(
        page.contains(r#"href=\"/ui\""#),
        "the text of a job: {page}"
    );
    assert!(
        !page.contains(r#"href=\"/queues"#),
        "the text of a job: {page}"
    );
}

#[tokio::test]
async fn redirects_cookies_and_forms_have_the_base_path() {
    let options = [&KEY[..], &["--base-path", "/queues"]].concat();
    let server = Server::with(&options);
    let answer = ask(&server, PROXY, "GET /queues/ui/queues?page=2", "", "").await;
    assert!(
        answer.contains("location: /queues/ui/login?next=%2Fui%2Fqueues%3Fpage%3D2\r\n"),
        "{answer}"
    );
    let lines = "origin: http://localhost\r\n";
    let form = "name=anna&secret=the-key-of-anna&next=%2Fui%2Fqueues";
    let answer = ask(&server, PROXY, "POST /queues/ui/login", lines, form).await;
    assert!(
        answer.contains("location: /queues/ui/queues\r\n"),
        "{answer}"
    );
    assert!(answer.contains("; Path=/queues/ui; "), "{answer}");
    assert!(!answer.contains("Path=/ui"), "{answer}");
    let cookie = answer
        .split("set-cookie: switchyard_session=")
        .nth(1)
        .unwrap();
    let session = cookie.split(';').next().unwrap();
    // The page that contained the form, from its address below the base path.
    let lines = format!(
        "origin: http://localhost\r\ncookie: switchyard_session={session}\r\n\
         referer: http://localhost/queues/ui/failures?range=1\r\n"
    );
    let answer = ask(
        &server,
        PROXY,
        "POST /queues/ui/fn/pause_queue",
        &lines,
        "x=y",
    )
    .await;
    assert!(answer.contains("/queues/ui/failures?range=1"), "{answer}");
    let form = "queue=mail&protocol=qless&namespace=&back=%2Fui%2Fqueues";
    let answer = ask(
        &server,
        PROXY,
        "POST /queues/ui/fn/pause_queue",
        &lines,
        form,
    )
    .await;
    assert!(answer.contains("location: /queues/ui/"), "{answer}");
}

#[tokio::test]
async fn the_prefix_of_a_proxy_counts_only_if_the_proxy_is_trusted() {
    let server = Server::with(&["--trusted-proxy", "127.0.0.1"]);
    for (from, prefix, expected) in [
        (PROXY, "/queues", "queues/ui"),
        (PROXY, "/a/b", "a/b/ui"),
        (PROXY, "//evil.example", "ui"),
        (PROXY, "/x\"onload=", "ui"),
        (PROXY, "https://evil.example", "ui"),
        (OTHER, "/queues", "ui"),
    ] {
        let lines = format!("x-forwarded-prefix: {prefix}\r\n");
        let page = ask(&server, from, "GET /ui", &lines, "").await;
        for link in links(&page) {
            assert!(link.starts_with(expected), "{prefix}: {link}");
        }
    }
    // A refresh of the same page below another path has the links of that path.
    for prefix in ["/a", "/b"] {
        let lines = format!("x-forwarded-prefix: {prefix}\r\nx-switchyard-refresh: 1\r\n");
        let page = ask(&server, PROXY, "GET /ui/queues", &lines, "").await;
        for link in links(&page) {
            let expected = format!("{prefix}/ui");
            assert!(format!("/{link}").starts_with(&expected), "{link}");
        }
    }
}

#[test]
fn an_invalid_base_path_is_refused() {
    for wrong in [
        "queues",
        "//queues",
        "/a/../b",
        "/a b",
        "https://host/queues",
    ] {
        let mut command = Server::program();
        command.args([
            "serve",
            "--database",
            "sqlite::memory:",
            "--base-path",
            wrong,
        ]);
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{wrong}");
        assert!(error.contains("such as /queues"), "{wrong}: {error}");
    }
}
