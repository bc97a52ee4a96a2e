//! Statistics over time in the dashboard: pages and exports agree with the jobs' events.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{Response, Server, escape};

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;

/// The start of the hour before the previous one, by the real clock, because statistics end at the current time.
fn two_hours_ago() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    (i64::try_from(now.as_secs()).unwrap() / HOUR - 2) * HOUR
}

/// A time as it is written in addresses.
fn named(seconds: i64) -> String {
    let at = chrono::DateTime::from_timestamp(seconds, 0).unwrap();
    at.format("%Y-%m-%dT%H:%M").to_string()
}

async fn page(server: &Server, path: &str) -> Response {
    let response = server.try_send(reqwest::Method::GET, path, None).await;
    response.unwrap()
}

async fn numbers(server: &Server, query: &str) -> Value {
    let response = page(server, &format!("/ui/stats.json?{query}")).await;
    assert_eq!(response.status, 200, "{}", response.text);
    serde_json::from_str(&response.text).unwrap()
}

/// In minute `n` of five minutes from `begin` on, puts `n` jobs that are claimed after 20 s. All but the first complete
/// after 4 s; the first fails.
async fn fill(server: &Server, queue: &str, begin: i64) {
    let worker = server.by("ada");
    for minute in 1..=5 {
        let at = (begin + minute * MINUTE) as f64;
        let ids: Vec<String> = (0..minute)
            .map(|n| format!("{queue}-{minute}-{n}"))
            .collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        worker.at(at).add_ids(queue, &ids).await;
        let take = format!("/get/{queue}/{}", ids.len());
        worker.at(at + 20.0).get(&take).await.ok();
        worker.at(at + 24.0).fail(ids[0], "Lost").await;
        for id in &ids[1..] {
            worker.at(at + 24.0).complete(queue, id).await;
        }
    }
}

#[tokio::test]
async fn statistics_match_the_events() {
    let (server, begin) = (Server::start(), two_hours_ago());
    fill(&server, "mail", begin).await;
    fill(&server, "post", begin).await;
    let range = format!("from={}&to={}", named(begin), named(begin + 10 * MINUTE));
    let series = numbers(&server, &format!("queue=queues/mail&{range}")).await;
    assert_eq!(series["queue"], "mail");
    assert_eq!(series["width_s"], 60.0);
    let of = |series: &Value, name: &str| -> Vec<Value> {
        let spans = series["spans"].as_array().unwrap();
        spans.iter().map(|span| span[name].clone()).collect()
    };
    assert_eq!(
        of(&series, "put"),
        [0, 1, 2, 3, 4, 5, 0, 0, 0, 0].map(Value::from)
    );
    assert_eq!(of(&series, "claimed"), of(&series, "put"));
    assert_eq!(
        of(&series, "completed"),
        [0, 0, 1, 2, 3, 4, 0, 0, 0, 0].map(Value::from)
    );
    assert_eq!(
        of(&series, "failed"),
        [0, 1, 1, 1, 1, 1, 0, 0, 0, 0].map(Value::from)
    );
    let rates = [Value::Null, 1.0.into(), 0.5.into()];
    assert_eq!(of(&series, "failure_rate")[..3], rates);
    assert_eq!(of(&series, "wait_p95_s")[1], 20.0);
    assert_eq!(of(&series, "run_p95_s")[2], 4.0);
    assert_eq!(of(&series, "run_p95_s")[1], Value::Null);
    // All queues together have twice the counts.
    let all = numbers(&server, &range).await;
    assert_eq!(
        of(&all, "put"),
        [0, 2, 4, 6, 8, 10, 0, 0, 0, 0].map(Value::from)
    );
    assert_eq!(all["queue"], Value::Null);
    assert_eq!(all["before"], Value::Null);
    // The daily statistics of the API agree.
    let stats = server
        .at(begin as f64)
        .get(&format!("/stats/mail/{begin}"))
        .await
        .ok();
    assert_eq!(stats["wait"]["total"], 15);
    assert_eq!(stats["failures"], 5);
}

#[tokio::test]
async fn csv_and_page_have_the_same_numbers() {
    let (server, begin) = (Server::start(), two_hours_ago());
    fill(&server, "mail", begin).await;
    let range = format!("from={}&to={}", named(begin), named(begin + 5 * MINUTE + 1));
    let csv = page(&server, &format!("/ui/stats.csv?{range}")).await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let lines: Vec<&str> = csv.text.lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(lines[0].starts_with("from,put,claimed,completed,failed,failure_rate,"));
    let third: Vec<&str> = lines[3].split(',').collect();
    assert_eq!(third[0], format!("{}:00.000Z", named(begin + 2 * MINUTE)));
    assert_eq!(third[1..6], ["2", "2", "1", "1", "0.5"]);
    let shown = page(&server, &format!("/ui/stats?{range}")).await;
    assert_eq!(shown.status, 200);
    for words in ["6 jobs completed", "4 jobs failed (40%)", "10 jobs added"] {
        assert!(shown.text.contains(words), "{words}");
    }
}

