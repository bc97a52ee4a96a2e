//! Medians, ratios, and the tables of results.

use super::delays::Delay;
use super::drive::{Load, Measured};
use super::pages::{Page, Tabs};
use super::records::Queries;
use super::waiting::{Delivery, Idle};
pub use switchyard::bench::percentile;

/// A line of the table.
pub struct Row {
    load: String,
    name: String,
    median: Measured,
    /// Median of the ratios to the floor in the same round.
    cpu_ratio: f64,
    throughput_ratio: f64,
    p50_ratio: f64,
}

impl Row {
    /// The medians of the rounds of one server under one load. `floor` has the same rounds of the floor.
    pub fn new(name: &str, load: &Load, rounds: &[Measured], floor: &[Measured]) -> Row {
        let median = |value: fn(&Measured) -> f64| middle(rounds.iter().map(value).collect());
        let ratio = |value: fn(&Measured) -> f64| {
            middle(
                rounds
                    .iter()
                    .zip(floor)
                    .map(|(own, floor)| value(own) / value(floor))
                    .collect(),
            )
        };
        Row {
            load: load.to_string(),
            name: name.to_owned(),
            median: Measured {
                jobs_per_s: median(|one| one.jobs_per_s),
                p50_ms: median(|one| one.p50_ms),
                p95_ms: median(|one| one.p95_ms),
                p99_ms: median(|one| one.p99_ms),
                cpu_us: median(|one| one.cpu_us),
                memory_mb: median(|one| one.memory_mb),
                log_kb: median(|one| one.log_kb),
            },
            cpu_ratio: ratio(|one| one.cpu_us),
            throughput_ratio: ratio(|one| one.jobs_per_s),
            p50_ratio: ratio(|one| one.p50_ms),
        }
    }
}

/// Prints the table of loads.
pub fn print(rows: &[Row]) {
    println!(
        "| load | server | jobs/s | cycle p50 | p95 | p99 ms | CPU µs/job | log kB/job | memory MB | CPU : floor | jobs/s : floor | p50 : floor |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for Row {
        load,
        name,
        median,
        cpu_ratio,
        throughput_ratio,
        p50_ratio,
    } in rows
    {
        println!(
            "| {load} | {name} | {:.0} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.0} | {cpu_ratio:.2} | {throughput_ratio:.2} | {p50_ratio:.2} |",
            median.jobs_per_s,
            median.p50_ms,
            median.p95_ms,
            median.p99_ms,
            median.cpu_us,
            median.log_kb,
            median.memory_mb,
        );
    }
}

/// The table of loads as one line of JSON.
pub fn json(rows: &[Row]) -> String {
    let row = |row: &Row| {
        serde_json::json!({
            "load": row.load,
            "server": row.name,
            "jobs_per_s": row.median.jobs_per_s,
            "p50_ms": row.median.p50_ms,
            "p95_ms": row.median.p95_ms,
            "p99_ms": row.median.p99_ms,
            "cpu_us": row.median.cpu_us,
            "log_kb": row.median.log_kb,
            "memory_mb": row.median.memory_mb,
            "cpu_ratio": row.cpu_ratio,
            "throughput_ratio": row.throughput_ratio,
            "p50_ratio": row.p50_ratio,
        })
    };
    serde_json::Value::from_iter(rows.iter().map(row)).to_string()
}

/// Prints the table of the delays by the largest requests.
pub fn print_delays(rows: &[(String, Vec<Delay>)]) {
    println!(
        "| large request | server | response after ms | longest wait of a concurrent put, ms |"
    );
    println!("|---|---|---|---|");
    for (name, delays) in rows {
        for Delay {
            request,
            took_ms,
            longest_wait_ms,
        } in delays
        {
            println!("| {request} | {name} | {took_ms:.0} | {longest_wait_ms:.1} |");
        }
    }
}

/// Prints the table of long polls.
pub fn print_waiting(rows: &[(String, Option<Delivery>, Option<Idle>)]) {
    println!(
        "| lmstfy, long polls | delivery p50 | p99 ms | waiting | CPU % | memory MB | of which for long polls |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, delivery, idle) in rows {
        let delivery = delivery.as_ref().map_or_else(
            || "– | –".to_owned(),
            |delivery| format!("{:.2} | {:.2}", delivery.p50_ms, delivery.p99_ms),
        );
        let idle = idle.as_ref().map_or_else(
            || "– | – | – | –".to_owned(),
            |idle| {
                format!(
                    "{} | {:.1} | {:.0} | {:.0}",
                    idle.waiting, idle.cpu_percent, idle.memory_mb, idle.grown_mb
                )
            },
        );
        println!("| {name} | {delivery} | {idle} |");
    }
}

/// Prints the table of queries.
pub fn print_queries(rows: &[(String, Queries)]) {
    println!(
        "| Jobq, a query for 10 jobs | jobs | by label, of 10 | by label, of all | p99 | ratio | over all, ms |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, queries) in rows {
        let Queries {
            jobs,
            few_ms,
            many_ms,
            many_p99_ms,
            over_all_ms,
        } = queries;
        println!(
            "| {name} | {jobs} | {few_ms:.2} | {many_ms:.2} | {many_p99_ms:.2} | {:.2} | {over_all_ms:.0} |",
            many_ms / few_ms
        );
    }
}

/// Prints the table of open tabs.
pub fn print_tabs(tabs: &Tabs) {
    println!(
        "| open tabs of an idle server | CPU % | CPU % of a single tab | memory of the tabs, MB |"
    );
    println!("|---|---|---|---|");
    println!(
        "| {} | {:.2} | {:.2} | {:.1} |",
        tabs.number, tabs.cpu_percent, tabs.alone_percent, tabs.grown_mb
    );
}

/// Prints the table of pages.
pub fn print_pages(jobs: usize, pages: &[Page]) {
    println!("| page, {jobs} jobs | p50 ms | p95 ms | budget | kB |");
    println!("|---|---|---|---|---|");
    for page in pages {
        println!(
            "| {} | {:.1} | {:.1} | {:.0}{} | {:.0} |",
            page.name,
            page.p50_ms,
            page.p95_ms,
            page.budget_ms,
            if page.p95_ms > page.budget_ms {
                " exceeded"
            } else {
                ""
            },
            page.kilobytes
        );
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    percentile(&values, 0.5)
}
