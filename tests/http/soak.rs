//! Half of the load that the server can take, of all protocols, with retention: does it need more memory, files or disk
//! over time, or become slower?
//!
//! `make soak` runs it for an hour. It writes a CSV file and a picture to `target/soak`. A run of 10 minutes or more is
//! judged; a shorter one, as in `make test`, only has to work. `SWITCHYARD_SOAK_S` sets the duration.

mod judge;
mod picture;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::support::jobq::Jobq;
use crate::support::lmstfy::Lmstfy;
use crate::support::metrics::Metrics;
use crate::support::relay::{Relay, new};
use crate::support::{Server, settings};

/// Clients of each protocol.
const CLIENTS: u64 = 2;
const PROTOCOLS: u64 = 4;

/// A run of this length is judged.
const JUDGED_S: u64 = 600;

/// Samples in a run, at most one per second.
const SAMPLES: u64 = 360;

/// The server at one time.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub second: f64,
    pub memory_mb: f64,
    pub files: f64,
    pub database_mb: f64,
    pub log_mb: f64,
    pub jobs_per_s: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// What the clients measure: the time of each cycle of a job, from its put to its completion.
#[derive(Clone, Default)]
struct Cycles(Arc<Mutex<Vec<Duration>>>);

impl Cycles {
    fn add(&self, took: Duration) {
        self.0.lock().unwrap().push(took);
    }

    /// Takes all since the last call, in order of their durations.
    fn take(&self) -> Vec<Duration> {
        let mut all = std::mem::take(&mut *self.0.lock().unwrap());
        all.sort_unstable();
        all
    }
}

/// A client of one protocol.
#[derive(Clone)]
enum Client {
    Qless(reqwest::Client, String, String),
    Lmstfy(Lmstfy, String),
    Relay(Relay, String),
    Jobq(Jobq, String),
}

impl Client {
    async fn new(server: &Server, number: u64) -> Client {
        let queue = format!("soak{}", number / PROTOCOLS);
        match number % PROTOCOLS {
            0 => Client::Qless(server.http.clone(), server.address.clone(), queue),
            1 => Client::Lmstfy(Lmstfy::new(server, "ns"), queue),
            2 => Client::Relay(Relay::new(server), queue),
            _ => {
                let jobq = Jobq::new(server);
                jobq.create(&queue).await;
                Client::Jobq(jobq, queue)
            }
        }
    }

    /// Puts a job, claims it and completes it.
    async fn cycle(&self, n: u64) {
        let body = "x".repeat(500);
        match self {
            Client::Qless(http, address, queue) => {
                let post = async |path: String, data: serde_json::Value| {
                    let request = http.post(format!("http://{address}{path}"));
                    let body = json!({"host": queue, "data": data}).to_string();
                    let request = request.header("content-type", "application/json");
                    let response = request.body(body).send().await.expect("a response");
                    assert_eq!(response.status(), 200, "{path}");
                    response.text().await.expect("a text")
                };
                let id = format!("{queue}-{n}");
                post(format!("/add/{queue}"), json!({"id": id, "meta": body})).await;
                post(format!("/get/{queue}/1"), json!(null)).await;
                let done = json!({"id": id, "meta": null});
                post(format!("/complete/{queue}"), done).await;
            }
            Client::Lmstfy(lmstfy, queue) => {
                lmstfy.publish(queue, body).await;
                let job = lmstfy.take(queue).await;
                lmstfy.ack(queue, &job.id).await;
            }
            Client::Relay(relay, queue) => {
                relay.put(&json!([new(queue, &n.to_string())])).await;
                let job = relay.take(queue).await;
                relay.complete(&job).await;
            }
            Client::Jobq(jobq, queue) => {
                let job = jobq.put(queue, &json!({"n": n, "text": body})).await;
                jobq.advance(queue, job.id, &json!(null), &json!("DONE"))
                    .await;
                jobq.delete(queue, job.id).await;
            }
        }
    }
}

/// Lets all clients work until the task set is dropped: as fast as they can, or one cycle per `pause`.
fn work(
    clients: &[Client],
    cycles: &Cycles,
    numbers: &Arc<AtomicU64>,
    pause: Option<Duration>,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for client in clients {
        let (client, cycles, numbers) = (client.clone(), cycles.clone(), Arc::clone(numbers));
        tasks.spawn(async move {
            let mut ticks = interval(pause.unwrap_or(Duration::from_nanos(1)));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                if pause.is_some() {
                    ticks.tick().await;
                }
                let began = Instant::now();
                client.cycle(numbers.fetch_add(1, Ordering::Relaxed)).await;
                cycles.add(began.elapsed());
            }
        });
    }
    tasks
}

