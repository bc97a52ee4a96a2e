//! Sign-in, sign-out, and the end of sessions.

use reqwest::Method;
use tempfile::TempDir;

use super::{ADMIN, ADMIN_KEY, Browser, OPERATOR_KEY, VIEWER_KEY, with_keys};
use crate::support::Server;

/// Whether the browser is authenticated.
async fn is_signed_in(browser: &Browser) -> bool {
    let status = browser.open("/ui/queues").await.status();
    assert!([200, 303].contains(&status.as_u16()), "{status}");
    status == 200
}

#[tokio::test]
async fn browsers_are_redirected_to_the_sign_in_page_and_programs_challenged() {
    let server = Server::with(&with_keys(&[]));
    let browser = Browser::at(&server);
    let led = browser.open("/ui/queues?q=a%20b&sort=name").await;
    assert_eq!(led.status(), 303);
    let login = led.headers()["location"].to_str().unwrap().to_owned();
    assert_eq!(
        login,
        "/ui/login?next=%2Fui%2Fqueues%3Fq%3Da%2520b%26sort%3Dname"
    );
    let page = browser.page(&login).await;
    assert!(
        page.contains(r#"name="next" value="/ui/queues?q=a%20b&amp;sort=name""#),
        "{page}"
    );
    // Without authentication, nothing of the dashboard is visible.
    for word in ["/ui/queues\"", "/ui/failures", "Audit", "id=\"rail\""] {
        assert!(!page.contains(word), "{word}");
    }
    // A form leads to the sign-in page as well, and after it back to the page of the form.
    let request = browser.request(Method::POST, "/ui/fn/retry");
    let request = request.header("accept", "text/html").body("id=a");
    let page = format!("http://{}/ui/jobs/a", server.address);
    let led = request.header("referer", page).send().await.unwrap();
    assert_eq!(led.status(), 303);
    assert_eq!(led.headers()["location"], "/ui/login?next=%2Fui%2Fjobs%2Fa");
    // Only browser navigation gets the sign-in page.
    for (headers, challenged) in [
        (&[("accept", "*/*")][..], true),
        (&[("accept", "application/json")], true),
        (&[], true),
        (&[("accept", "text/event-stream")], false),
        (
            &[("accept", "text/html"), ("x-switchyard-refresh", "1")],
            false,
        ),
    ] {
        let mut request = browser.request(Method::GET, "/ui");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401, "{headers:?}");
        let challenge = response.headers().contains_key("www-authenticate");
        assert_eq!(challenge, challenged, "{headers:?}");
    }
}

#[tokio::test]
async fn a_session_lasts_until_the_sign_out() {
    let server = Server::with(&with_keys(&[]));
    let missing = Browser::at(&server);
    for (name, secret, role) in [
        ("vera", VIEWER_KEY, "viewer"),
        ("olga", OPERATOR_KEY, "operator"),
        ("anna", ADMIN_KEY, "admin"),
        ("whoever", ADMIN, "admin"),
    ] {
        let (browser, set) = missing.signed_in(name, secret).await;
        for part in ["Path=/ui", "HttpOnly", "SameSite=Lax", "Max-Age=604800"] {
            assert!(set.contains(part), "{part}: {set}");
        }
        assert!(!set.contains("Secure") && !set.contains(secret), "{set}");
        let page = browser.page("/ui/queues").await;
        let shown = if name == "whoever" { "admin" } else { name };
        assert!(
            page.contains(&format!("<span class=\"name\">{shown}")),
            "{page}"
        );
        assert!(page.contains(&format!("· {role}")) && page.contains("/ui/logout"));
        let out = browser.post("/ui/logout", &[]).await;
        assert_eq!(out.status(), 303);
        assert_eq!(out.headers()["location"], "/ui/login");
        let gone = out.headers()["set-cookie"].to_str().unwrap();
        assert!(
            gone.contains("switchyard_session=;") && gone.contains("Max-Age=0"),
            "{gone}"
        );
        assert!(
            !is_signed_in(&browser).await,
            "though the browser kept the cookie"
        );
    }
}

#[tokio::test]
async fn over_https_cookies_are_secure() {
    let server = Server::with(&with_keys(&["--trusted-proxy", "127.0.0.1"]));
    let form = [("name", "vera"), ("secret", VIEWER_KEY)];
    let Browser { http, origin, .. } = Browser::at(&server);
    let request = http
        .post(format!("{origin}/ui/login"))
        .header("origin", origin.replace("http://", "https://"))
        .header("x-forwarded-proto", "https")
        .form(&form);
    let response = request.send().await.unwrap();
    let set = response.headers()["set-cookie"].to_str().unwrap();
    assert!(set.ends_with("; Secure"), "{set}");
    assert_eq!(response.headers()["location"], "/ui");
}

