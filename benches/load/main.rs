//! The load program: what a cycle of add, get and complete costs over HTTP.
//!
//! It starts the release server once per durability, and beside it a *floor*: a server of the same
//! routes that answers from memory, so that the ratios to it hold on whatever machine this runs.
//! All are driven in turns, in several rounds, and the medians are printed. Every answer is checked:
//! each job that was added is completed, once.
//!
//! `make bench`, or `cargo bench --features ssr --bench load -- --help` after `make build`.

mod client;
mod drive;
mod floor;
mod ledger;
mod report;
mod target;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use drive::{Load, Measured};
use report::Row;
use target::Target;

pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[derive(Parser)]
#[command(
    about = "What a cycle of add, get and complete costs over HTTP, beside a server that does nothing"
)]
struct Options {
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// How often each is repeated; the medians are printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Numbers of connections to measure with.
    #[arg(long, value_delimiter = ',', default_value = "1,8,64")]
    connections: Vec<usize>,
    /// Durabilities to measure.
    #[arg(long, value_delimiter = ',', default_value = "process,full")]
    durability: Vec<String>,
    /// Numbers of servers on one Postgres to measure; run it with scripts/postgres.sh then.
    #[arg(long, value_delimiter = ',')]
    postgres: Vec<usize>,
    /// Queues over which the connections are spread.
    #[arg(long, default_value_t = 1)]
    queues: usize,
    /// Jobs in each request of the measurement in bulk, on 8 connections; 0 leaves it out.
    #[arg(long, default_value_t = 50)]
    bulk: usize,
    /// The server to measure; else the one that was built along with this program.
    #[arg(long)]
    server: Option<PathBuf>,
    /// Be the floor.
    #[arg(long, hide = true)]
    floor: bool,
    /// What `cargo bench` says to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    if options.floor {
        return floor::serve();
    }
    // One thread, so that the other core is the server's.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure(&options))
}

/// Connections of the measurement in bulk.
const BULK_CONNECTIONS: usize = 8;

async fn measure(options: &Options) -> Result<()> {
    let mut targets = vec![Target::floor()?];
    for durability in &options.durability {
        targets.push(Target::server(options.server.as_deref(), durability)?);
    }
    for servers in &options.postgres {
        targets.push(Target::postgres(options.server.as_deref(), *servers)?);
    }
    let mut loads: Vec<Load> = options
        .connections
        .iter()
        .map(|connections| Load::new(*connections, 1, options.queues))
        .collect();
    if options.bulk > 0 {
        loads.push(Load::new(BULK_CONNECTIONS, options.bulk, options.queues));
    }
    let seconds = Duration::from_secs_f64(options.seconds.clamp(0.1, 600.0));
    let mut measured: Vec<Vec<Vec<Measured>>> = vec![vec![Vec::new(); targets.len()]; loads.len()];
    // A round goes through everything, so that a disturbance of a few seconds spoils one round of each.
    for round in 1..=options.rounds {
        for (load, of_load) in loads.iter().zip(&mut measured) {
            for (target, of_target) in targets.iter().zip(of_load) {
                let one = drive::run(target, load, seconds).await?;
                println!("round {round}: {} {load}: {one}", target.name);
                of_target.push(one);
            }
        }
    }
    println!();
    report::print(&rows(&loads, &targets, &measured));
    Ok(())
}

fn rows(loads: &[Load], targets: &[Target], measured: &[Vec<Vec<Measured>>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (load, of_load) in loads.iter().zip(measured) {
        let floor = of_load.first().map_or(&[][..], Vec::as_slice);
        for (target, of_target) in targets.iter().zip(of_load) {
            rows.push(Row::new(&target.name, load, of_target, floor));
        }
    }
    rows
}
