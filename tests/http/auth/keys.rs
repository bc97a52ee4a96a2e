//! The credentials that each API accepts.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ADMIN, Credentials, PASSWORD, QLESS, ask, ask_from, status};
use crate::support::{Server, raw::Connection};

#[tokio::test]
async fn an_admin_token_is_the_password_of_any_user_name() {
    let server = Server::with(&["--admin-token", ADMIN]);
    for (credentials, expected) in [
        (Credentials::None, 401),
        (Credentials::Bearer(ADMIN), 200),
        (Credentials::Basic("anybody", ADMIN), 200),
        (Credentials::Basic("", ADMIN), 200),
        (Credentials::Header(&format!("bearer {ADMIN}")), 200),
        (Credentials::Basic(ADMIN, ""), 401),
        (Credentials::Basic("anybody", "wrong"), 401),
        (Credentials::Bearer("wrong"), 401),
        (Credentials::Bearer(""), 401),
        (Credentials::Header(ADMIN), 401),
        (Credentials::Header(&format!("Digest {ADMIN}")), 401),
        (Credentials::Header("Basic not-base64!"), 401),
        (Credentials::Header(""), 401),
    ] {
        for path in ["/ui", "/ui/queues", "/token/ns"] {
            assert_eq!(
                status(&server, path, credentials).await,
                expected,
                "{path} {credentials:?}"
            );
        }
    }
    // qless has no token, so it accepts all requests; lmstfy has its own tokens.
    assert_eq!(status(&server, "/queues", Credentials::None).await, 200);
    assert_eq!(
        status(&server, "/api/ns/q/size", Credentials::Bearer(ADMIN)).await,
        401
    );
}