#[tokio::test]
async fn wrong_keys_are_rejected_without_details() {
    let server = Server::with(&with_keys(&[]));
    let browser = Browser::at(&server);
    let mut responses = Vec::new();
    for (name, secret) in [
        ("vera", OPERATOR_KEY),
        ("nobody", VIEWER_KEY),
        ("vera", ""),
        ("vera", "x"),
    ] {
        let form = [("name", name), ("secret", secret), ("next", "/ui/jobs")];
        let response = browser.post("/ui/login", &form).await;
        assert_eq!(response.status(), 403);
        assert!(!response.headers().contains_key("set-cookie"));
        let page = response.text().await.unwrap();
        assert!(page.contains("Wrong name or key."), "{page}");
        assert!(page.contains(r#"name="next" value="/ui/jobs""#), "{page}");
        assert!(secret.len() < 2 || !page.contains(secret));
        responses.push(
            page.split("role=\"alert\"")
                .nth(1)
                .unwrap()
                .split("</p>")
                .next()
                .unwrap()
                .to_owned(),
        );
    }
    assert!(
        responses.iter().all(|it| *it == responses[0]),
        "{responses:?}"
    );
    for cookie in [
        "switchyard_session=",
        "switchyard_session=x",
        "switchyard_session=' OR 1=1",
    ] {
        let forged = Browser {
            cookie: Some(cookie.to_owned()),
            ..browser.clone()
        };
        assert!(!is_signed_in(&forged).await, "{cookie}");
    }
}

#[tokio::test]
async fn a_sign_in_redirects_only_to_dashboard_pages() {
    let server = Server::with(&with_keys(&[]));
    let browser = Browser::at(&server);
    for next in [
        "https://evil.example/ui",
        "//evil.example",
        "/",
        "",
        "/uix",
        "/ui/login?next=/ui",
    ] {
        let form = [("name", "vera"), ("secret", VIEWER_KEY), ("next", next)];
        let response = browser.post("/ui/login", &form).await;
        assert_eq!(response.headers()["location"], "/ui", "{next}");
    }
    // A page of another site cannot sign a user in.
    let request = browser.http.post(format!("{}/ui/login", browser.origin));
    let form = [("name", "vera"), ("secret", VIEWER_KEY)];
    let request = request.header("origin", "http://evil.example").form(&form);
    assert_eq!(request.send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn after_10_failures_even_the_right_key_has_to_wait() {
    let server = Server::with(&with_keys(&[]));
    let browser = Browser::at(&server);
    let wrong = [("name", "vera"), ("secret", "wrong")];
    let right = [("name", "vera"), ("secret", VIEWER_KEY)];
    for _ in 0..10 {
        assert_eq!(browser.post("/ui/login", &wrong).await.status(), 403);
    }
    for form in [wrong, right] {
        let refused = browser.post("/ui/login", &form).await;
        assert_eq!(refused.status(), 429);
        let wait = refused.headers()["retry-after"].to_str().unwrap();
        let wait: u64 = wait.parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        assert!(refused.text().await.unwrap().contains("Too many attempts"));
    }
    // Existing sessions are not affected.
    assert!(is_signed_in(&browser.with_key(VIEWER_KEY)).await);
}

#[tokio::test]
async fn a_session_survives_a_restart_but_not_the_removal_of_its_key() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.db");
    let key = |key| ["--admin-token", ADMIN, "--ui-key", key];
    let server = Server::on(&path, &key("viewer:vera:the-key-of-vera"));
    let (browser, _) = Browser::at(&server).signed_in("vera", VIEWER_KEY).await;
    server.stop().await;
    for (now, role) in [
        ("viewer:vera:the-key-of-vera", Some("viewer")),
        ("operator:vera:the-key-of-vera", Some("operator")),
        ("viewer:vera:another-key", None),
        ("viewer:bob:the-key-of-vera", None),
        ("viewer:vera:the-key-of-vera", Some("viewer")),
    ] {
        let server = Server::on(&path, &key(now));
        let browser = Browser {
            cookie: browser.cookie.clone(),
            ..Browser::at(&server)
        };
        assert_eq!(is_signed_in(&browser).await, role.is_some(), "{now}");
        if let Some(role) = role {
            let page = browser.page("/ui").await;
            assert!(page.contains(role), "{now}");
            let may_act = browser
                .post("/ui/fn/retry", &[("id", "x"), ("back", "/ui")])
                .await;
            assert_eq!(may_act.status() == 303, role == "operator", "{now}");
        }
        server.stop().await;
    }
}
