//! The search of the palette, and the display settings.

use reqwest::header::{COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use serde_json::{Value, json};

use crate::support::Server;

/// The results, as pairs of kind and name.
async fn find(server: &Server, typed: &str) -> Vec<(String, String)> {
    let found = groups(server, typed).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let groups = found.as_array().unwrap().iter();
    let named = |group: &Value| {
        let items = group["items"].as_array().unwrap().iter();
        let names = items.map(|item| (text(&group["kind"]), text(&item["name"])));
        names.collect::<Vec<_>>()
    };
    groups.flat_map(named).collect()
}

async fn groups(server: &Server, typed: &str) -> Value {
    let address = format!("http://{}/ui/find", server.address);
    let response = server.http.get(address).query(&[("q", typed)]).send();
    let response = response.await.unwrap();
    assert_eq!(response.status(), 200);
    let headers = response.headers().clone();
    let header = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-content-type-options"), "nosniff");
    response.json().await.unwrap()
}

fn pair(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test]
async fn names_are_found_by_a_part_and_jobs_by_their_id() {
    let server = Server::start();
    let me = server.by("Mail-worker");
    me.add(
        "e-mail",
        json!({"id": "mail", "meta": 1, "tags": ["x-mail"]}),
    )
    .await;
    server
        .client()
        .add("mail", json!({"id": "other", "meta": 1}))
        .await;
    me.pop("e-mail").await;
    me.fail("mail", "MailError").await;
    let found = find(&server, " MAIL ").await;
    let expected = [
        pair("Queues", "mail"),
        pair("Queues", "e-mail"),
        pair("Workers", "Mail-worker"),
        pair("Failures", "MailError"),
        pair("Tags", "x-mail"),
    ];
    assert_eq!(found, expected);
    assert_eq!(find(&server, "mail").await[0], pair("Jobs", "mail"));
    // An ID is found only as a whole, and is case-sensitive.
    assert_eq!(find(&server, "othe").await, []);
    assert_eq!(find(&server, "OTHER").await, []);
    assert_eq!(find(&server, "other").await, [pair("Jobs", "other")]);
}

#[tokio::test]
async fn queues_of_every_protocol_link_to_their_pages() {
    let server = Server::with(&["--no-auth"]);
    server.client().add("a/b ü", json!({"meta": 1})).await;
    server.client().add("mail", json!({"meta": 1})).await;
    let publish = format!("http://{}/api/shop/mail?tries=1&ttl=60", server.address);
    let published = server.http.put(publish).body("x").send().await.unwrap();
    assert_eq!(published.status(), 201);
    let found = groups(&server, "a").await;
    let to: Vec<_> = found[0]["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["to"].clone())
        .collect();
    let pages = [
        "/ui/queues/a%2Fb%20%C3%BC",
        "/ui/queues/mail",
        "/ui/lmstfy/shop/mail",
    ];
    assert_eq!(to, pages);
}

#[tokio::test]
async fn the_number_of_results_is_limited() {
    let server = Server::start();
    for kind in 0..12 {
        let tags: Vec<_> = (0..4).map(|tag| format!("same tag {kind} {tag}")).collect();
        let id = format!("same {kind}");
        let me = server.by(&id);
        me.add(&id, json!({"id": id, "meta": 1, "tags": tags}))
            .await;
        me.pop(&id).await;
        me.fail(&id, &format!("same failure {kind}")).await;
    }
    assert_eq!(
        find(&server, "same").await.len(),
        16,
        "7 queues, 3 of each other kind"
    );
    let three = [
        pair("Jobs", "same 3"),
        pair("Queues", "same 3"),
        pair("Workers", "same 3"),
    ];
    assert_eq!(find(&server, "same 3").await, three);
    for nothing in ["", "  ", "\0", &"x".repeat(256), &"same ".repeat(1_000)] {
        assert_eq!(find(&server, nothing).await, [], "{nothing:?}");
    }
    let address = format!("http://{}/ui/find", server.address);
    assert_eq!(
        server
            .http
            .get(&address)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap(),
        "[]"
    );
}

#[tokio::test]
async fn names_are_returned_unchanged() {
    let server = Server::start();
    for name in [
        "<img src=x onerror=alert(1)>",
        "%",
        "a_b",
        "\"'\\",
        "日本",
        "../x",
        "~",
    ] {
        server.client().add(name, json!({"meta": 1})).await;
        let found = find(&server, name).await;
        assert_eq!(found[0], pair("Queues", name));
    }
    // Names are neither patterns nor parts of statements.
    assert_eq!(find(&server, "%").await, [pair("Queues", "%")]);
    assert_eq!(find(&server, "a%b").await, []);
    assert_eq!(find(&server, "' OR 1=1 --").await, []);
}

/// Posts a display setting like the form of the page.
async fn choose(server: &Server, what: &str, form: &str) -> Response {
    let client = Client::builder().redirect(Policy::none()).build().unwrap();
    let origin = format!("http://{}", server.address);
    client
        .post(format!("{origin}/ui/fn/{what}"))
        .header(ORIGIN, origin)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form.to_owned())
        .send()
        .await
        .unwrap()
}

/// The page with these cookies.
async fn page(server: &Server, cookies: &str) -> String {
    let address = format!("http://{}/ui/workers", server.address);
    let request = server.http.get(address).header(COOKIE, cookies);
    request.send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn a_display_setting_is_stored_in_a_cookie_unless_default() {
    let server = Server::start();
    for (what, field, value, usual) in [
        ("theme", "theme", "dark", "auto"),
        ("set_clock", "clock", "utc", "relative"),
        ("set_clock", "clock", "local", "relative"),
        ("set_density", "density", "compact", "comfortable"),
        ("set_keys", "keys", "off", "on"),
    ] {
        let chosen = choose(&server, what, &format!("{field}={value}&back=/ui/workers")).await;
        assert_eq!(chosen.status(), 303, "{what}");
        assert_eq!(chosen.headers()[LOCATION], "/ui/workers");
        let cookie = chosen.headers()[SET_COOKIE].to_str().unwrap().to_owned();
        let kept = format!("switchyard_{field}={value}");
        let rest = "; Path=/ui; Max-Age=31536000; HttpOnly; SameSite=Lax";
        assert_eq!(cookie, format!("{kept}{rest}"));
        let shown = format!("data-{field}=\"{value}\"");
        assert!(page(&server, &kept).await.contains(&shown), "{shown}");
        assert!(!page(&server, "").await.contains(&shown), "{shown}");
        for nothing in [usual, "", "nonsense", "x%0d%0ay"] {
            let back = choose(
                &server,
                what,
                &format!("{field}={nothing}&back=//elsewhere"),
            )
            .await;
            assert_eq!(back.headers()[LOCATION], "/ui");
            let cookie = back.headers()[SET_COOKIE].to_str().unwrap().to_owned();
            assert!(
                cookie.starts_with(&format!("switchyard_{field}=; Path=/ui; Max-Age=0;")),
                "{cookie}"
            );
        }
    }
    let odd = page(&server, "switchyard_clock=\"><b>; switchyard_keys=maybe").await;
    assert!(
        !odd.contains("data-clock") && !odd.contains("data-keys=\""),
        "{odd}"
    );
}

#[tokio::test]
async fn a_refresh_uses_the_display_settings_of_the_browser() {
    let server = Server::start();
    server.by("ada").pop("nothing").await;
    let ask = async |cookie: &str| {
        let address = format!("http://{}/ui/workers", server.address);
        let request = server.http.get(address).header("x-switchyard-refresh", "1");
        let response = request.header(COOKIE, cookie).send().await.unwrap();
        response.text().await.unwrap()
    };
    let utc = |page: &str| page.contains(" UTC</time>");
    // All within the second in which a rendering is shared.
    assert!(!utc(&ask("").await));
    assert!(utc(&ask("switchyard_clock=utc").await));
    assert!(!utc(&ask("").await));
}
