//! Clients that create load and record their calls and the responses (`history.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::history::{History, Outcome, Verdict, What};
use super::{Response, Server};

/// Keeps all complete jobs: a long run completes more than are kept by default, and [`settle`] looks at all of them.
pub async fn keep_complete(server: &Server) {
    let kept = json!(100_000_000);
    server.client().set("jobs-history-count", kept).await.ok();
}

/// How long a client waits after a rejected call.
const PAUSE: Duration = Duration::from_millis(20);

/// A client that records its calls and their outcomes.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    address: String,
    history: Arc<History>,
    host: String,
    pub now: Option<f64>,
    /// The maximum response time.
    pub response_time_max: Option<Duration>,
}

impl Client {
    pub fn new(server: &Server, history: &Arc<History>, host: String) -> Client {
        Client {
            http: server.http.clone(),
            address: server.address.clone(),
            history: Arc::clone(history),
            host,
            now: None,
            response_time_max: None,
        }
    }

    /// The status and the body of the response; `None` if there was none. Checks that errors have the expected form and
    /// arrive in time.
    async fn call(&self, method: Method, path: &str, data: Value) -> Option<(u16, Value)> {
        let mut body = json!({"host": self.host, "data": data});
        if let Some(now) = self.now {
            body["now"] = now.into();
        }
        let asked = format!("{method} {path}");
        let url = format!("http://{}{path}", self.address);
        let request = self
            .http
            .request(method, url)
            .header("content-type", "application/json");
        let began = Instant::now();
        let response = request.body(body.to_string()).send().await.ok()?;
        let answer = Response {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.ok()?,
            asked,
        };
        let took = began.elapsed();
        let response_time_max = self.response_time_max.unwrap_or(Duration::MAX);
        assert!(took <= response_time_max, "{took:?}: {answer:?}");
        let body: Value = serde_json::from_str(&answer.text).ok()?;
        if answer.status >= 500 {
            assert_eq!(answer.status, 503, "{answer:?}");
            assert_eq!(body["code"], "unavailable", "{answer:?}");
            assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
        }
        if answer.status != 200 {
            tokio::time::sleep(PAUSE).await;
        }
        Some((answer.status, body))
    }

    /// Puts jobs: a single one as an object, several as an array.
    pub async fn add(&self, ids: Vec<String>) {
        let calls: Vec<usize> = ids
            .iter()
            .map(|id| self.history.invoke(What::Add(id.clone())))
            .collect();
        let items: Vec<Value> = ids.iter().map(|id| json!({"id": id, "meta": id})).collect();
        let data = if items.len() == 1 {
            items[0].clone()
        } else {
            items.into()
        };
        let answer = self.call(Method::POST, "/add/work", data).await;
        for call in calls {
            self.history.end(call, outcome(answer.as_ref()));
        }
    }

    /// Claims up to `count` jobs.
    pub async fn get(&self, count: usize) -> Vec<String> {
        let call = self.history.invoke(What::Get);
        let answer = self
            .call(Method::POST, &format!("/get/work/{count}"), Value::Null)
            .await;
        let Some((200, body)) = answer else {
            self.history.end(call, outcome(answer.as_ref()));
            return Vec::new();
        };
        let jobs = match &body["results"] {
            Value::Null => Vec::new(),
            Value::Array(jobs) => jobs.clone(),
            job => vec![job.clone()],
        };
        let id = |job: &Value| {
            assert_eq!(job["id"], job["meta"], "another job's meta");
            job["id"].as_str().unwrap().to_owned()
        };
        let ids: Vec<String> = jobs.iter().map(id).collect();
        self.history.end(call, Outcome::Got(ids.clone()));
        ids
    }

    /// Completes jobs. Returns those whose outcome is unknown.
    pub async fn complete(&self, ids: Vec<String>) -> Vec<String> {
        if ids.is_empty() {
            return ids;
        }
        let calls: Vec<usize> = ids
            .iter()
            .map(|id| self.history.invoke(What::Complete(id.clone())))
            .collect();
        let items: Vec<Value> = ids.iter().map(|id| json!({"id": id, "meta": id})).collect();
        let answer = self
            .call(Method::POST, "/complete/work", items.into())
            .await;
        let Some((200, body)) = answer else {
            for call in calls {
                self.history.end(call, outcome(answer.as_ref()));
            }
            return ids;
        };
        let done = body["results"].as_array().unwrap();
        for (id, call) in ids.iter().zip(calls) {
            let is_done = done.iter().any(|one| one == id);
            self.history.end(
                call,
                if is_done {
                    Outcome::Ok
                } else {
                    Outcome::Refused
                },
            );
        }
        Vec::new()
    }
}

