//! The load program. It measures over HTTP: the cycle of a job in qless (add, get, complete), lmstfy (publish, consume,
//! acknowledge), Relay (enqueue, next, complete) and Jobq (create, poll, delete); the same cycle of qless over the
//! Redis protocol, next to a real Redis with qless-core if `--qless-core` names its script; long polls; queries over
//! many jobs; and the dashboard's pages and open tabs.
//!
//! It starts the release server once per durability, and a *floor*: a server with the same routes that responds from
//! memory. Ratios to the floor are comparable across machines. The servers are measured alternately, in several rounds,
//! and the medians are printed. Every response is checked, and every added job must be completed exactly once.
//!
//! `make bench`, or `cargo bench --features ssr --bench load -- --help` after `make build`.

mod client;
mod delays;
mod drive;
mod floor;
mod jobq;
mod ledger;
mod lmstfy;
mod log;
mod pages;
mod qless;
mod records;
mod redis;
mod relay;
mod report;
mod target;
mod waiting;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Parser;

use drive::{Load, Measured, Protocol};
use report::Row;
use target::Target;
use waiting::{Delivery, Idle};

pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[derive(Parser)]
#[command(
    about = "Measures cycles of add, get and complete over HTTP next to a reference server that answers from memory, \
             waiting consumers, Jobq queries, and the dashboard"
)]
struct Options {
    /// Duration of each measurement, in seconds.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Repetitions of each measurement; the medians are printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Numbers of connections to measure with.
    #[arg(long, value_delimiter = ',', default_value = "1,8,64")]
    connections: Vec<usize>,
    /// Durabilities to measure.
    #[arg(long, value_delimiter = ',', default_value = "process,full")]
    durability: Vec<String>,
    /// Numbers of servers on one Postgres to measure; requires scripts/postgres.sh.
    #[arg(long, value_delimiter = ',')]
    postgres: Vec<usize>,
    /// Number of queues that the connections use.
    #[arg(long, default_value_t = 1)]
    queues: usize,
    /// Protocols to measure.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "qless,lmstfy,relay,jobq,redis"
    )]
    protocol: Vec<Protocol>,
    /// Also measure a real Redis (`redis-server`) that runs this script of qless-core. Redis 7 refuses scripts that
    /// assign to global tables.
    #[arg(long, value_name = "FILE")]
    qless_core: Option<PathBuf>,
    /// Measure the dashboard only.
    #[arg(long)]
    dashboard: bool,
    /// Jobs per request in qless's bulk measurement, on 8 connections; 0 skips it.
    #[arg(long, default_value_t = 50)]
    bulk: usize,
    /// Number of lmstfy jobs published to a waiting consumer; 0 skips this measurement.
    #[arg(long, default_value_t = 300)]
    deliveries: usize,
    /// Number of idle lmstfy consumers, ten per queue, limited by `ulimit -n`; 0 skips this measurement.
    #[arg(long, default_value_t = 10_000)]
    idle: usize,
    /// Number of jobs in the Jobq queue that is queried; 0 skips this measurement.
    #[arg(long, default_value_t = 100_000)]
    records: usize,
    /// Measure only the loads, and print one line of JSON at the end.
    #[arg(long)]
    loads: bool,
    /// Also record a profile of each load with `perf`, in this folder.
    #[arg(long, value_name = "FOLDER")]
    perf: Option<PathBuf>,
    /// Measure only how long the largest requests block other requests.
    #[arg(long)]
    holds: bool,
    /// Number of generated jobs for the measurement of dashboard pages; 0 skips it.
    #[arg(long, default_value_t = 1_000_000)]
    pages: usize,
    /// Number of idle dashboard tabs that listen to the live feed; 0 skips this measurement.
    #[arg(long, default_value_t = 200)]
    tabs: usize,
    /// Server binary to measure [default: the one built with this program].
    #[arg(long)]
    server: Option<PathBuf>,
    /// Run as the reference server.
    #[arg(long, hide = true)]
    floor: bool,
    /// Passed by `cargo bench` to every benchmark; ignored.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    if options.floor {
        return floor::serve();
    }
    // One thread, to leave the other cores to the server.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure(&options))
}

/// Connections of the bulk measurement.
const BULK_CONNECTIONS: usize = 8;

async fn measure(options: &Options) -> Result<()> {
    if options.dashboard {
        return dashboard(options).await;
    }
    let mut targets = vec![Target::floor()?];
    for durability in &options.durability {
        targets.push(Target::server(options.server.as_deref(), durability)?);
    }
    for servers in &options.postgres {
        targets.push(Target::postgres(options.server.as_deref(), *servers)?);
    }
    if options.holds {
        return measure_delays(targets.get(1..).unwrap_or_default()).await;
    }
    let mut loads = Vec::new();
    for protocol in options.protocol.iter().filter(|it| **it != Protocol::Redis) {
        let load = |connections, jobs| Load::new(*protocol, connections, jobs, options.queues);
        loads.extend(options.connections.iter().map(|number| load(*number, 1)));
        // Only qless completes several jobs per request; lmstfy acknowledges one at a time.
        if options.bulk > 0 && *protocol == Protocol::Qless {
            loads.push(load(BULK_CONNECTIONS, options.bulk));
        }
    }
    let all: Vec<&Target> = targets.iter().collect();
    measure_loads(options, &loads, &all).await?;
    if options.protocol.contains(&Protocol::Redis) {
        measure_redis(options, targets.get(1..).unwrap_or_default()).await?;
    }
    if options.loads {
        return Ok(());
    }
    if options.protocol.contains(&Protocol::Lmstfy) && options.deliveries + options.idle > 0 {
        let waiting = wait(options, targets.get(1..).unwrap_or_default()).await?;
        println!();
        report::print_waiting(&waiting);
    }
    if options.protocol.contains(&Protocol::Jobq) && options.records > 0 {
        let mut queries = Vec::new();
        for target in targets.get(1..).unwrap_or_default() {
            let measured = records::measure(target, options.records).await?;
            queries.push((target.name.clone(), measured));
        }
        println!();
        report::print_queries(&queries);
    }
    println!();
    measure_delays(targets.get(1..).unwrap_or_default()).await?;
    // Stops the servers, so that they do not disturb the measurement of the dashboard.
    drop(targets);
    dashboard(options).await
}

