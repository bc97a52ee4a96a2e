//! Measures how long the largest accepted requests delay other requests.

use std::time::Instant;

use super::Result;
use super::client::Connection;
use super::target::Target;

/// Jobs in most requests.
const JOBS: usize = 10_000;
/// Dependencies, or dependents, of one job.
const LINKS: usize = 2_000;
/// Jobs in the atomic requests of Relay.
const JOBS_TOGETHER: usize = 1_600;
/// Queues in one of the atomic requests of Relay.
const QUEUES_TOGETHER: usize = 500;

const PROBE: &str = r#"{"data":{"id":"probe","meta":null}}"#;

/// The measurement of a request.
pub struct Delay {
    pub request: &'static str,
    /// Time until the response, in milliseconds.
    pub took_ms: f64,
    /// The slowest of the small puts that another connection sent meanwhile in sequence, in milliseconds.
    pub longest_wait_ms: f64,
}

/// A request: its name, method, path, body and expected status.
type Request = (&'static str, &'static str, &'static str, String, u16);

/// Sends each of the requests while another connection puts jobs.
///
/// # Errors
/// If a response is wrong.
pub async fn measure(target: &Target) -> Result<Vec<Delay>> {
    let mut heavy = Connection::open(target.address(0)?).await?;
    let mut light = Connection::open(target.address(0)?).await?;
    let mut delays = Vec::new();
    for (request, method, path, body, status) in requests() {
        let began = Instant::now();
        let exchange = heavy.exchange(method, path, &body, status);
        tokio::pin!(exchange);
        let mut longest = 0.0_f64;
        let took = loop {
            let probed = Instant::now();
            light.send("POST", "/add/probe", PROBE).await?;
            // Polls both, so that each makes progress while the other waits for its response.
            let probe = async { light.receive().await.map(|(status, _)| status) };
            tokio::pin!(probe);
            let finished = tokio::select! {
                biased;
                response = &mut exchange => {
                    response?;
                    let took = began.elapsed();
                    probe.await?;
                    Some(took)
                }
                status = &mut probe => {
                    if status? != 200 {
                        return Err("a small put was refused".into());
                    }
                    None
                }
            };
            longest = longest.max(probed.elapsed().as_secs_f64() * 1e3);
            if let Some(took) = finished {
                break took;
            }
        };
        delays.push(Delay {
            request,
            took_ms: took.as_secs_f64() * 1e3,
            longest_wait_ms: longest,
        });
    }
    Ok(delays)
}

/// How often commit groups held the writer over 50 ms since the server started, and the longest time.
///
/// # Errors
/// If the server does not report it.
pub async fn holds(target: &Target) -> Result<String> {
    let mut connection = Connection::open(target.address(0)?).await?;
    let metrics = connection.get("/metrics").await?;
    let mut buckets = Vec::new();
    for line in metrics.lines() {
        let bucket = line.strip_prefix(r#"switchyard_writer_hold_duration_seconds_bucket{le=""#);
        if let Some((bound, count)) = bucket.and_then(|rest| rest.split_once("\"} ")) {
            buckets.push((bound.parse::<f64>()? * 1e3, count.trim().parse::<f64>()?));
        }
    }
    let all = buckets.last().map_or(0.0, |(_, count)| *count);
    let within = buckets.iter().find(|(bound, _)| *bound >= 50.0);
    let over = all - within.map_or(all, |(_, count)| *count);
    let longest = buckets.iter().find(|(_, count)| *count >= all);
    let longest = longest.map_or(0.0, |(bound, _)| *bound);
    Ok(format!(
        "{over} of {all} commit groups held the writer over 50 ms, and none over {longest} ms"
    ))
}

fn some(count: usize, item: &dyn Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..count).map(item).collect();
    format!("[{}]", items.join(","))
}

fn list(item: &dyn Fn(usize) -> String) -> String {
    some(JOBS, item)
}

fn data(item: &dyn Fn(usize) -> String) -> String {
    format!(r#"{{"data":{}}}"#, list(item))
}

fn put(prefix: &str) -> String {
    data(&|n| format!(r#"{{"id":"{prefix}{n}","meta":{{"n":{n}}}}}"#))
}

fn requests() -> Vec<Request> {
    let mut requests = of_many_jobs();
    requests.extend(of_dependencies());
    requests.extend(of_large_payloads());
    requests.extend(of_relay());
    requests
}

fn of_many_jobs() -> Vec<Request> {
    let jobs = list(&|n| format!(r#"{{"id":"a{n}","meta":null}}"#));
    let complete = format!(r#"{{"host":"w","data":{jobs}}}"#);
    vec![
        ("qless put", "POST", "/add/heavy", put("a"), 200),
        ("qless put again", "POST", "/add/heavy", put("a"), 200),
        (
            "qless claim",
            "GET",
            "/get/heavy/10000?host=w",
            String::new(),
            200,
        ),
        ("qless complete", "POST", "/complete/heavy", complete, 200),
    ]
}

fn of_dependencies() -> Vec<Request> {
    let ids = |count: usize| some(count, &|n| format!(r#""b{n}""#));
    let fan_in = format!(
        r#"{{"data":{{"id":"fan-in","meta":null,"depends":{}}}}}"#,
        ids(LINKS)
    );
    let leaf = |n: usize| format!(r#"{{"id":"leaf{n}","meta":null,"depends":["root"]}}"#);
    let root = || r#"{"data":{"id":"root","meta":null}}"#.to_owned();
    let cancel = |ids: &str| format!(r#"{{"data":{ids}}}"#);
    vec![
        ("qless put", "POST", "/add/heavy", put("b"), 200),
        (
            "qless put of a job with dependencies",
            "POST",
            "/add/after",
            fan_in,
            200,
        ),
        (
            "qless cancel of a job with dependencies",
            "POST",
            "/cancel",
            cancel(r#"["fan-in"]"#),
            200,
        ),
        ("qless cancel", "POST", "/cancel", cancel(&ids(JOBS)), 200),
        ("qless put of one job", "POST", "/add/root", root(), 200),
        (
            "qless put of its dependents",
            "POST",
            "/add/leaf",
            format!(r#"{{"data":{}}}"#, some(LINKS, &leaf)),
            200,
        ),
        (
            "qless claim of the job",
            "GET",
            "/get/root?host=w",
            String::new(),
            200,
        ),
        (
            "qless complete of the job",
            "POST",
            "/complete/root",
            r#"{"host":"w","data":{"id":"root","meta":null}}"#.to_owned(),
            200,
        ),
    ]
}

fn of_large_payloads() -> Vec<Request> {
    let large =
        |id: &str, bytes: usize| format!(r#"{{"id":"{id}","meta":"{}"}}"#, "x".repeat(bytes));
    let some_large = some(7, &|n| large(&format!("large{n}"), 2 << 20));
    let put = |items: &str| format!(r#"{{"data":{items}}}"#);
    vec![
        (
            "qless put of 7 payloads of 2 MiB",
            "POST",
            "/add/large",
            put(&some_large),
            200,
        ),
        (
            "qless claim of 7 payloads of 2 MiB",
            "GET",
            "/get/large/7?host=w",
            String::new(),
            200,
        ),
        (
            "qless put of a payload of 15 MiB",
            "POST",
            "/add/largest",
            put(&large("largest", 15 << 20)),
            200,
        ),
        (
            "qless claim of a payload of 15 MiB",
            "GET",
            "/get/largest?host=w",
            String::new(),
            200,
        ),
    ]
}

fn of_relay() -> Vec<Request> {
    let job = |queue: &str, n: usize| {
        format!(r#"{{"queue":"{queue}","id":"{n}","timeout":60,"payload":{n}}}"#)
    };
    vec![
        (
            "Relay enqueue unique",
            "POST",
            "/v2/queues/jobs",
            some(JOBS_TOGETHER, &|n| job("one", n)),
            202,
        ),
        (
            "Relay enqueue replace",
            "POST",
            "/v2/queues/jobs?mode=replace",
            list(&|n| job("one", n)),
            202,
        ),
        (
            "Relay enqueue unique, in many queues",
            "POST",
            "/v2/queues/jobs",
            some(JOBS_TOGETHER, &|n| {
                job(&format!("q{}", n % QUEUES_TOGETHER), n)
            }),
            202,
        ),
    ]
}
