//! What the pages of queues, workers and jobs say about workers, rates and blocked jobs.

use reqwest::Method;
use serde_json::json;

use crate::support::Server;

/// The text of a page, without tags.
async fn text(server: &Server, path: &str) -> String {
    let html = html(server, path).await;
    let mut text = String::new();
    for part in html.split('<') {
        let (_, after) = part.split_once('>').unwrap_or(("", part));
        text.push_str(after);
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn html(server: &Server, path: &str) -> String {
    let response = server.try_send(Method::GET, path, None).await.unwrap();
    assert_eq!(response.status, 200, "{path}: {}", response.text);
    response.text
}

#[tokio::test]
async fn a_queue_shows_its_workers_and_a_worker_its_queues() {
    let server = Server::start();
    server.client().add_ids("mail", &["a", "b", "c", "d"]).await;
    let (ada, bob) = (server.by("ada"), server.by("bob"));
    ada.pop_ids("mail", 2).await;
    bob.pop("mail").await;
    ada.complete("mail", "a").await;
    bob.fail("c", "Lost").await;
    let queue = text(&server, "/ui/queues/mail").await;
    assert!(
        queue.contains("Results on this server in the last minute."),
        "{queue}"
    );
    assert!(queue.contains(" 1 0 1 1.0 0 0 0 "), "{queue}");
    assert!(queue.contains(" 0 0 0 0 1 0 0 – – "), "{queue}");
    // More jobs were added than ended.
    assert!(queue.contains("Growing by 0."), "{queue}");
    assert!(queue.contains(" added, 0."), "{queue}");
    let worker = text(&server, "/ui/workers/ada").await;
    assert!(worker.contains(" 1 0 1 1.0 0 0 0 "), "{worker}");
    assert!(
        worker.contains(
            "1 job completed, 0 failed, 0 returned for another attempt, 0 expired or timed out. Run times"
        ),
        "{worker}"
    );
    assert!(worker.contains("Time out all jobs…"), "{worker}");
    let confirm = "/ui/confirm?do=timeout&of=all&q=worker%3A%22ada%22";
    let confirm = text(&server, confirm).await;
    assert!(confirm.contains("Time out 1 job?"), "{confirm}");
    // A paused queue, and one without waiting jobs, have no trend.
    server.client().post("/pause/mail", json!(null)).await.ok();
    let paused = text(&server, "/ui/queues/mail").await;
    assert!(!paused.contains("Growing by"), "{paused}");
}

#[tokio::test]
async fn queues_are_grouped_by_prefix_with_sums() {
    let server = Server::start();
    for (queue, ids) in [
        ("crm.import", &["a", "b"][..]),
        ("crm.export", &["c"]),
        ("web/thumbs", &["d"]),
        ("web/pages", &["e"]),
        ("mail", &["f"]),
    ] {
        server.client().add_ids(queue, ids).await;
    }
    let list = text(&server, "/ui/queues?group=prefix").await;
    assert!(list.contains("crm.* 2 queues 3 waiting"), "{list}");
    assert!(list.contains("web/* 2 queues 2 waiting"), "{list}");
    assert!(list.contains("Other queues 1 queue 1 waiting"), "{list}");
    let filtered = text(&server, "/ui/queues?group=prefix&q=crm").await;
    assert!(filtered.contains("crm.* 2 queues") && !filtered.contains("web/*"));
    let table = html(&server, "/ui/queues").await;
    assert!(
        table.contains("href=\"/ui/queues?sort=need&amp;group=prefix\""),
        "{table}"
    );
}

#[tokio::test]
async fn a_page_of_grouped_queues_stays_within_its_budget() {
    let server = Server::start();
    for group in 0..30 {
        for queue in 0..7 {
            let name = format!("area-{group}.kind-{queue}");
            let id = format!("{group}-{queue}");
            server.client().add_ids(&name, &[&id]).await;
        }
    }
    let page = server
        .try_send(Method::GET, "/ui/queues?group=prefix", None)
        .await;
    let bytes = page.unwrap().text.len();
    assert!(bytes <= 60_000, "{bytes} bytes");
}

#[tokio::test]
async fn a_page_refreshes_without_javascript_if_its_address_says_so() {
    let server = Server::start();
    let meta =
        |seconds: &str| format!("<noscript><meta http-equiv=\"refresh\" content=\"{seconds}\">");
    let plain = html(&server, "/ui").await;
    assert!(!plain.contains("http-equiv=\"refresh\""), "{plain}");
    assert!(plain.contains("href=\"/ui?auto=10\""), "{plain}");
    let auto = html(&server, "/ui/queues?sort=name&auto=30").await;
    assert!(auto.contains(&meta("30")), "{auto}");
    assert!(auto.contains("href=\"/ui/queues?sort=name\""), "{auto}");
    assert!(auto.contains("Stop refreshing every 30 s"), "{auto}");
    let often = html(&server, "/ui?auto=4").await;
    assert!(!often.contains("http-equiv=\"refresh\""), "{often}");
}

#[tokio::test]
async fn a_job_that_waits_for_a_failed_job_says_so() {
    let server = Server::start();
    let client = server.client();
    client.add_ids("mail", &["first"]).await;
    for (id, on) in [("middle", "first"), ("last", "middle")] {
        client
            .add("mail", json!({"id": id, "meta": null, "depends": [on]}))
            .await;
    }
    let fine = text(&server, "/ui/jobs/last").await;
    assert!(!fine.contains("This job waits for"), "{fine}");
    let ada = server.by("ada");
    ada.pop("mail").await;
    ada.fail("first", "Lost").await;
    for id in ["middle", "last"] {
        let page = text(&server, &format!("/ui/jobs/{id}")).await;
        assert!(
            page.contains("This job waits for 1 failed job: first"),
            "{page}"
        );
    }
}

#[tokio::test]
async fn a_tag_is_renamed_by_an_operation() {
    let server = Server::start();
    for id in ["a", "b"] {
        let job = json!({"id": id, "meta": null, "tags": ["old", "other"]});
        server.client().add("mail", job).await;
    }
    let tag = html(&server, "/ui/tags/old").await;
    let link = "/ui/confirm?do=rename_tag&amp;of=all&amp;q=tag%3A%22old%22";
    assert!(tag.contains(link), "{tag}");
    let confirm = text(
        &server,
        "/ui/confirm?do=rename_tag&of=all&q=tag%3A%22old%22",
    )
    .await;
    assert!(confirm.contains("Rename the tag of 2 jobs?"), "{confirm}");
    assert!(confirm.contains("New tag"), "{confirm}");
}
