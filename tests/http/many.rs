//! Many idle polls, slow clients, queues, namespaces and dependencies, and a long queue. The tests are short by default;
//! `make chaos` runs them with the numbers of `docs/reliability.md`, and shows the figures that the tests print.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::eventually;
use crate::support::lmstfy::Lmstfy;
use crate::support::metrics::{Metrics, metrics_when};
use crate::support::raw::Connection;
use crate::support::{Server, settings};

/// Items in one request.
const ITEMS: usize = 500;

/// Clock ticks per second in `/proc`.
const TICKS: f64 = 100.0;

const HOLD: &str = "switchyard_writer_hold_duration_seconds";

/// Raises the limit on open files of this process. Returns it.
fn allow_files() -> u64 {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("the limit can be raised");
    maximum.unwrap_or(u64::MAX)
}

/// The CPU time of the server in seconds.
fn cpu_s(server: &Server) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.id())).expect("a process");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |place: usize| fields[place].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / TICKS
}

/// The longest time for which a commit group held the writer, as the end of its bucket in the histogram, in seconds.
async fn longest_hold(server: &Server) -> String {
    let count = |metrics: &Metrics| metrics.value(&format!("{HOLD}_count"));
    let before = count(&Metrics::of(server).await);
    server.client().add("last", json!({"meta": 1})).await;
    let metrics = metrics_when(server, "the last write counts", |metrics| {
        count(metrics) > before
    })
    .await;
    let all = count(&metrics);
    let buckets = metrics.text.lines();
    let mut buckets = buckets.filter_map(|line| {
        let (le, n) = line
            .strip_prefix(&format!("{HOLD}_bucket{{le=\""))?
            .split_once("\"} ")?;
        Some((le.to_owned(), n.parse::<f64>().ok()))
    });
    let longest = buckets.find(|(_, n)| *n == all);
    longest.expect("a bucket with all").0
}

