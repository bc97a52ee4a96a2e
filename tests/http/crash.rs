//! `kill -9` in the middle of load: what was acknowledged is not lost, nothing is done twice.
//!
//! `SWITCHYARD_KILLS` sets the number of kills, `SWITCHYARD_SEED` the moments at which they come.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::support::history::{History, Outcome, Verdict, What};
use crate::support::{Server, database};

const PRODUCERS: usize = 16;
const CONSUMERS: usize = 16;
const LEASE: Duration = Duration::from_secs(60);
const READY_MAX: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_under_load_loses_nothing_that_was_acknowledged() {
    let kills: u64 = from_env("SWITCHYARD_KILLS").unwrap_or(3);
    let seed = from_env("SWITCHYARD_SEED").unwrap_or_else(|| {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs()
    });
    println!("SWITCHYARD_KILLS={kills} SWITCHYARD_SEED={seed}");
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("jobs.db");
    let history = Arc::new(History::default());
    let mut held = vec![Vec::new(); CONSUMERS];
    let mut random = seed;
    for kill in 0..kills {
        let mut server = Server::on(&database, &[]);
        assert!(server.ready_after < READY_MAX, "{:?}", server.ready_after);
        // From 0.5 to 2.5 seconds of load; the moments are the point of the test.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let load_for = Duration::from_millis(500 + (random >> 33) % 2000);
        held = load(&mut server, kill, &history, held, load_for).await;
    }
    // What a worker holds it may still complete after the crash.
    let server = Server::on(&database, &[]);
    assert!(server.ready_after < READY_MAX, "{:?}", server.ready_after);
    for (consumer, jobs) in held.into_iter().enumerate() {
        let client = Client::new(&server, &history, format!("consumer-{consumer}"));
        let left = client.complete(jobs).await;
        assert_eq!(left, [""; 0], "the server answers");
    }
    server.stop().await;
    let (verdict, really_complete) = drain(&database, &history).await;
    let unfinished: Vec<&String> = verdict.open.difference(&really_complete).collect();
    println!(
        "{} calls, {} jobs whose completion was uncertain, {} recovered",
        history.len(),
        verdict.open.len(),
        verdict.recovered.len()
    );
    assert_eq!(unfinished, [""; 0], "lost");
    let expected = Verdict {
        recovered: verdict.recovered.clone(),
        open: verdict.open.clone(),
        ..Verdict::default()
    };
    assert_eq!(verdict, expected);
    assert!(history.len() > 100, "there was load");
    examine(&database).await;
}

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Lets producers and consumers work until the server is killed. `held` is what each consumer has to
/// complete before it takes more; returns what is left of it, and of what they took.
async fn load(
    server: &mut Server,
    round: u64,
    history: &Arc<History>,
    held: Vec<Vec<String>>,
    load_for: Duration,
) -> Vec<Vec<String>> {
    let killed = Arc::new(AtomicBool::new(false));
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        let client = Client::new(server, history, format!("producer-{producer}"));
        let killed = Arc::clone(&killed);
        producers.spawn(async move {
            for call in 0.. {
                if killed.load(Ordering::Acquire) {
                    break;
                }
                // One at a time and three at a time, in turns.
                let ids = (0..1 + call % 2 * 2).map(|n| format!("{round}-{producer}-{call}-{n}"));
                client.add(ids.collect()).await;
            }
        });
    }
    let mut consumers = JoinSet::new();
    for (consumer, mut jobs) in held.into_iter().enumerate() {
        let client = Client::new(server, history, format!("consumer-{consumer}"));
        let killed = Arc::clone(&killed);
        consumers.spawn(async move {
            while !killed.load(Ordering::Acquire) {
                jobs = client.complete(jobs).await;
                if jobs.is_empty() {
                    jobs = client.get(1 + consumer % 3).await;
                }
            }
            (consumer, jobs)
        });
    }
    tokio::time::sleep(load_for).await;
    server.kill();
    killed.store(true, Ordering::Release);
    producers.join_all().await;
    let mut left = consumers.join_all().await;
    left.sort_unstable();
    left.into_iter().map(|(_, jobs)| jobs).collect()
}

/// Takes and completes everything that is left, with a clock an hour ahead so that all locks are lost.
/// Returns the verdict, and which of the uncertain jobs the server knows to be complete.
async fn drain(
    database: &Path,
    history: &Arc<History>,
) -> (Verdict, std::collections::BTreeSet<String>) {
    let server = Server::on(database, &["--trust-client-clock"]);
    let locks_lost = history.now();
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
    let verdict = history.check(LEASE, locks_lost);
    let mut complete = std::collections::BTreeSet::new();
    for id in &verdict.open {
        if server.at(now).state(id).await == "complete" {
            complete.insert(id.clone());
        }
    }
    server.stop().await;
    (verdict, complete)
}

/// The database is whole, and what is kept twice agrees.
async fn examine(database: &Path) {
    let server = Server::on(database, &[]);
    let found = server.anyone().get("/check").await.ok();
    assert_eq!(found, json!({"problems": []}));
    server.stop().await;
    if database::postgres().is_none() {
        let options = SqliteConnectOptions::new().filename(database);
        let mut connection = options.connect().await.unwrap();
        let integrity: String = sqlx::query_scalar("PRAGMA integrity_check")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(integrity, "ok");
    }
}

/// Someone who writes down what it does and what it is told.
struct Client {
    http: reqwest::Client,
    address: String,
    history: Arc<History>,
    host: String,
    now: Option<f64>,
}

impl Client {
    fn new(server: &Server, history: &Arc<History>, host: String) -> Client {
        Client {
            http: server.http.clone(),
            address: server.address.clone(),
            history: Arc::clone(history),
            host,
            now: None,
        }
    }

    /// The answer's status and body; `None` if none came.
    async fn call(&self, method: Method, path: &str, data: Value) -> Option<(u16, Value)> {
        let mut body = json!({"host": self.host, "data": data});
        if let Some(now) = self.now {
            body["now"] = now.into();
        }
        let url = format!("http://{}{path}", self.address);
        let request = self
            .http
            .request(method, url)
            .header("content-type", "application/json");
        let response = request.body(body.to_string()).send().await.ok()?;
        let status = response.status().as_u16();
        Some((
            status,
            serde_json::from_str(&response.text().await.ok()?).ok()?,
        ))
    }

    /// Adds jobs. One goes as an item, more as an array.
    async fn add(&self, ids: Vec<String>) {
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

    /// Takes up to `count` jobs.
    async fn get(&self, count: usize) -> Vec<String> {
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

    /// Completes jobs. Returns those of which it is not known whether they are.
    async fn complete(&self, ids: Vec<String>) -> Vec<String> {
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

fn outcome(answer: Option<&(u16, Value)>) -> Outcome {
    match answer {
        Some((200, _)) => Outcome::Ok,
        Some((400..500, _)) => Outcome::Refused,
        Some(_) | None => Outcome::Unknown,
    }
}
