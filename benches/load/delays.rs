//! Measures how long the largest accepted requests delay other requests.

use std::time::Instant;

use super::Result;
use super::client::Connection;
use super::target::Target;

/// Jobs in most requests.
const JOBS: usize = 10_000;
/// Jobs in the atomic requests of Relay.
const JOBS_TOGETHER: usize = 3_200;
/// Queues in one of the atomic requests of Relay.
const QUEUES_TOGETHER: usize = 1_000;

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
            let both = async { light.receive().await.map(|(status, _)| status) };
            tokio::pin!(both);
            let finished = tokio::select! {
                biased;
                response = &mut exchange => {
                    response?;
                    let took = began.elapsed();
                    both.await?;
                    Some(took)
                }
                status = &mut both => {
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

fn requests() -> Vec<Request> {
    let some = |count: usize, item: &dyn Fn(usize) -> String| {
        let items: Vec<String> = (0..count).map(item).collect();
        format!("[{}]", items.join(","))
    };
    let list = |item: &dyn Fn(usize) -> String| some(JOBS, item);
    let data = |item: &dyn Fn(usize) -> String| format!(r#"{{"data":{}}}"#, list(item));
    let put = |prefix: &str| data(&|n| format!(r#"{{"id":"{prefix}{n}","meta":{{"n":{n}}}}}"#));
    let job = |queue: &str, n: usize| {
        format!(r#"{{"queue":"{queue}","id":"{n}","timeout":60,"payload":{n}}}"#)
    };
    let ids = |prefix: &str| data(&|n| format!(r#""{prefix}{n}""#));
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
        (
            "qless complete",
            "POST",
            "/complete/heavy?host=w",
            data(&|n| format!(r#"{{"id":"a{n}","meta":null}}"#)),
            200,
        ),
        ("qless put", "POST", "/add/heavy", put("b"), 200),
        ("qless cancel", "POST", "/cancel", ids("b"), 200),
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