/// The median.
fn p50(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The 99th percentile.
fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

fn number(variable: &str, usual: usize) -> usize {
    usize::try_from(settings::number(variable, usual as u64)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_long_polls_need_no_cpu_time_and_little_memory() {
    let polls = number("SWITCHYARD_POLLS", 400);
    let files = allow_files();
    assert!(files > polls as u64 + 100, "{files} open files are too few");
    let server = Server::with(&["--no-auth", "--max-connections-per-address", "16000"]);
    server.client().add("ready", json!({"meta": 1})).await;
    let before = server.memory_mb();
    let mut open = Vec::new();
    for n in 0..polls {
        let mut connection = Connection::to(&server).await;
        let head = format!(
            "GET /api/ns/q{}?timeout=300&ttr=60 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
            n % 20
        );
        connection.write(head).await;
        open.push(connection);
    }
    metrics_when(&server, "all polls wait", |metrics| {
        let waiting = metrics.value("switchyard_long_polls");
        waiting == Some(polls as f64)
    })
    .await;
    let (memory, cpu, began) = (server.memory_mb() - before, cpu_s(&server), Instant::now());
    let watched = Duration::from_secs(settings::number("SWITCHYARD_WATCHED_S", 3));
    tokio::time::sleep(watched).await;
    let cpu = (cpu_s(&server) - cpu) / began.elapsed().as_secs_f64();
    // One poll gets the job.
    let lmstfy = Lmstfy::new(&server, "ns");
    lmstfy.publish("q0", "x").await;
    let published = Instant::now();
    eventually("a poll gets the job", async || {
        let metrics = Metrics::of(&server).await;
        metrics.value("switchyard_long_polls") == Some(polls as f64 - 1.0)
    })
    .await;
    println!(
        "{polls} calls, idle long polls: {:.1} % of one core, {memory:.0} MB more memory; a job reaches one within {:.1} s",
        cpu * 100.0,
        published.elapsed().as_secs_f64()
    );
    assert!(memory < 30.0 + polls as f64 * 0.03, "{memory} MB");
    assert!(cpu < 0.1, "{cpu}");
    drop(open);
}

/// A client that sends a byte now and then: of the head of a request, or of its body.
async fn send_slowly(mut connection: Connection, in_body: bool) -> bool {
    let head = "POST /add/work HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n";
    connection.write(head).await;
    if in_body {
        connection.write("content-length: 100000\r\n\r\n").await;
    }
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let bytes = if in_body { " " } else { "x" };
        if connection.try_write(bytes).await.is_err() {
            return true;
        }
    }
}

/// Durations of the requests of ordinary clients.
async fn measure_requests(server: &Server, count: usize) -> Vec<Duration> {
    let mut clients = JoinSet::new();
    for client in 0..4 {
        let (http, address) = (server.http.clone(), server.address.clone());
        clients.spawn(async move {
            let mut times = Vec::new();
            for n in 0..count / 4 {
                let began = Instant::now();
                let request = http.post(format!("http://{address}/add/mail"));
                let body = json!({"data": {"id": format!("{client}-{n}"), "meta": 1}});
                let request = request.header("content-type", "application/json");
                let response = request.body(body.to_string()).send().await;
                assert_eq!(response.expect("a response").status(), 200);
                times.push(began.elapsed());
            }
            times
        });
    }
    clients.join_all().await.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_do_not_keep_others_from_working() {
    let slow = number("SWITCHYARD_SLOW_CLIENTS", 100);
    let requests = number("SWITCHYARD_MEASURED_REQUESTS", 400);
    allow_files();
    let server = Server::with(&["--no-auth"]);
    measure_requests(&server, requests).await;
    let alone = p99(measure_requests(&server, requests).await);
    let mut clients = JoinSet::new();
    for n in 0..slow {
        clients.spawn(send_slowly(Connection::to(&server).await, n % 2 == 0));
    }
    let beside = p99(measure_requests(&server, requests).await);
    let again = p99(measure_requests(&server, requests).await);
    clients.shutdown().await;
    eventually("the connections are closed", async || {
        let metrics = Metrics::of(&server).await;
        let open = metrics.value("switchyard_http_connections");
        open.is_some_and(|open| open < 20.0)
    })
    .await;
    println!(
        "{} calls, with {slow} slow clients: p99 {:.1} ms, {:.1} ms; without them {:.1} ms",
        3 * requests,
        beside.as_secs_f64() * 1e3,
        again.as_secs_f64() * 1e3,
        alone.as_secs_f64() * 1e3
    );
}

/// Puts jobs by requests of many items.
async fn put_all(server: &Server, queue: &str, jobs: impl Iterator<Item = Value>) {
    let mut jobs = jobs.peekable();
    while jobs.peek().is_some() {
        let some: Vec<Value> = jobs.by_ref().take(ITEMS).collect();
        let path = format!("/add/{queue}");
        server.client().post(&path, json!(some)).await.ok();
    }
}

#[tokio::test]
async fn many_queues_are_listed_claimed_from_and_counted() {
    let queues = number("SWITCHYARD_QUEUES", 300);
    let server = Server::with(&["--no-auth"]);
    let began = Instant::now();
    for n in 0..queues {
        let job = json!({"id": n.to_string(), "meta": n});
        server.client().add(&format!("q{n}"), job).await;
    }
    let put = began.elapsed();
    let began = Instant::now();
    let listed = server.client().get("/queues").await.ok();
    let list = began.elapsed();
    assert_eq!(listed.as_array().map(Vec::len), Some(queues));
    // A worker claims from 100 of them at once.
    let worker = server.by("w");
    let (mut claimed, began) = (BTreeSet::new(), Instant::now());
    let names: Vec<String> = (0..queues).map(|n| format!("q{n}")).collect();
    for some in names.chunks(100) {
        let data = json!({"queues": some, "count": some.len()});
        let jobs = worker.post("/get", data).await.ok();
        let jobs = jobs.as_array().expect("jobs").iter();
        claimed.extend(jobs.map(|job| job["id"].as_str().expect("an id").to_owned()));
    }
    let claim = began.elapsed();
    assert_eq!(claimed.len(), queues);
    let hold = longest_hold(&server).await;
    println!(
        "{queues} jobs, one in each queue: put in {:.1} s, listed in {:.2} s, claimed in {:.1} s, {:.0} MB, longest hold \
         of the writer {hold} s",
        put.as_secs_f64(),
        list.as_secs_f64(),
        claim.as_secs_f64(),
        server.memory_mb()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_namespaces_are_used_at_once() {
    let namespaces = number("SWITCHYARD_NAMESPACES", 300);
    let server = Server::with(&["--no-auth"]);
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for client in 0..8 {
        let lmstfy = |n: usize| Lmstfy::new(&server, &format!("ns{n}"));
        let all: Vec<Lmstfy> = (client..namespaces).step_by(8).map(lmstfy).collect();
        clients.spawn(async move {
            for lmstfy in all {
                let id = lmstfy.publish("q", "x").await;
                let job = lmstfy.take("q").await;
                assert_eq!(job.id, id);
                lmstfy.ack("q", &id).await;
            }
        });
    }
    clients.join_all().await;
    let took = began.elapsed();
    let hold = longest_hold(&server).await;
    println!(
        "{namespaces} jobs, one in each namespace: published, consumed and acknowledged in {:.1} s, {:.0} MB, longest \
         hold of the writer {hold} s",
        took.as_secs_f64(),
        server.memory_mb()
    );
}

#[tokio::test]
async fn a_long_chain_of_dependencies_is_completed_and_canceled() {
    let length = number("SWITCHYARD_CHAIN", 200);
    let server = Server::with(&["--no-auth"]);
    let chain = |prefix: &str| -> Vec<Value> {
        let id = |n: usize| format!("{prefix}{n}");
        let depends = |n: usize| n.checked_sub(1).map_or_else(Vec::new, |n| vec![id(n)]);
        let job = |n: usize| json!({"id": id(n), "meta": 1, "depends": depends(n)});
        (0..length).map(job).collect()
    };
    let began = Instant::now();
    put_all(&server, "chain", chain("a").into_iter()).await;
    let put = began.elapsed();
    let (worker, began) = (server.by("w"), Instant::now());
    for n in 0..length {
        let id = format!("a{n}");
        assert_eq!(worker.pop_ids("chain", 5).await, [id.as_str()]);
        worker.complete("chain", &id).await;
    }
    let done = began.elapsed();
    put_all(&server, "chain", chain("b").into_iter()).await;
    let (ids, began): (Vec<String>, _) = (
        (0..length).map(|n| format!("b{n}")).collect(),
        Instant::now(),
    );
    server.client().post("/cancel", json!(ids)).await.ok();
    let canceled = began.elapsed();
    let hold = longest_hold(&server).await;
    println!(
        "{length} jobs, a chain: put in {:.1} s, completed in {:.1} s, another canceled in {:.1} s, longest hold of \
         the writer {hold} s",
        put.as_secs_f64(),
        done.as_secs_f64(),
        canceled.as_secs_f64()
    );
}

#[tokio::test]
async fn a_job_with_many_dependents_releases_all_of_them() {
    let count = number("SWITCHYARD_DEPENDENTS", 200);
    let server = Server::with(&["--no-auth"]);
    server.client().add_ids("work", &["root"]).await;
    let dependent = |n: usize| json!({"id": n.to_string(), "meta": 1, "depends": ["root"]});
    put_all(&server, "work", (0..count).map(dependent)).await;
    let worker = server.by("w");
    assert_eq!(worker.pop_ids("work", 5).await, ["root"]);
    let began = Instant::now();
    worker.complete("work", "root").await;
    let completed = began.elapsed();
    let mut released = 0;
    while released < count {
        let some = worker.pop_ids("work", 200).await.len();
        assert!(some > 0, "{released} of {count} jobs were released");
        released += some;
    }
    let hold = longest_hold(&server).await;
    println!(
        "{count} jobs, dependents of one: released in {:.0} ms, longest hold of the writer {hold} s",
        completed.as_secs_f64() * 1e3
    );
}

/// Puts, claims and completes jobs one after the other. Returns how long each cycle took.
async fn cycles(server: &Server, queue: &str, count: usize) -> Vec<Duration> {
    let worker = server.by("w");
    let mut times = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        worker.add(queue, json!({"meta": 1})).await;
        let claimed = worker.pop(queue).await;
        let id = claimed["id"].as_str().expect("a job");
        worker.complete(queue, id).await;
        times.push(began.elapsed());
    }
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_long_queue_are_claimed_in_order_and_deleted_when_complete() {
    let count = number("SWITCHYARD_LONG_QUEUE", 4_000);
    let few = (count / 20).clamp(20, 1_000);
    let server = Server::with(&["--no-auth"]);
    cycles(&server, "short", few).await;
    let short = p50(cycles(&server, "short", few).await);
    let began = Instant::now();
    let job = |n: usize| json!({"id": n.to_string(), "meta": 1});
    put_all(&server, "long", (0..count).map(job)).await;
    let put = began.elapsed();
    // These claim the oldest jobs of the queue, and add as many at its end.
    let long = p50(cycles(&server, "long", few).await);
    let began = Instant::now();
    let page = format!("http://{}/ui/queues/long", server.address);
    let page = server.http.get(page).send().await.expect("a response");
    assert_eq!(page.status(), 200);
    page.text().await.expect("a text");
    let page = began.elapsed();
    // A tenth is completed, in order, and then deleted.
    server
        .client()
        .set("jobs-history-count", json!(count))
        .await
        .ok();
    let (worker, began, mut next) = (server.by("w"), Instant::now(), few);
    while next < few + count / 10 {
        let ids = worker.pop_ids("long", ITEMS).await;
        for id in &ids {
            assert_eq!(*id, next.to_string());
            next += 1;
        }
        let done: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "meta": null}))
            .collect();
        worker.post("/complete/long", json!(done)).await.ok();
    }
    let completed = began.elapsed();
    let began = Instant::now();
    server
        .client()
        .set("jobs-history-count", json!(0))
        .await
        .ok();
    // The time depends on the number of jobs, so there is no limit except that of all tests.
    let complete =
        "switchyard_jobs{protocol=\"qless\",namespace=\"\",queue=\"long\",state=\"complete\"}";
    while Metrics::of(&server).await.value(complete).unwrap_or(0.0) > 0.0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let deleted = began.elapsed();
    let waiting = complete.replace("complete", "waiting");
    let left = Metrics::of(&server).await.value(&waiting);
    assert_eq!(left, Some((count + few - next) as f64));
    let rate = |jobs: usize, took: Duration| jobs as f64 / took.as_secs_f64();
    let hold = longest_hold(&server).await;
    println!(
        "{count} jobs, in one queue: put {:.0}, completed {:.0}, deleted {:.0} per second; a cycle {:.1} ms, in a short \
         queue {:.1} ms; page {:.0} ms, {:.0} MB, longest hold of the writer {hold} s",
        rate(count, put),
        rate(next - few, completed),
        rate(next, deleted),
        long.as_secs_f64() * 1e3,
        short.as_secs_f64() * 1e3,
        page.as_secs_f64() * 1e3,
        server.memory_mb()
    );
}
