//! `/metrics`: its contents, formats, limits and access.

mod shipped;

use std::collections::HashSet;

use reqwest::Method;
use serde_json::json;

use crate::support::keys::{ADMIN, ADMIN_TOKEN};
use crate::support::lmstfy::Lmstfy;
use crate::support::metrics::{Metrics, metrics_when, promtool};
use crate::support::relay::Relay;
use crate::support::{HOSTILE_NAMES, Server, Stream, at_once};

/// The address of the second listener, which the startup banner shows.
pub async fn second_address(server: &mut Server) -> String {
    while let Some(line) = server.banner.recv().await {
        if let Some(address) = line.trim().strip_prefix("metrics") {
            let address = address.trim().strip_prefix("http://").unwrap();
            return address.strip_suffix("/metrics").unwrap().to_owned();
        }
    }
    panic!("the banner shows no address of the metrics");
}

fn of_queue(metric: &str, queue: &str) -> String {
    format!("{metric}{{protocol=\"qless\",namespace=\"\",queue=\"{queue}\"}}")
}

#[tokio::test]
async fn the_life_of_jobs_is_counted() {
    let server = Server::with(&[]);
    let worker = server.by("w");
    worker.add_ids("q", &["a", "b", "c", "d"]).await;
    for id in ["a", "b", "c"] {
        assert_eq!(worker.pop("q").await["id"], id);
    }
    worker.complete("q", "a").await;
    worker.fail("b", "g").await;
    worker.post("/retry/q", json!({"id": "c"})).await.ok();
    let put = of_queue("switchyard_jobs_put_total", "q");
    let metrics = metrics_when(&server, "the puts are counted", |it| {
        it.value(&put) == Some(4.0)
    })
    .await;
    for (metric, expected) in [
        ("switchyard_jobs_claimed_total", 3.0),
        ("switchyard_jobs_completed_total", 1.0),
        ("switchyard_jobs_failed_total", 1.0),
        ("switchyard_jobs_retried_total", 1.0),
        ("switchyard_leases_expired_total", 0.0),
        ("switchyard_jobs_dead_lettered_total", 0.0),
        ("switchyard_job_wait_seconds_count", 3.0),
        ("switchyard_job_run_seconds_count", 1.0),
        ("switchyard_queue_paused", 0.0),
    ] {
        let seen = metrics.value(&of_queue(metric, "q"));
        assert_eq!(seen, Some(expected), "{metric}: {}", metrics.text);
    }
    for (state, expected) in [
        ("waiting", 2.0),
        ("running", 0.0),
        ("failed", 1.0),
        ("complete", 1.0),
    ] {
        let name = format!(
            "switchyard_jobs{{protocol=\"qless\",namespace=\"\",queue=\"q\",state=\"{state}\"}}"
        );
        assert_eq!(metrics.value(&name), Some(expected), "{state}");
    }
    let oldest = of_queue("switchyard_oldest_waiting_job_seconds", "q");
    assert!(metrics.value(&oldest).is_some_and(|age| age > 0.0));
    for (name, expected) in [
        ("switchyard_workers", 1.0),
        ("switchyard_queues", 1.0),
        ("switchyard_leader", 1.0),
        ("switchyard_database_up", 1.0),
        ("switchyard_writable", 1.0),
        ("switchyard_disk_full", 0.0),
        ("switchyard_transactions_failed_total", 0.0),
    ] {
        assert_eq!(metrics.value(name), Some(expected), "{name}");
    }
    for name in [
        "switchyard_commit_duration_seconds_count",
        "switchyard_commit_requests_count",
        "switchyard_writer_hold_duration_seconds_count",
        "switchyard_database_size_bytes",
        "switchyard_http_connections",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_open_fds",
    ] {
        let is_positive = metrics.value(name).is_some_and(|value| value > 0.0);
        assert!(is_positive || !cfg!(target_os = "linux"), "{name}");
    }
}

