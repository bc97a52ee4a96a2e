//! The metrics of a server, and the tools of Prometheus that check them.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use super::Server;
use super::programs::program;

/// The samples of a response: values by name and labels, as they are written.
#[derive(Debug)]
pub struct Metrics {
    pub text: String,
    samples: BTreeMap<String, f64>,
}

impl Metrics {
    /// Reads the metrics of a server that needs no credentials for them.
    pub async fn of(server: &Server) -> Metrics {
        Metrics::at(server, &server.address).await
    }

    /// Reads the metrics at `host:port`.
    pub async fn at(server: &Server, address: &str) -> Metrics {
        let response = server.http.get(format!("http://{address}/metrics"));
        let response = response.send().await.expect("a response");
        assert_eq!(response.status(), 200);
        Metrics::parse(response.text().await.expect("a text"))
    }

    fn parse(text: String) -> Metrics {
        let mut samples = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
            let before = samples.insert(name.to_owned(), value);
            assert_eq!(before, None, "{name} is written twice");
        }
        Metrics { text, samples }
    }

    /// The value of a sample without labels, or of one with these, as they are written.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.samples.get(name).copied()
    }

    /// The names of all metrics with samples, without labels.
    pub fn names(&self) -> Vec<&str> {
        let names = self.samples.keys();
        let mut names: Vec<_> = names
            .map(|name| name.split('{').next().unwrap_or(name))
            .collect();
        names.dedup();
        names
    }
}

/// Reads metrics until the condition is true. A response is reused for a second, so the first can be too old.
pub async fn metrics_when(
    server: &Server,
    what: &str,
    condition: impl Fn(&Metrics) -> bool,
) -> Metrics {
    let last = std::cell::RefCell::new(None);
    super::eventually(what, async || {
        let metrics = Metrics::of(server).await;
        let is_true = condition(&metrics);
        last.replace(Some(metrics));
        is_true
    })
    .await;
    last.into_inner().expect("the condition was checked")
}

/// Waits until exactly this number of requests wait for a job. Takes up to 1 s if the metrics were read shortly before,
/// so tests start all their polls first.
pub async fn wait_until_polling(server: &Server, count: usize) {
    let what = format!("{count} requests wait");
    metrics_when(server, &what, |it| {
        it.value("switchyard_long_polls") == Some(count as f64)
    })
    .await;
}

/// Runs `promtool` with this input. Panics with its output if it finds a problem; does nothing if it is not installed.
pub fn promtool(arguments: &[&str], input: &str) -> Option<Output> {
    let mut child = Command::new(program("prometheus", "promtool")?)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(input.as_bytes()).expect("promtool reads");
    drop(stdin);
    let output = child.wait_with_output().expect("promtool ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "promtool {arguments:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    Some(output)
}
