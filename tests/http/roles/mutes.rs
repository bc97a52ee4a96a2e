//! Muted failure groups, and failures that are new to the user.

use reqwest::Method;
use serde_json::{Value, json};

use super::audit::{noted, scene};
use super::{Browser, VIEWER_KEY};
use crate::support::Server;

const GROUP: (&str, &str) = ("group", "Lost");

async fn read(browser: &Browser, function: &str, form: &[(&str, &str)]) -> Value {
    let request = browser.request(Method::POST, &format!("/ui/fn/{function}"));
    let request = request.header("accept", "application/json").form(form);
    request.send().await.unwrap().json().await.unwrap()
}

async fn fail(server: &Server, id: &str) {
    let worker = server.by("w");
    worker.add_ids("mail", &[id]).await;
    worker.pop("mail").await;
    worker.fail(id, "Lost").await;
}

#[tokio::test]
async fn a_muted_group_is_no_problem_until_it_is_unmuted() {
    let (server, anna) = scene().await;
    fail(&server, "a").await;
    const PROBLEM: &str = "1 failed job in 1 group";
    assert!(anna.page("/ui").await.contains(PROBLEM));
    let form = [GROUP, ("reason", "a known bug"), ("hours", "2")];
    let (before, after, target) = noted(&anna, "mute_group", &form).await;
    let mute = json!([{"mute": "Lost", "reason": "a known bug", "hours": 2}]);
    assert_eq!((before, after), (json!([null]), mute));
    assert_eq!(target, "failure group Lost");
    let overview = anna.page("/ui").await;
    assert!(
        !overview.contains(PROBLEM) && overview.contains(" muted"),
        "{overview}"
    );
    let page = anna.page("/ui/failures/Lost").await;
    for text in ["Muted by ", "anna", "a known bug", "Unmute"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(anna.page("/ui/failures").await.contains(" muted"));
    let (before, after, _) = noted(&anna, "unmute_group", &[GROUP]).await;
    assert_eq!(before[0]["mute"], "Lost");
    assert_eq!(after, json!([null]));
    assert!(anna.page("/ui").await.contains(PROBLEM));
    // A viewer sees no form, and cannot mute.
    let vera = Browser::at(&server).with_key(VIEWER_KEY);
    assert!(!vera.page("/ui/failures/Lost").await.contains("mute_group"));
    assert_eq!(vera.post("/ui/fn/mute_group", &form).await.status(), 403);
}

#[tokio::test]
async fn a_mute_needs_a_reason_and_an_end() {
    let (_server, anna) = scene().await;
    for (reason, hours) in [(" ", "1"), ("known", "0"), ("known", "2161")] {
        let form = [GROUP, ("reason", reason), ("hours", hours)];
        anna.act("mute_group", &form).await;
        let entry = anna.audit("?action=mute_group").await.remove(0);
        assert_eq!(entry["outcome"], "refused", "{reason} {hours}");
    }
}

#[tokio::test]
async fn failures_after_the_visit_of_a_browser_are_new_until_it_marks_them_as_seen() {
    let (server, anna) = scene().await;
    fail(&server, "a").await;
    let first = anna.open("/ui/failures").await;
    let cookie = |response: &reqwest::Response| {
        let cookies = response.headers().get_all("set-cookie").iter();
        let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap().to_owned());
        let found = cookies.find(|cookie| cookie.starts_with("switchyard_failures="));
        found.map(|cookie| cookie.split(';').next().unwrap().to_owned())
    };
    let seen = cookie(&first).expect("the first visit is noted");
    assert!(
        !first
            .text()
            .await
            .unwrap()
            .contains(" (your first visit, or when you last marked failures as seen)")
    );
    fail(&server, "b").await;
    fail(&server, "c").await;
    let again = Browser {
        cookie: Some(seen),
        ..anna.clone()
    };
    let second = again.open("/ui/failures").await;
    assert_eq!(cookie(&second), None, "a visit marks nothing as seen");
    let page = second.text().await.unwrap();
    assert!(
        page.contains(" (your first visit, or when you last marked failures as seen)"),
        "{page}"
    );
    let view = read(&again, "failures", &[("range", "all"), ("text", "")]).await;
    assert_eq!(
        (&view["new"], &view["groups"][0]["new"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(view["failed"], 3);
    let (_, until) = page.split_once("name=\"until\" value=\"").unwrap();
    let until = until.split('"').next().unwrap();
    let form = [("until", until), ("back", "/ui/failures")];
    let marked = again.post("/ui/fn/see_failures", &form).await;
    let later = Browser {
        cookie: Some(cookie(&marked).unwrap()),
        ..anna.clone()
    };
    assert!(
        !later
            .page("/ui/failures")
            .await
            .contains(" (your first visit, or when you last marked failures as seen)")
    );
}

#[tokio::test]
async fn a_failure_group_links_to_the_tracker() {
    let pattern = "https://tracker.example/find?q={group}&text={message}";
    let server = Server::with(&["--failure-link", pattern]);
    let worker = server.by("w");
    worker.add_ids("mail", &["a"]).await;
    worker.pop("mail").await;
    worker.fail("a", "No \"<b>\" & more").await;
    let browser = Browser::at(&server);
    let page = browser
        .page("/ui/failures/No%20%22%3Cb%3E%22%20&%20more")
        .await;
    let link = "href=\"https://tracker.example/find?q=No%20%22%3Cb%3E%22%20%26%20more&amp;text=";
    assert!(page.contains(link), "{page}");
}