#[tokio::test]
async fn jobs_of_all_protocols_are_counted_until_they_are_dead() {
    let server = Server::with(&["--no-auth"]);
    let lmstfy = Lmstfy::new(&server, "ns");
    lmstfy.publish_dead("q", "x").await;
    let relay = Relay::new(&server);
    relay.put_ids("r", &["a", "b"]).await;
    let job = relay.take("r").await;
    relay.complete(&job).await;
    let dead =
        "switchyard_jobs_dead_lettered_total{protocol=\"lmstfy\",namespace=\"ns\",queue=\"q\"}";
    let completed =
        "switchyard_jobs_completed_total{protocol=\"relay\",namespace=\"\",queue=\"r\"}";
    let metrics = metrics_when(&server, "the jobs are counted", |it| {
        it.value(dead) == Some(1.0) && it.value(completed) == Some(1.0)
    })
    .await;
    let expired =
        "switchyard_leases_expired_total{protocol=\"lmstfy\",namespace=\"ns\",queue=\"q\"}";
    let failed = "switchyard_jobs_failed_total{protocol=\"lmstfy\",namespace=\"ns\",queue=\"q\"}";
    assert_eq!(metrics.value(expired), Some(1.0));
    assert_eq!(metrics.value(failed), Some(0.0));
}

#[tokio::test]
async fn requests_polls_and_streams_are_counted() {
    let server = Server::with(&["--no-auth"]);
    let client = server.client();
    client
        .get("/job/none")
        .await
        .assert_rejected(404, "no_such_job");
    client
        .get("/job/other")
        .await
        .assert_rejected(404, "no_such_job");
    client
        .get("/nope")
        .await
        .assert_rejected(404, "no_such_endpoint");
    let stream = Stream::open(&server, "", None).await;
    let poll = Lmstfy::new(&server, "ns")
        .poll(&server, "q?timeout=50")
        .await;
    let metrics = metrics_when(&server, "the poll and the stream are open", |it| {
        it.value("switchyard_long_polls") == Some(1.0)
            && it.value("switchyard_event_streams{kind=\"qless\"}") == Some(1.0)
    })
    .await;
    for (name, expected) in [
        (
            "switchyard_http_requests_total{method=\"GET\",route=\"/job/{id}\",status=\"404\"}",
            2.0,
        ),
        (
            "switchyard_http_requests_total{method=\"GET\",route=\"none\",status=\"404\"}",
            1.0,
        ),
        (
            "switchyard_http_request_duration_seconds_count{method=\"GET\",route=\"/job/{id}\"}",
            2.0,
        ),
        (
            "switchyard_errors_total{api=\"qless\",code=\"no_such_job\"}",
            2.0,
        ),
    ] {
        assert_eq!(metrics.value(name), Some(expected), "{name}");
    }
    drop((stream, poll));
    metrics_when(&server, "the poll and the stream have ended", |it| {
        it.value("switchyard_long_polls") == Some(0.0)
            && it.value("switchyard_event_streams{kind=\"qless\"}") == Some(0.0)
    })
    .await;
}

#[tokio::test]
async fn promtool_accepts_the_metrics_of_queues_with_any_name() {
    let server = Server::with(&[]);
    let client = server.client();
    for name in HOSTILE_NAMES
        .iter()
        .filter(|name| !matches!(**name, "." | ".."))
    {
        client.add(name, json!({"meta": null})).await;
    }
    let put = of_queue("switchyard_jobs_put_total", "back\\\\slash");
    let metrics = metrics_when(&server, "the puts are counted", |it| {
        it.value(&put) == Some(1.0)
    })
    .await;
    let quoted = of_queue("switchyard_jobs_put_total", "\\\"quoted\\\"");
    assert_eq!(metrics.value(&quoted), Some(1.0));
    promtool(&["check", "metrics"], &metrics.text);
}

/// The response in OpenMetrics.
async fn open_metrics(server: &Server) -> String {
    let url = format!("http://{}/metrics", server.address);
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let request = server.http.get(url).header("accept", accept);
    let response = request.send().await.unwrap();
    let kind = response.headers()["content-type"].to_str().unwrap();
    assert_eq!(
        kind,
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    response.text().await.unwrap()
}

#[tokio::test]
async fn both_formats_have_the_same_samples() {
    let server = Server::with(&[]);
    server.client().add_ids("q", &["a"]).await;
    let open = open_metrics(&server).await;
    assert!(open.ends_with("\n# EOF\n"), "{open}");
    let plain = Metrics::of(&server).await;
    let names = |text: &str| -> HashSet<String> {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let samples = samples.filter(|line| !line.contains("route=\"/metrics\""));
        let names = samples.map(|line| line.rsplit_once(' ').unwrap().0.to_owned());
        names.collect()
    };
    assert_eq!(names(&open), names(&plain.text));
    // Every metric is described before its samples.
    for name in plain.names() {
        let base = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| {
                name.strip_suffix(end)
                    .filter(|_| !name.starts_with("process"))
            })
            .unwrap_or(name);
        assert!(plain.text.contains(&format!("# TYPE {base} ")), "{base}");
        assert!(plain.text.contains(&format!("# HELP {base} ")), "{base}");
    }
}

