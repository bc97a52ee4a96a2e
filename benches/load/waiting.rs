//! The cost of long polls: the delivery time of a job to a waiting consumer, and the resources of thousands of
//! consumers on an idle server. The floor has no long polls.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Result;
use super::client::Connection;
use super::lmstfy::job_id;
use super::report::percentile;
use super::target::Target;

/// Timeout of the long polls, longer than the whole measurement.
const TIMEOUT_S: u32 = 600;

/// Delay between the consumer's request and the publisher's, so that the consumer is waiting.
const BEGIN: Duration = Duration::from_millis(10);

/// Duration of the measurement of an idle server.
const WATCH: Duration = Duration::from_secs(10);

/// Consumers per queue.
const EACH: usize = 10;

/// Open files that this program and the server need in addition to one per consumer.
const OTHER_FILES: usize = 200;

/// Time from sending a publish request to the delivery of the job, in milliseconds.
pub struct Delivery {
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Publishes a job to a waiting consumer, `rounds` times.
pub async fn deliver(target: &Target, rounds: usize) -> Result<Delivery> {
    let path = "/api/load/delivery";
    // With several servers, consumer and publisher use different ones.
    let mut consumer = Connection::open(target.address(0)?).await?;
    let mut publisher = Connection::open(target.address(1)?).await?;
    let mut took = Vec::new();
    for _ in 0..rounds {
        let poll = format!("{path}?timeout={TIMEOUT_S}");
        consumer.send("GET", &poll, "").await?;
        tokio::time::sleep(BEGIN).await;
        let began = Instant::now();
        publisher.send("PUT", path, "a job").await?;
        let id = match consumer.receive().await? {
            (200, response) => job_id(response)?.to_owned(),
            (status, response) => return Err(format!("no job: {status} {response}").into()),
        };
        took.push(began.elapsed().as_secs_f64() * 1e3);
        let (_, published) = publisher.receive().await?;
        if job_id(published)? != id {
            return Err(format!("got job {id} instead of {published}").into());
        }
        let ack = format!("{path}/job/{id}");
        consumer.exchange("DELETE", &ack, "", 204).await?;
    }
    took.sort_by(f64::total_cmp);
    Ok(Delivery {
        p50_ms: percentile(&took, 0.50),
        p99_ms: percentile(&took, 0.99),
    })
}

/// The resources of an idle server with waiting consumers.
pub struct Idle {
    pub waiting: usize,
    /// Percentage of one core.
    pub cpu_percent: f64,
    pub memory_mb: f64,
    /// The increase of memory by the waiting consumers.
    pub grown_mb: f64,
}

/// Measures a server with `wanted` waiting consumers, ten per queue, or as many as the limit on open files allows.
pub async fn idle(target: &Target, wanted: usize) -> Result<Idle> {
    let waiting = wanted.min(open_files().saturating_sub(OTHER_FILES));
    if waiting < wanted {
        println!("only {waiting} can wait: `ulimit -n` allows no more");
    }
    let before = target.memory_mb()?;
    let queues = waiting.div_ceil(EACH).max(1);
    let mut connections = Vec::with_capacity(waiting);
    for number in 0..waiting {
        let address = target.address(number)?;
        let mut connection = TcpStream::connect(address).await?;
        let queue = number % queues;
        let request = format!(
            "GET /api/load/idle{queue}?timeout={TIMEOUT_S} HTTP/1.1\r\nhost: {address}\r\n\r\n"
        );
        connection.write_all(request.as_bytes()).await?;
        connections.push(connection);
    }
    // Waits until the server has received all requests and is idle again.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (began, cpu) = (Instant::now(), target.cpu()?);
    tokio::time::sleep(WATCH).await;
    let (took, cpu) = (began.elapsed(), target.cpu()?.saturating_sub(cpu));
    let memory_mb = target.memory_mb()?;
    all_wait(target, queues, &connections).await?;
    Ok(Idle {
        waiting,
        cpu_percent: 100.0 * cpu.as_secs_f64() / took.as_secs_f64(),
        memory_mb,
        grown_mb: memory_mb - before,
    })
}

/// Checks that no consumer has a response yet, and that each published job is delivered at once.
async fn all_wait(target: &Target, queues: usize, connections: &[TcpStream]) -> Result<()> {
    let mut byte = [0];
    for connection in connections {
        if connection.try_read(&mut byte).is_ok() {
            return Err("a consumer got a response before a job was published".into());
        }
    }
    let mut publisher = Connection::open(target.address(0)?).await?;
    for queue in 0..queues {
        let path = format!("/api/load/idle{queue}");
        publisher.exchange("PUT", &path, "a job", 201).await?;
    }
    let began = Instant::now();
    let mut finished = 0;
    while finished < queues {
        if began.elapsed() > WATCH {
            return Err(format!("{finished} of {queues} jobs were delivered").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut response = [0; 4096];
        for connection in connections {
            let read = connection.try_read(&mut response);
            finished += usize::from(read.is_ok_and(|bytes| bytes > 0));
        }
    }
    Ok(())
}

/// The limit on open files of this process.
fn open_files() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let limit = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    limit.unwrap_or(1024)
}
