//! Drives one server for a while.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use super::Result;
use super::client::Connection;
use super::ledger::Ledger;
use super::report::percentile;
use super::target::Target;

/// Bytes of JSON in each job's `meta`.
const META_BYTES: usize = 256;

/// The load before the measurement, in which caches fill and connections open.
const WARM_UP: Duration = Duration::from_millis(500);

/// A kind of load.
#[derive(Clone)]
pub struct Load {
    pub connections: usize,
    /// Jobs in each request.
    pub jobs: usize,
    queues: usize,
}

impl Load {
    pub fn new(connections: usize, jobs: usize, queues: usize) -> Load {
        Load {
            connections: connections.max(1),
            jobs: jobs.max(1),
            queues: queues.max(1),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.connections {
            1 => f.write_str("1 connection")?,
            number => write!(f, "{number} connections")?,
        }
        if self.jobs > 1 {
            write!(f, ", {} jobs a request", self.jobs)?;
        }
        Ok(())
    }
}

/// What was measured.
#[derive(Clone)]
pub struct Measured {
    pub jobs_per_s: f64,
    /// Of a cycle of three requests, in milliseconds.
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    /// User and system time of the server per job.
    pub cpu_us: f64,
    pub memory_mb: f64,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} jobs/s, p50 {:.2} ms, {:.1} µs of server time a job",
            self.jobs_per_s, self.p50_ms, self.cpu_us
        )
    }
}

/// What the connections share.
struct Shared {
    ledger: RefCell<Ledger>,
    /// How long each cycle took since the measurement began, in microseconds.
    cycles: RefCell<Vec<f64>>,
    stop: Cell<bool>,
}

/// Drives the server and measures.
///
/// # Errors
/// If an answer is not what it must be, or a job is lost or done twice.
pub async fn run(target: &Target, load: &Load, seconds: Duration) -> Result<Measured> {
    let shared = Rc::new(Shared {
        ledger: RefCell::default(),
        cycles: RefCell::default(),
        stop: Cell::new(false),
    });
    let local = LocalSet::new();
    let mut connections = Vec::new();
    for number in 0..load.connections {
        let worker = Worker::new(target, load, number, Rc::clone(&shared)).await?;
        connections.push(local.spawn_local(worker.work()));
    }
    let clock = async {
        tokio::time::sleep(WARM_UP).await;
        shared.cycles.borrow_mut().clear();
        let (began, cpu) = (Instant::now(), target.cpu()?);
        tokio::time::sleep(seconds).await;
        let cycles = shared.cycles.take();
        let (took, cpu) = (began.elapsed(), target.cpu()?.saturating_sub(cpu));
        shared.stop.set(true);
        Ok::<_, Box<dyn std::error::Error>>((cycles, took, cpu))
    };
    let (mut cycles, took, cpu) = local.run_until(clock).await?;
    for connection in connections {
        local.run_until(connection).await??;
    }
    shared.ledger.borrow().close()?;
    if cycles.is_empty() {
        return Err("no cycle ended in time".into());
    }
    cycles.sort_by(f64::total_cmp);
    let jobs = (cycles.len() * load.jobs) as f64;
    Ok(Measured {
        jobs_per_s: jobs / took.as_secs_f64(),
        p50_ms: percentile(&cycles, 0.50) / 1e3,
        p95_ms: percentile(&cycles, 0.95) / 1e3,
        p99_ms: percentile(&cycles, 0.99) / 1e3,
        cpu_us: cpu.as_secs_f64() * 1e6 / jobs,
        memory_mb: target.memory_mb()?,
    })
}

/// One connection, and what it sends.
struct Worker {
    connection: Connection,
    shared: Rc<Shared>,
    jobs: usize,
    host: String,
    meta: String,
    add: (String, String),
    get: String,
    complete: String,
}

impl Worker {
    async fn new(
        target: &Target,
        load: &Load,
        number: usize,
        shared: Rc<Shared>,
    ) -> Result<Worker> {
        let queue = format!("load{}", number % load.queues);
        let host = format!("worker-{number}");
        let meta = format!("\"{}\"", "m".repeat(META_BYTES - 2));
        let item = format!("{{\"meta\":{meta}}}");
        let (items, count) = if load.jobs == 1 {
            (item, String::new())
        } else {
            (
                format!("[{}]", vec![item; load.jobs].join(",")),
                format!("/{}", load.jobs),
            )
        };
        Ok(Worker {
            connection: Connection::open(target.address(number)?).await?,
            shared,
            jobs: load.jobs,
            add: (format!("/add/{queue}"), format!("{{\"data\":{items}}}")),
            get: format!("/get/{queue}{count}?host={host}"),
            complete: format!("/complete/{queue}"),
            host,
            meta,
        })
    }

    /// Works until the end; the cycle that has begun is finished, so that nothing is left behind.
    async fn work(mut self) -> Result<()> {
        while !self.shared.stop.get() {
            let began = Instant::now();
            self.cycle().await?;
            let took = began.elapsed().as_secs_f64() * 1e6;
            self.shared.cycles.borrow_mut().push(took);
        }
        Ok(())
    }

    async fn cycle(&mut self) -> Result<()> {
        let answer = self.connection.post(&self.add.0, &self.add.1).await?;
        let added = results(answer)?;
        expect(added.len(), self.jobs, answer)?;
        for id in added {
            self.shared.ledger.borrow_mut().added(id)?;
        }
        // Everyone adds before getting, so there are always enough jobs, though maybe another's.
        let answer = self.connection.get(&self.get).await?;
        let got: Vec<String> = ids(answer).map(str::to_owned).collect();
        expect(got.len(), self.jobs, answer)?;
        let items: Vec<String> = got
            .iter()
            .map(|id| format!("{{\"id\":\"{id}\",\"meta\":{}}}", self.meta))
            .collect();
        let items = if self.jobs == 1 {
            items.concat()
        } else {
            format!("[{}]", items.join(","))
        };
        let body = format!("{{\"host\":\"{}\",\"data\":{items}}}", self.host);
        let answer = self.connection.post(&self.complete, &body).await?;
        let completed = results(answer)?;
        if completed != got {
            return Err(format!("not all were completed: {answer}").into());
        }
        for id in completed {
            self.shared.ledger.borrow_mut().completed(id)?;
        }
        Ok(())
    }
}

fn expect(there: usize, wanted: usize, answer: &str) -> Result<()> {
    if there == wanted {
        return Ok(());
    }
    Err(format!("{there} instead of {wanted}: {answer}").into())
}

/// The ids in `results`, which is an id or an array of them.
fn results(answer: &str) -> Result<Vec<&str>> {
    let (_, results) = answer.split_once("\"results\":").ok_or("no results")?;
    Ok(match results.strip_prefix('[') {
        Some(array) => array.split(']').next().unwrap_or_default(),
        None => results.split_inclusive('"').nth(1).unwrap_or_default(),
    }
    .split(',')
    .map(|id| id.trim().trim_matches('"'))
    .filter(|id| !id.is_empty())
    .collect())
}

/// The ids of the jobs in the answer to a get.
fn ids(answer: &str) -> impl Iterator<Item = &str> {
    answer
        .split("\"id\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
}
