//! Applies a load to one server and measures it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use tokio::task::LocalSet;

use super::Result;
use super::ledger::Ledger;
use super::report::percentile;
use super::target::Target;
use super::{jobq, lmstfy, qless, redis, relay};

/// Duration of the load before the measurement, which fills caches and opens connections.
const WARM_UP: Duration = Duration::from_millis(500);

/// The protocol of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    Qless,
    Lmstfy,
    Relay,
    Jobq,
    /// qless over the Redis protocol.
    Redis,
}

/// A kind of load.
#[derive(Clone)]
pub struct Load {
    protocol: Protocol,
    pub connections: usize,
    /// Jobs in each request.
    pub jobs: usize,
    queues: usize,
}

impl Load {
    pub fn new(protocol: Protocol, connections: usize, jobs: usize, queues: usize) -> Load {
        Load {
            protocol,
            connections: connections.max(1),
            jobs: jobs.max(1),
            queues: queues.max(1),
        }
    }

    /// The queue of connection `number`.
    pub fn queue(&self, number: usize) -> String {
        format!("load{}", number % self.queues)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            Protocol::Qless => f.write_str("qless, ")?,
            Protocol::Lmstfy => f.write_str("lmstfy, ")?,
            Protocol::Relay => f.write_str("Relay, ")?,
            Protocol::Jobq => f.write_str("Jobq, ")?,
            Protocol::Redis => f.write_str("Redis protocol, ")?,
        }
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

/// The result of a measurement.
#[derive(Clone)]
pub struct Measured {
    pub jobs_per_s: f64,
    /// Duration of a cycle of three requests, in milliseconds.
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    /// User and system time of the server per job, in microseconds.
    pub cpu_us: f64,
    pub memory_mb: f64,
    /// Written to the database's log per job, in kilobytes; 0 without a database.
    pub log_kb: f64,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} jobs/s, p50 {:.2} ms, {:.1} µs of server time and {:.1} kB of log a job",
            self.jobs_per_s, self.p50_ms, self.cpu_us, self.log_kb
        )
    }
}

/// State that the connections share.
pub struct Shared {
    pub ledger: RefCell<Ledger>,
    /// Duration of each cycle since the measurement began, in microseconds.
    cycles: RefCell<Vec<f64>>,
    stop: Cell<bool>,
}

/// How many times a claim is repeated if several servers share the database, because each skips jobs that another one
/// is claiming.
pub const TRIES: usize = 50;

/// Applies the load and measures it.
///
/// # Errors
/// If a response is wrong, or a job is lost or completed twice.
pub async fn run(target: &Target, load: &Load, seconds: Duration) -> Result<Measured> {
    let shared = Rc::new(Shared {
        ledger: RefCell::default(),
        cycles: RefCell::default(),
        stop: Cell::new(false),
    });
    let local = LocalSet::new();
    let mut connections = Vec::new();
    for number in 0..load.connections {
        let worker = Worker::new(target, load, number, &shared).await?;
        connections.push(local.spawn_local(work(worker, Rc::clone(&shared))));
    }
    let clock = async {
        tokio::time::sleep(WARM_UP).await;
        shared.cycles.borrow_mut().clear();
        let (began, cpu) = (Instant::now(), target.cpu()?);
        let log = target.log_written(seconds).await?;
        let cycles = shared.cycles.take();
        let (took, cpu) = (began.elapsed(), target.cpu()?.saturating_sub(cpu));
        shared.stop.set(true);
        Ok::<_, Box<dyn std::error::Error>>((cycles, took, cpu, log))
    };
    let (mut cycles, took, cpu, log) = local.run_until(clock).await?;
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
        log_kb: log / 1e3 / jobs,
    })
}

/// One connection of a load.
enum Worker {
    Qless(qless::Worker),
    Lmstfy(lmstfy::Worker),
    Relay(relay::Worker),
    Jobq(jobq::Worker),
    Redis(redis::Worker),
}

impl Worker {
    async fn new(
        target: &Target,
        load: &Load,
        number: usize,
        shared: &Rc<Shared>,
    ) -> Result<Worker> {
        let shared = Rc::clone(shared);
        Ok(match load.protocol {
            Protocol::Qless => {
                Worker::Qless(qless::Worker::new(target, load, number, shared).await?)
            }
            Protocol::Lmstfy => {
                Worker::Lmstfy(lmstfy::Worker::new(target, load, number, shared).await?)
            }
            Protocol::Relay => {
                Worker::Relay(relay::Worker::new(target, load, number, shared).await?)
            }
            Protocol::Jobq => Worker::Jobq(jobq::Worker::new(target, load, number, shared).await?),
            Protocol::Redis => {
                Worker::Redis(redis::Worker::new(target, load, number, shared).await?)
            }
        })
    }

    async fn cycle(&mut self) -> Result<()> {
        match self {
            Worker::Qless(worker) => worker.cycle().await,
            Worker::Lmstfy(worker) => worker.cycle().await,
            Worker::Relay(worker) => worker.cycle().await,
            Worker::Jobq(worker) => worker.cycle().await,
            Worker::Redis(worker) => worker.cycle().await,
        }
    }
}

/// Runs cycles until the end. Finishes the current cycle, so that no job is left over.
async fn work(mut worker: Worker, shared: Rc<Shared>) -> Result<()> {
    while !shared.stop.get() {
        let began = Instant::now();
        worker.cycle().await?;
        let took = began.elapsed().as_secs_f64() * 1e6;
        shared.cycles.borrow_mut().push(took);
    }
    Ok(())
}
