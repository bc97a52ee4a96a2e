//! The alert rules, the dashboard and the documentation of the metrics: what they name exists, and Prometheus accepts
//! it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::eventually;
use crate::support::metrics::{Metrics, metrics_when, promtool};
use crate::support::ports::Port;
use crate::support::programs::program;
use crate::support::{Server, database};

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// A server that has served something of each kind, so that it shows all of its metrics.
async fn used_server() -> (Server, Metrics) {
    let server = Server::with(&[]);
    let worker = server.by("w");
    worker.add_ids("q", &["a", "b", "c"]).await;
    worker.pop("q").await;
    worker.complete("q", "a").await;
    worker.pop("q").await;
    worker.fail("b", "g").await;
    worker
        .get("/nope")
        .await
        .assert_rejected(404, "no_such_endpoint");
    let metrics = metrics_when(&server, "the jobs are counted", |it| {
        it.text.contains("switchyard_errors_total{")
            && it.value(
                "switchyard_job_run_seconds_count{protocol=\"qless\",namespace=\"\",queue=\"q\"}",
            ) == Some(1.0)
    })
    .await;
    (server, metrics)
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
    let is_name = |word: &&str| word.starts_with("switchyard_") || word.starts_with("process_");
    words.filter(is_name).collect()
}

/// The name of the metric that a sample belongs to.
fn base(name: &str) -> &str {
    let ends = ["_bucket", "_sum", "_count"];
    ends.iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name)
}

#[tokio::test]
async fn alerts_dashboard_and_documentation_name_the_metrics_that_exist() {
    let (_server, metrics) = used_server().await;
    let mut exist: BTreeSet<&str> = metrics.names().into_iter().collect();
    // SQLite has a write-ahead log of its own.
    let is_new = exist.insert("switchyard_database_wal_size_bytes");
    assert_eq!(is_new, database::postgres().is_some());
    let docs = file("docs/monitoring.md");
    let documented = names(&docs);
    if !cfg!(target_os = "linux") {
        exist.extend(documented.iter().filter(|name| name.starts_with("process")));
    }
    for path in [
        "monitoring/alerts.yml",
        "monitoring/alerts_test.yml",
        "monitoring/dashboard.json",
    ] {
        let text = file(path);
        let unknown: Vec<_> = names(&text).difference(&exist).copied().collect();
        assert!(unknown.is_empty(), "{path} names {unknown:?}");
    }
    let exist: BTreeSet<&str> = exist.into_iter().map(base).collect();
    let difference: Vec<_> = documented.symmetric_difference(&exist).collect();
    assert!(difference.is_empty(), "docs/monitoring.md: {difference:?}");
}

#[test]
fn promtool_accepts_the_alerts_and_their_tests() {
    promtool(&["check", "rules", "monitoring/alerts.yml"], "");
    promtool(&["test", "rules", "monitoring/alerts_test.yml"], "");
    // Each alert is tested and documented.
    let (tests, docs) = (
        file("monitoring/alerts_test.yml"),
        file("docs/monitoring.md"),
    );
    for line in file("monitoring/alerts.yml").lines() {
        if let Some(alert) = line.trim().strip_prefix("- alert: ") {
            assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert}");
            assert!(docs.contains(&format!("| `{alert}` |")), "{alert}");
        }
    }
}

/// The queries of the dashboard, with a value for each variable.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&file("monitoring/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    let queries = targets.flatten().map(|target| {
        let query = target["expr"].as_str().unwrap();
        let query = query.replace("$__rate_interval", "1m");
        query.replace("$queue", ".*").replace("$job", "switchyard")
    });
    queries.collect()
}

/// A running Prometheus.
struct Prometheus {
    child: Child,
    port: Port,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts Prometheus with the alert rules, and lets it read the metrics of the server; `None` if it is not
    /// installed.
    fn of(server: &Server) -> Option<Prometheus> {
        let program = program("prometheus", "prometheus")?;
        let (folder, port) = (TempDir::new().unwrap(), Port::reserve());
        let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/monitoring/alerts.yml");
        // JSON is YAML.
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [rules],
            "scrape_configs": [{
                "job_name": "switchyard",
                "static_configs": [{"targets": [server.address]}],
            }],
        });
        let path = folder.path().join("prometheus.yml");
        fs::write(&path, config.to_string()).unwrap();
        let child = Command::new(program)
            .arg(format!("--config.file={}", path.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().display()))
            .arg(format!("--web.listen-address=127.0.0.1:{}", port.number))
            .arg("--log.level=error")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Some(Prometheus {
            child,
            port,
            _folder: folder,
        })
    }

    async fn get(&self, server: &Server, path: &str, query: &[(&str, &str)]) -> Option<Value> {
        let url = format!("http://127.0.0.1:{}/api/v1/{path}", self.port.number);
        let response = server.http.get(url).query(query).send().await.ok()?;
        response.json().await.ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test]
async fn a_prometheus_reads_the_metrics_and_answers_every_query_of_the_dashboard() {
    let (server, _) = used_server().await;
    let Some(prometheus) = Prometheus::of(&server) else {
        return;
    };
    eventually("the metrics are read", async || {
        let query = [("query", "count_over_time(up[1m]) >= 2 and up == 1")];
        let found = prometheus.get(&server, "query", &query).await;
        found.is_some_and(|it| it["data"]["result"][0].is_object())
    })
    .await;
    let targets = prometheus.get(&server, "targets", &[]).await.unwrap();
    let target = &targets["data"]["activeTargets"][0];
    assert_eq!(target["lastError"], "", "{target}");
    let queries = queries();
    assert!(queries.len() > 40, "{queries:?}");
    for query in queries {
        let answer = prometheus.get(&server, "query", &[("query", &query)]).await;
        let answer = answer.unwrap();
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        let is_missing = (query.contains("_wal_") && database::postgres().is_some())
            || (query.contains("process_") && !cfg!(target_os = "linux"));
        let is_empty = answer["data"]["result"].as_array().unwrap().is_empty();
        assert!(!is_empty || is_missing, "{query} finds nothing");
    }
    let rules = prometheus.get(&server, "rules", &[]).await.unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() > 10, "{rules:?}");
    for rule in rules {
        assert_ne!(rule["health"], "err", "{rule}");
        assert_ne!(rule["state"], "firing", "{rule}");
    }
}