#[tokio::test]
async fn the_previous_period_is_compared() {
    let (server, begin) = (Server::start(), two_hours_ago());
    fill(&server, "mail", begin).await;
    fill(&server, "post", begin + 30 * MINUTE).await;
    fill(&server, "print", begin + 30 * MINUTE).await;
    let (from, to) = (named(begin + 30 * MINUTE), named(begin + 60 * MINUTE));
    let query = format!("from={from}&to={to}&compare=1");
    let series = numbers(&server, &query).await;
    let put = |spans: &Value| -> i64 {
        let spans = spans.as_array().unwrap().iter();
        spans.map(|span| span["put"].as_i64().unwrap()).sum()
    };
    assert_eq!((put(&series["spans"]), put(&series["before"])), (30, 15));
    let shown = page(&server, &format!("/ui/stats?{query}")).await.text;
    assert!(shown.contains("20 jobs completed; +100% vs. the previous period"));
    let month = page(&server, "/ui/stats?from=2026-01-01&compare=1")
        .await
        .text;
    assert!(month.contains("Statistics are kept for 62 days"), "{month}");
}

#[tokio::test]
async fn the_same_time_last_week_is_compared() {
    let (server, begin) = (Server::start(), two_hours_ago());
    fill(&server, "old", begin - 7 * 24 * HOUR).await;
    fill(&server, "mail", begin).await;
    let range = format!("from={}&to={}", named(begin), named(begin + 10 * MINUTE));
    let series = numbers(&server, &format!("{range}&compare=week")).await;
    // Minutes are not kept for a week.
    let before = series["before"].as_array().unwrap();
    assert_eq!((before.len(), &before[0]["put"]), (1, &json!(15)));
    assert_eq!(series["spans"].as_array().unwrap().len(), 10);
    let path = format!("/ui/stats?{range}&compare=week");
    let shown = page(&server, &path).await.text;
    // 10 jobs in 10 minutes, instead of 10 in an hour.
    for words in [
        "10 jobs completed; +500% vs. the same time last week",
        ">last week<",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[tokio::test]
async fn the_page_links_to_other_periods_and_to_each_queue() {
    let (server, begin) = (Server::start(), two_hours_ago());
    fill(&server, "mail", begin).await;
    fill(&server, "post", begin).await;
    let at = |minutes: i64| named(begin + minutes * MINUTE).replace(':', "%3A");
    let link = |from: i64, to: i64, word: &str| {
        let (from, to) = (at(from), at(to));
        format!("href=\"/ui/stats?from={from}&amp;to={to}&amp;compare=1\" class=\"btn\">{word}</a>")
    };
    let range = format!("from={}&to={}&compare=1", at(0), at(20));
    let shown = page(&server, &format!("/ui/stats?{range}")).await.text;
    for link in [
        link(-20, 0, "Earlier"),
        link(20, 40, "Later"),
        link(5, 15, "Zoom in"),
        link(-10, 30, "Zoom out"),
    ] {
        assert!(shown.contains(&link), "{link}: {shown}");
    }
    for words in [
        "mail: 10 jobs completed, 5 failed",
        "post: 10 jobs completed, 5 failed",
        "/ui/stats?queue=queues%2Fpost&amp;from=",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // Nothing is later than now, and a page of one queue has no charts of others.
    let now = page(&server, "/ui/stats?queue=queues/mail").await.text;
    assert!(now.contains(">Earlier</a>") && !now.contains(">Later</a>"));
    assert!(!now.contains("By queue"));
}

#[tokio::test]
async fn waiting_jobs_are_shown_over_time() {
    let server = Server::with(&[]);
    server.by("ada").add_ids("mail", &["a", "b", "c"]).await;
    let found = loop {
        let series = numbers(&server, "queue=queues/mail").await;
        let spans = series["spans"].as_array().unwrap();
        if let Some(n) = spans.iter().find_map(|span| span["waiting"].as_f64()) {
            break n;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    // The first sample can be older than the jobs; then the next minute has them.
    assert!([0.0, 3.0].contains(&found));
    let shown = page(&server, "/ui/stats?queue=queues/mail").await.text;
    assert!(shown.contains("waiting on average, recorded once a minute"));
}

#[tokio::test]
async fn invalid_ranges_are_rejected_with_a_sentence() {
    let server = Server::start();
    server.at(0).add_ids("mail", &["a"]).await;
    for (query, status, why) in [
        ("range=2h", 400, "Unknown range “2h”"),
        (
            "from=yesterday",
            400,
            "From “yesterday” is not a valid time",
        ),
        ("to=2026-11-01", 400, "From is missing"),
        ("from=2999-01-01&to=2999-01-02", 400, "future"),
        ("queue=queues/none", 404, "Queue not found"),
        ("queue=", 200, ""),
        ("queue=queues/mail&range=30d", 200, ""),
    ] {
        for kind in ["csv", "json"] {
            let response = page(&server, &format!("/ui/stats.{kind}?{query}")).await;
            assert_eq!(response.status, status, "{query}");
            assert!(response.text.contains(why), "{query}: {}", response.text);
        }
        // The page shows the last hour and the error.
        let shown = page(&server, &format!("/ui/stats?{query}")).await;
        assert_eq!(
            shown.status,
            if status == 404 { 404 } else { 200 },
            "{query}"
        );
        assert_eq!(
            status == 400,
            shown.text.contains("role=\"alert\""),
            "{query}"
        );
    }
}

#[tokio::test]
async fn the_overview_shows_the_last_minutes() {
    let server = Server::with(&[]);
    let worker = server.by("ada");
    worker.add_ids("mail", &["a", "b", "c"]).await;
    worker.pop_ids("mail", 3).await;
    worker.complete("mail", "a").await;
    worker.fail("b", "Lost").await;
    let shown = page(&server, "/ui").await.text;
    for words in [
        "Completed and failed jobs/min, last hour",
        // One job in five minutes; one of two failed.
        "<span class=\"tile-count\">0.2</span>",
        "<span class=\"tile-count\">50%</span>",
    ] {
        assert!(shown.contains(words), "{words}");
    }
    let queues = page(&server, "/ui/queues").await.text;
    assert!(queues.contains("1 job completed in the last 30 minutes, at most 1 per minute"));
    worker.add_ids("fine", &["d"]).await;
    let troubled = page(&server, "/ui/queues?state=problem").await.text;
    assert!(troubled.contains("1 of 2 queues"), "{troubled}");
}

/// Fails jobs of one group with two kinds of messages.
async fn fail(server: &Server) {
    let worker = server.by("ada");
    for number in 0..5 {
        let id = format!("job-{number}");
        let message = match number {
            4 => "no stamp".to_owned(),
            _ => format!("no answer from '10.0.0.{number}' after {number}00 ms"),
        };
        worker.add("mail", json!({"id": id, "meta": null})).await;
        worker.pop("mail").await;
        let failed = json!({"id": id, "group": "Net::Lost", "message": message});
        worker.post("/fail", failed).await.ok();
    }
}

/// The fingerprint in a link of the group's page.
fn fingerprint(page: &str, text: &str) -> String {
    let (before, _) = page.split_once(&format!(">{text}</span>")).expect(text);
    let (_, after) = before.rsplit_once("fp=").expect("a link");
    after.chars().take(8).collect()
}

#[tokio::test]
async fn failures_are_grouped_by_message_fingerprint() {
    let server = Server::with(&[]);
    fail(&server).await;
    let listed = page(&server, "/ui/failures").await.text;
    assert!(listed.contains("no answer from · after · ms"), "{listed}");
    assert!(listed.contains("4 of the newest 5 jobs"));
    assert!(listed.contains("5 jobs failed in the last 24 hours"));
    for (query, is_there) in [
        ("q=lost", true),
        ("q=stamp", true),
        ("q=gone", false),
        ("range=1h", true),
    ] {
        let listed = page(&server, &format!("/ui/failures?{query}")).await.text;
        assert_eq!(listed.contains("Net::Lost"), is_there, "{query}");
    }
    let group = page(&server, "/ui/failures/Net%3A%3ALost").await.text;
    let common = fingerprint(&group, "no answer from · after · ms");
    let single = fingerprint(&group, "no stamp");
    for (fp, count) in [(&common, 4), (&single, 1)] {
        let path = format!("/ui/failures/Net%3A%3ALost?fp={fp}");
        let shown = page(&server, &path).await.text;
        let rows = shown.matches("<tr data-key=").count();
        assert_eq!(rows, count, "{fp}");
        // The search finds the same jobs.
        let text = escape(&format!("state:failed group:\"Net::Lost\" fp:{fp}"));
        let found = page(&server, &format!("/ui/jobs?q={text}")).await.text;
        assert_eq!(found.matches("<tr data-key=").count(), count, "{fp}");
    }
    let none = page(&server, "/ui/failures/Net%3A%3ALost?fp=00000000")
        .await
        .text;
    assert!(none.contains("No matching jobs among the newest"));
    assert!(group.contains("## Net::Lost: 5 failed jobs"));
}

#[tokio::test]
async fn without_failures_the_last_failure_time_is_shown() {
    let server = Server::with(&[]);
    let empty = page(&server, "/ui/failures").await.text;
    assert!(empty.contains("none recorded"));
    fail(&server).await;
    let retried = json!({"group": "Net::Lost", "count": 9});
    server.client().post("/unfail/mail", retried).await.ok();
    let empty = page(&server, "/ui/failures").await.text;
    assert!(empty.contains("Last failure: ") && !empty.contains("none recorded"));
}