fn outcome(response: Option<&(u16, Value)>) -> Outcome {
    match response {
        Some((200, _)) => Outcome::Ok,
        Some((400..500, _)) => Outcome::Refused,
        Some(_) | None => Outcome::Unknown,
    }
}

/// Running producers and consumers.
pub struct Load {
    ended: Arc<AtomicBool>,
    producers: JoinSet<()>,
    consumers: JoinSet<(usize, Vec<String>)>,
}

impl Load {
    /// Starts a producer and a consumer for each client. IDs of jobs start with `round`; `unfinished`
    /// contains the jobs that each consumer completes before it claims more.
    pub fn begin(
        clients: impl ExactSizeIterator<Item = Client>,
        round: u64,
        unfinished: Vec<Vec<String>>,
    ) -> Load {
        assert_eq!(
            clients.len(),
            unfinished.len(),
            "one list of jobs per client"
        );
        let mut load = Load {
            ended: Arc::default(),
            producers: JoinSet::new(),
            consumers: JoinSet::new(),
        };
        for (number, (client, mut jobs)) in clients.zip(unfinished).enumerate() {
            let (ended, producer) = (Arc::clone(&load.ended), client.clone());
            load.producers.spawn(async move {
                for call in 0.. {
                    if ended.load(Ordering::Acquire) {
                        break;
                    }
                    // Alternates between 1 and 3 jobs per call.
                    let ids = (0..1 + call % 2 * 2).map(|n| format!("{round}-{number}-{call}-{n}"));
                    producer.add(ids.collect()).await;
                }
            });
            let ended = Arc::clone(&load.ended);
            load.consumers.spawn(async move {
                while !ended.load(Ordering::Acquire) {
                    jobs = client.complete(jobs).await;
                    if jobs.is_empty() {
                        jobs = client.get(1 + number % 3).await;
                    }
                }
                (number, jobs)
            });
        }
        load
    }

    /// Stops all clients after their current call. Returns the jobs that each consumer still has to complete.
    pub async fn end(self) -> Vec<Vec<String>> {
        self.ended.store(true, Ordering::Release);
        self.producers.join_all().await;
        let mut left = self.consumers.join_all().await;
        left.sort_unstable();
        left.into_iter().map(|(_, jobs)| jobs).collect()
    }
}

/// Claims and completes all remaining jobs, with a clock 1 h ahead so that all leases have expired; then checks the
/// history for leases of length `lease`.
pub async fn settle(database: &str, history: &Arc<History>, lease: Duration) {
    let server = Server::at_url(database, &["--trust-client-clock"]);
    let leases_lost = history.now();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
        + 3600.0;
    let mut client = Client::new(&server, history, "drain".to_owned());
    client.now = Some(now);
    loop {
        let jobs = client.get(500).await;
        if jobs.is_empty() {
            break;
        }
        assert_eq!(client.complete(jobs).await, [""; 0]);
    }
    let queue = server.at(now).get("/queue/work").await.ok();
    for state in ["waiting", "running", "stalled", "scheduled", "depends"] {
        assert_eq!(queue[state], 0, "{state}: {queue}");
    }
    let verdict = history.check(lease, leases_lost);
    let mut unfinished = BTreeSet::new();
    for id in &verdict.open {
        if server.at(now).state(id).await != "complete" {
            unfinished.insert(id.clone());
        }
    }
    server.stop().await;
    println!(
        "{} calls, {} jobs whose completion was uncertain, {} recovered",
        history.len(),
        verdict.open.len(),
        verdict.recovered.len()
    );
    assert_eq!(unfinished, BTreeSet::new(), "lost");
    let expected = Verdict {
        recovered: verdict.recovered.clone(),
        open: verdict.open.clone(),
        ..Verdict::default()
    };
    assert_eq!(verdict, expected);
    assert!(
        history.len() > 100,
        "more than 100 requests were acknowledged"
    );
    // Uses the server's own clock, because some checks depend on the time.
    let server = Server::at_url(database, &[]);
    let found = server.client().get("/check").await.ok();
    assert_eq!(found, json!({"problems": []}));
    server.stop().await;
}