#[tokio::test]
async fn an_admin_login_requires_name_and_password() {
    let login = ["--admin-user", "ada", "--admin-password", PASSWORD];
    for token in [false, true] {
        let mut options = login.to_vec();
        if token {
            options.extend(["--admin-token", ADMIN]);
        }
        let server = Server::with(&options);
        for (credentials, expected) in [
            (Credentials::None, false),
            (Credentials::Basic("ada", PASSWORD), true),
            (Credentials::Basic("ada", "wrong"), false),
            (Credentials::Basic("bob", PASSWORD), false),
            (Credentials::Basic(PASSWORD, "ada"), false),
            (Credentials::Basic("", PASSWORD), false),
            (Credentials::Basic("ada", ADMIN), false),
            (Credentials::Bearer(PASSWORD), false),
            (Credentials::Bearer(ADMIN), token),
        ] {
            let expected = if expected { 200 } else { 401 };
            for path in ["/ui", "/token/ns"] {
                assert_eq!(
                    status(&server, path, credentials).await,
                    expected,
                    "{path} {credentials:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn qless_accepts_its_token_and_admin_credentials() {
    let options = ["--qless-token", QLESS, "--admin-token", ADMIN];
    let server = Server::with(&options);
    for (credentials, expected) in [
        (Credentials::None, 401),
        (Credentials::Bearer(QLESS), 200),
        (Credentials::Bearer(ADMIN), 200),
        (Credentials::Basic("x", ADMIN), 200),
        (Credentials::Basic("x", QLESS), 401),
        (Credentials::Bearer("wrong"), 401),
    ] {
        assert_eq!(
            status(&server, "/queues", credentials).await,
            expected,
            "{credentials:?}"
        );
    }
    assert_eq!(
        status(&server, "/ui", Credentials::Bearer(QLESS)).await,
        401
    );
    assert_eq!(
        status(&server, "/token/ns", Credentials::Bearer(QLESS)).await,
        401
    );
    // Without admin credentials, only qless is protected.
    let server = Server::with(&["--qless-token", QLESS]);
    assert_eq!(status(&server, "/queues", Credentials::None).await, 401);
    assert_eq!(
        status(&server, "/queues", Credentials::Bearer(QLESS)).await,
        200
    );
    assert_eq!(status(&server, "/ui", Credentials::None).await, 200);
}

#[tokio::test]
async fn each_api_has_its_own_401_response() {
    let options = ["--qless-token", QLESS, "--admin-token", ADMIN];
    let server = Server::with(&options);
    let response = server.client().post("/add/q", json!({"meta": 1})).await;
    let challenge = response.headers["www-authenticate"].clone();
    assert_eq!(challenge, r#"Bearer realm="Switchyard""#);
    response.assert_rejected(401, "unauthorized");
    let page = ask(&server, Method::GET, "/ui", Credentials::None).await;
    let headers = page.headers().clone();
    let challenge = headers["www-authenticate"].to_str().unwrap();
    assert!(
        challenge.starts_with(r#"Basic realm="Switchyard""#),
        "{challenge}"
    );
    assert_eq!(headers["x-frame-options"], "DENY");
    assert!(page.text().await.unwrap().contains("password"));
    let tokens = ask(&server, Method::GET, "/token/ns", Credentials::None).await;
    assert!(tokens.headers().contains_key("www-authenticate"));
    let tokens: Value = tokens.json().await.unwrap();
    assert!(tokens["error"].is_string(), "{tokens}");
}

#[tokio::test]
async fn requests_of_other_sites_cannot_use_browser_credentials() {
    let options = ["--qless-token", QLESS, "--admin-token", ADMIN];
    let (closed, open) = (Server::with(&options), Server::with(&[]));
    let basic = Credentials::Basic("ada", ADMIN);
    let origin = format!("http://{}", closed.address);
    for (headers, ours) in [
        (&[("sec-fetch-site", "cross-site")][..], false),
        (&[("sec-fetch-site", "same-site")], false),
        (&[("origin", "http://evil.example")], false),
        (&[("origin", "null")], false),
        (&[("sec-fetch-site", "same-origin")], true),
        (&[("sec-fetch-site", "none")], true),
        (&[("origin", &origin)], true),
        (&[], true),
    ] {
        // Other sites may link to pages, because GET requests for pages change nothing. Links have no origin.
        let link = if headers[..].iter().any(|(name, _)| *name == "origin") {
            403
        } else {
            200
        };
        for (path, otherwise) in [("/ui", link), ("/queues", 403), ("/token/ns", 403)] {
            let seen = ask_from(&closed, Method::GET, path, basic, headers).await;
            let expected = if ours { 200 } else { otherwise };
            assert_eq!(seen.status(), expected, "{path} {headers:?}");
        }
        let seen = ask_from(&closed, Method::POST, "/ui/fn/retry", basic, headers).await;
        let is_form = ours && !headers.is_empty();
        assert_eq!(seen.status() != 403, is_form, "{headers:?}");
        // This page requires no credentials, so the request itself must be rejected.
        let path = "/token/ns?description=mine";
        let seen = ask_from(&open, Method::POST, path, Credentials::None, headers).await;
        let ours = ours && headers != [("origin", origin.as_str())];
        assert_eq!(seen.status(), if ours { 201 } else { 403 }, "{headers:?}");
    }
    // Another site loads a page as an image, a script or a frame, or fetches it.
    for (mode, dest, expected) in [
        ("no-cors", "image", 403),
        ("cors", "empty", 403),
        ("navigate", "iframe", 403),
        ("navigate", "document", 200),
    ] {
        for path in ["/ui", "/ui/check", "/ui/jobs?q=state:failed"] {
            let headers = [
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            let seen = ask_from(&closed, Method::GET, path, basic, &headers).await;
            assert_eq!(seen.status(), expected, "{path} {mode} {dest}");
        }
    }
    // Browsers never add a bearer token on their own.
    let evil = [("sec-fetch-site", "cross-site")];
    let seen = ask_from(
        &closed,
        Method::GET,
        "/queues",
        Credentials::Bearer(QLESS),
        &evil,
    )
    .await;
    assert_eq!(seen.status(), 200);
}

#[tokio::test]
async fn shared_pages_require_authentication() {
    let server = Server::with(&["--admin-token", ADMIN]);
    let refresh = [("x-switchyard-refresh", "1")];
    for credentials in [
        Credentials::Bearer(ADMIN),
        Credentials::None,
        Credentials::Bearer(ADMIN),
    ] {
        let seen = ask_from(&server, Method::GET, "/ui", credentials, &refresh).await;
        let expected = if matches!(credentials, Credentials::None) {
            401
        } else {
            200
        };
        assert_eq!(seen.status(), expected, "{credentials:?}");
    }
}

#[tokio::test]
async fn large_unauthorized_requests_get_a_readable_response() {
    let server = Server::with(&["--qless-token", QLESS]);
    let body = json!({"data": {"meta": "x".repeat(8 << 20)}}).to_string();
    let request = server.http.post(format!("http://{}/add/q", server.address));
    let response = request.body(body).send().await.unwrap();
    assert_eq!(response.status(), 401);
    // A client that sends Expect gets the response before it sends the body.
    let mut connection = Connection::to(&server).await;
    let head = "POST /add/q HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 1000000\r\n\r\n";
    connection.write(head).await;
    let first = connection.read_until("\r\n").await;
    assert!(first.contains(" 401 "), "{first}");
}

#[tokio::test]
async fn the_redirect_to_the_sign_in_page_repeats_only_a_short_address() {
    let server = Server::with(&["--ui-key", "admin:anna:the-key-of-anna"]);
    let location = async |length: usize| {
        let path = format!("/ui/{}", "a".repeat(length - 4));
        let mut connection = Connection::to(&server).await;
        let lines = "host: 127.0.0.1\r\naccept: text/html\r\nconnection: close";
        connection
            .write(format!("GET {path} HTTP/1.1\r\n{lines}\r\n\r\n"))
            .await;
        let response = connection.read_to_end().await;
        let line = response.lines().find(|line| line.starts_with("location: "));
        let status = response.split(' ').nth(1).unwrap();
        (status.parse::<u16>().unwrap(), line.map(str::len))
    };
    let short = "location: /ui/login?next=%2Fui".len();
    assert_eq!(location(4_096).await, (303, Some(short + 3 + 4_092)));
    assert_eq!(location(4_097).await, (303, Some(short)));
    assert_eq!(location(32 << 10).await, (303, Some(short)));
    assert_eq!(location((32 << 10) + 1).await, (414, None));
}