/// Measures the loads over the Redis protocol. The ratios are those to a real Redis, if it is measured.
async fn measure_redis(options: &Options, servers: &[Target]) -> Result<()> {
    let mut real = Vec::new();
    if let Some(script) = &options.qless_core {
        for policy in ["everysec", "always"] {
            real.push(Target::redis_server(script, policy)?);
        }
    }
    let targets: Vec<&Target> = real.iter().chain(servers).collect();
    let numbers = options.connections.iter();
    let loads = numbers.map(|number| Load::new(Protocol::Redis, *number, 1, options.queues));
    measure_loads(options, &loads.collect::<Vec<_>>(), &targets).await
}

/// Measures each load on each target, and prints the results with the ratios to the first target.
async fn measure_loads(options: &Options, loads: &[Load], targets: &[&Target]) -> Result<()> {
    if loads.is_empty() {
        return Ok(());
    }
    let seconds = Duration::from_secs_f64(options.seconds.clamp(0.1, 600.0));
    let mut measured: Vec<Vec<Vec<Measured>>> = vec![vec![Vec::new(); targets.len()]; loads.len()];
    // Each round measures everything, so that a disturbance of a few seconds affects only one round of each.
    for round in 1..=options.rounds {
        for (load, of_load) in loads.iter().zip(&mut measured) {
            for (target, of_target) in targets.iter().zip(of_load) {
                let one = match &options.perf {
                    None => drive::run(target, load, seconds).await?,
                    Some(folder) => profiled(target, load, seconds, folder).await?,
                };
                println!("round {round}: {} {load}: {one}", target.name);
                of_target.push(one);
            }
        }
    }
    println!();
    let rows = rows(loads, targets, &measured);
    report::print(&rows);
    println!("{}", report::json(&rows));
    Ok(())
}

/// Measures a load while `perf` records a profile of the server and its database.
async fn profiled(
    target: &Target,
    load: &Load,
    seconds: Duration,
    folder: &Path,
) -> Result<Measured> {
    std::fs::create_dir_all(folder)?;
    let name = format!("{}-{load}.perf", target.name).replace([' ', ','], "");
    let file = folder.join(name);
    let mut perf = Command::new("perf")
        .args(["record", "-q", "-F", "997", "-g", "-o"])
        .args([file.as_os_str(), OsStr::new("-p")])
        .arg(target.pids()?)
        .arg("--")
        .args(["sleep", &(seconds.as_secs_f64() + 0.5).to_string()])
        .spawn()
        .map_err(|error| format!("perf: {error}"))?;
    let measured = drive::run(target, load, seconds).await?;
    perf.wait()?;
    println!("perf report --no-children -i '{}'", file.display());
    Ok(measured)
}

/// Measures how long the largest requests delay other requests.
async fn measure_delays(targets: &[Target]) -> Result<()> {
    let mut rows = Vec::new();
    for target in targets {
        rows.push((target.name.clone(), delays::measure(target).await?));
    }
    report::print_delays(&rows);
    for target in targets {
        println!("{}: {}", target.name, delays::holds(target).await?);
    }
    Ok(())
}

/// Measures the dashboard.
async fn dashboard(options: &Options) -> Result<()> {
    let server = options.server.as_deref();
    if options.tabs > 0 {
        let tabs = pages::tabs(&Target::server(server, "process")?, options.tabs).await?;
        println!();
        report::print_tabs(&tabs);
    }
    if options.pages > 0 {
        let pages = pages::measure(&Target::generated(server, options.pages)?).await?;
        println!();
        report::print_pages(options.pages, &pages);
    }
    Ok(())
}

/// Measures long polls on each server.
async fn wait(
    options: &Options,
    targets: &[Target],
) -> Result<Vec<(String, Option<Delivery>, Option<Idle>)>> {
    let mut rows = Vec::new();
    for target in targets {
        let delivery = match options.deliveries {
            0 => None,
            rounds => Some(waiting::deliver(target, rounds).await?),
        };
        let idle = match options.idle {
            0 => None,
            number => Some(waiting::idle(target, number).await?),
        };
        rows.push((target.name.clone(), delivery, idle));
    }
    Ok(rows)
}

fn rows(loads: &[Load], targets: &[&Target], measured: &[Vec<Vec<Measured>>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (load, of_load) in loads.iter().zip(measured) {
        let floor = of_load.first().map_or(&[][..], Vec::as_slice);
        for (target, of_target) in targets.iter().zip(of_load) {
            rows.push(Row::new(&target.name, load, of_target, floor));
        }
    }
    rows
}
