//! The cost of the dashboard: the response times of pages over a large database with continuous traffic, and the
//! resources of open tabs on an idle server.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Result;
use super::report::percentile;
use super::target::Target;

/// Requests per page.
const ROUNDS: usize = 60;

/// Duration of the measurement of an idle server.
const WATCH: Duration = Duration::from_secs(20);

/// Name and path of a page, and the budget of its p95 response time, in milliseconds.
const PAGES: [(&str, &str, f64); 16] = [
    ("overview", "/ui", 50.0),
    ("queues", "/ui/queues", 100.0),
    ("waiting", "/ui/queues/billing.import/waiting", 100.0),
    ("complete", "/ui/queues/billing.import/complete", 100.0),
    ("failed", "/ui/queues/billing.import/failed", 100.0),
    ("statistics", "/ui/queues/billing.import/stats", 100.0),
    ("failures", "/ui/failures", 100.0),
    ("failure group", "/ui/failures/TimeoutError", 100.0),
    ("dead letters", "/ui/dead", 100.0),
    ("lmstfy queue", "/ui/lmstfy/billing/outbox-0/waiting", 100.0),
    ("Relay queue", "/ui/relay/bulk-1/waiting", 100.0),
    ("Jobq queue", "/ui/jobq/ledger-1", 100.0),
    ("workers", "/ui/workers", 100.0),
    ("tags", "/ui/tags", 100.0),
    (
        "search by state",
        "/ui/jobs?q=state:failed%20class:shop*",
        250.0,
    ),
    (
        "search by payload",
        "/ui/jobs?q=data.customer.id:4711",
        250.0,
    ),
];

/// The response times of a page.
pub struct Page {
    pub name: &'static str,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub budget_ms: f64,
    /// Uncompressed.
    pub kilobytes: f64,
}

/// Requests the pages alternately, so that a disturbance affects all.
pub async fn measure(target: &Target) -> Result<Vec<Page>> {
    let address = target.address(0)?;
    let mut took = vec![Vec::new(); PAGES.len()];
    let mut bytes = vec![0; PAGES.len()];
    for _ in 0..ROUNDS {
        for (page, (took, bytes)) in PAGES.iter().zip(took.iter_mut().zip(&mut bytes)) {
            let began = Instant::now();
            *bytes = get(address, page.1).await?;
            took.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    let pages = PAGES.iter().zip(took).zip(bytes);
    Ok(pages
        .map(|(((name, _, budget_ms), mut took), bytes)| {
            took.sort_by(f64::total_cmp);
            Page {
                name,
                p50_ms: percentile(&took, 0.5),
                p95_ms: percentile(&took, 0.95),
                budget_ms: *budget_ms,
                kilobytes: bytes as f64 / 1e3,
            }
        })
        .collect())
}

/// Loads a page on a new connection. Returns the length of the response, including its head.
async fn get(address: &str, path: &str) -> Result<usize> {
    let mut connection = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    connection.read_to_end(&mut response).await?;
    if !response.starts_with(b"HTTP/1.1 200") {
        let line = String::from_utf8_lossy(response.get(..40).unwrap_or_default()).into_owned();
        return Err(format!("{path}: {line}").into());
    }
    Ok(response.len())
}

/// The resources of open tabs on an idle server.
pub struct Tabs {
    pub number: usize,
    /// Percentage of one core, with all tabs.
    pub cpu_percent: f64,
    /// Percentage of one core, with a single tab.
    pub alone_percent: f64,
    /// The increase of memory by the tabs.
    pub grown_mb: f64,
}

/// Measures a server with one open tab, then with `number` tabs.
pub async fn tabs(target: &Target, number: usize) -> Result<Tabs> {
    let mut open = vec![listen(target).await?];
    let alone_percent = watch(target).await?;
    let before = target.memory_mb()?;
    while open.len() < number {
        open.push(listen(target).await?);
    }
    let cpu_percent = watch(target).await?;
    Ok(Tabs {
        number: open.len(),
        cpu_percent,
        alone_percent,
        grown_mb: target.memory_mb()? - before,
    })
}

/// The CPU use of the server during [`WATCH`], in percent of one core.
async fn watch(target: &Target) -> Result<f64> {
    // Waits until the server has received all requests.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (began, cpu) = (Instant::now(), target.cpu()?);
    tokio::time::sleep(WATCH).await;
    let cpu = target.cpu()?.saturating_sub(cpu);
    Ok(100.0 * cpu.as_secs_f64() / began.elapsed().as_secs_f64())
}

/// Opens a connection to the live feed and waits for its first bytes.
async fn listen(target: &Target) -> Result<TcpStream> {
    let address = target.address(0)?;
    let mut feed = TcpStream::connect(address).await?;
    let request = format!("GET /ui/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
    feed.write_all(request.as_bytes()).await?;
    let mut received = [0; 1024];
    let bytes = feed.read(&mut received).await?;
    if !received
        .get(..bytes)
        .unwrap_or_default()
        .starts_with(b"HTTP/1.1 200")
    {
        return Err("the feed does not answer".into());
    }
    Ok(feed)
}