fn size_mb(path: &Path) -> f64 {
    std::fs::metadata(path).map_or(0.0, |found| found.len() as f64 / 1e6)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in a list"
)]
fn quantile(sorted: &[Duration], of: f64) -> f64 {
    let place = (sorted.len() as f64 * of) as usize;
    let place = place.min(sorted.len().saturating_sub(1));
    sorted
        .get(place)
        .map_or(0.0, |took| took.as_secs_f64() * 1e3)
}

async fn sample(
    server: &Server,
    database: &Path,
    cycles: &Cycles,
    second: f64,
    since: f64,
) -> Sample {
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap();
    let metrics = Metrics::of(server).await;
    let on_postgres = metrics.value("switchyard_database_size_bytes");
    let all = cycles.take();
    let is_file = database.exists();
    Sample {
        second,
        memory_mb: server.memory_mb(),
        files: files.count() as f64,
        database_mb: match is_file {
            true => size_mb(database),
            false => on_postgres.unwrap_or_default() / 1e6,
        },
        log_mb: size_mb(&database.with_extension("db-wal")),
        jobs_per_s: all.len() as f64 / (second - since),
        p50_ms: quantile(&all, 0.5),
        p99_ms: quantile(&all, 0.99),
    }
}

fn csv(samples: &[Sample]) -> String {
    let mut text =
        "second,memory_mb,files,database_mb,log_mb,jobs_per_s,p50_ms,p99_ms\n".to_owned();
    for it in samples {
        text += &format!(
            "{:.1},{:.1},{},{:.2},{:.2},{:.1},{:.2},{:.2}\n",
            it.second,
            it.memory_mb,
            it.files,
            it.database_mb,
            it.log_mb,
            it.jobs_per_s,
            it.p50_ms,
            it.p99_ms
        );
    }
    text
}

/// The folder of the results.
fn results() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/soak");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_the_maximum_load_needs_no_more_resources_over_time() {
    let seconds = settings::number("SWITCHYARD_SOAK_S", 6);
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("jobs.db");
    let options = [
        "--no-auth",
        "--empty-queue-age",
        "60",
        "--durability",
        "full",
    ];
    let server = Server::on(&database, &options);
    server.client().set("jobs-history", json!(60)).await.ok();
    server
        .client()
        .set("jobs-history-count", json!(5_000))
        .await
        .ok();
    let mut clients = Vec::new();
    for number in 0..CLIENTS * PROTOCOLS {
        clients.push(Client::new(&server, number).await);
    }
    let (cycles, numbers) = (Cycles::default(), Arc::<AtomicU64>::default());
    // The maximum, with these clients.
    let probe = Duration::from_secs((seconds / 20).clamp(1, 30));
    let tasks = work(&clients, &cycles, &numbers, None);
    sleep(probe).await;
    drop(tasks);
    let most = cycles.take().len() as f64 / probe.as_secs_f64();
    let pause = Duration::from_secs_f64(2.0 * clients.len() as f64 / most);
    // The first clients may leave jobs behind, so the others have queues of their own.
    let mut paced = Vec::new();
    for number in 0..CLIENTS * PROTOCOLS {
        paced.push(Client::new(&server, number + CLIENTS * PROTOCOLS).await);
    }
    let mut tasks = work(&paced, &cycles, &numbers, Some(pause));
    let (began, every) = (
        Instant::now(),
        Duration::from_secs((seconds / SAMPLES).max(1)),
    );
    let (mut samples, mut last) = (Vec::<Sample>::new(), 0.0);
    while began.elapsed() < Duration::from_secs(seconds) {
        sleep(every).await;
        assert!(tasks.try_join_next().is_none(), "a client has failed");
        let now = began.elapsed().as_secs_f64();
        samples.push(sample(&server, &database, &cycles, now, last).await);
        last = now;
    }
    drop(tasks);
    let name = if database.exists() {
        "sqlite"
    } else {
        "postgres"
    };
    std::fs::write(results().join(format!("{name}.csv")), csv(&samples)).unwrap();
    std::fs::write(
        results().join(format!("{name}.svg")),
        picture::draw(&samples),
    )
    .unwrap();
    let jobs: f64 = samples.iter().map(|it| it.jobs_per_s).sum::<f64>() / samples.len() as f64;
    let judgment = judge::judge(&samples);
    println!(
        "{} jobs, {jobs:.0}/s of at most {most:.0}/s: {judgment}",
        numbers.load(Ordering::Relaxed)
    );
    assert!(jobs > 0.0);
    if seconds >= JUDGED_S {
        assert_eq!(judgment.faults(), Vec::<String>::new());
    }
}