#[tokio::test]
async fn queues_beyond_the_limit_are_counted_as_other() {
    let server = Server::with(&["--metrics-queues", "2"]);
    let client = server.client();
    for queue in ["a", "b", "c", "d"] {
        client.add(queue, json!({"meta": null})).await;
    }
    let other = "{protocol=\"other\",namespace=\"other\",queue=\"other\"}";
    let put = format!("switchyard_jobs_put_total{other}");
    let metrics = metrics_when(&server, "the puts are counted", |it| {
        it.value(&put) == Some(2.0)
    })
    .await;
    let waiting =
        "switchyard_jobs{protocol=\"other\",namespace=\"other\",queue=\"other\",state=\"waiting\"}";
    assert_eq!(metrics.value(waiting), Some(2.0));
    for (queue, expected) in [("a", Some(1.0)), ("b", Some(1.0)), ("c", None), ("d", None)] {
        let put = of_queue("switchyard_jobs_put_total", queue);
        assert_eq!(metrics.value(&put), expected, "{queue}");
    }
    // A forgotten queue has no metrics, so another one gets its own.
    let worker = server.by("w");
    let job = worker.pop("a").await;
    worker.complete("a", job["id"].as_str().unwrap()).await;
    let forget = server.send(Method::DELETE, "/queue/a", None).await;
    forget.ok();
    let put = of_queue("switchyard_jobs_put_total", "c");
    let metrics = metrics_when(&server, "another queue has metrics", |it| {
        it.value(&put) == Some(0.0)
    })
    .await;
    assert_eq!(metrics.value(waiting), Some(1.0));
    assert_eq!(metrics.value("switchyard_queues"), Some(3.0));
    let gone = of_queue("switchyard_jobs_put_total", "a");
    assert_eq!(metrics.value(&gone), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scrapes_at_the_same_time_share_a_response() {
    let server = Server::with(&[]);
    server.client().add_ids("q", &["a"]).await;
    let (http, url) = (
        server.http.clone(),
        format!("http://{}/metrics", server.address),
    );
    let texts = at_once(&[(http, url)], 50, async |(http, url), _| {
        let response = http.get(url).send().await.unwrap();
        response.text().await.unwrap()
    })
    .await;
    let different: HashSet<String> = texts.into_iter().collect();
    // A response is made at most once a second.
    assert!(different.len() < 50, "{}", different.len());
}

#[tokio::test]
async fn metrics_need_the_credentials_of_the_admin_except_at_their_own_listener() {
    let options = ["--metrics-listen", "127.0.0.1:0"];
    let mut server = Server::with(&[&options[..], &ADMIN_TOKEN].concat());
    let own = second_address(&mut server).await;
    let status = async |address: &str, path: &str, token: Option<&str>| {
        let mut request = server.http.get(format!("http://{address}{path}"));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(status(&server.address, "/metrics", None).await, 401);
    assert_eq!(
        status(&server.address, "/metrics", Some("wrong")).await,
        401
    );
    assert_eq!(status(&server.address, "/metrics", Some(ADMIN)).await, 200);
    assert_eq!(status(&own, "/metrics", None).await, 200);
    assert_eq!(status(&own, "/health", None).await, 200);
    // It serves nothing else.
    for path in ["/", "/queues", "/ui", "/token/x", "/api/x/x"] {
        assert_eq!(status(&own, path, Some(ADMIN)).await, 404, "{path}");
    }
    let request = server.http.get(format!("http://{own}/metrics"));
    let request = request.header("host", "attacker.example").send().await;
    assert_eq!(request.unwrap().status(), 421);
}

/// Each name is repeated in about 50 lines.
#[tokio::test]
async fn long_names_of_queues_are_cut_and_stay_different() {
    let server = Server::with(&[]);
    let long = "é".repeat(120);
    for end in ["a", "b"] {
        let queue = format!("{long}{end}");
        server.client().add_ids(&queue, &[end]).await;
    }
    let metrics = Metrics::of(&server).await;
    let paused = |line: &&str| line.starts_with("switchyard_queue_paused{");
    let lines: HashSet<&str> = metrics.text.lines().filter(paused).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let start = format!("queue=\"{}… #", "é".repeat(64));
    assert!(lines.iter().all(|line| line.contains(&start)), "{lines:?}");
}
