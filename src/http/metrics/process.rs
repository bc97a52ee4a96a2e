//! Facts about the process, under the names that all Prometheus clients use. They come from Linux's `/proc`; elsewhere
//! there are none.

use std::fs;

use rustix::process::{Resource, getrlimit};

use crate::metrics::text::{Exposition, Kind};

/// Ticks per second in `/proc`: the same on all architectures (`USER_HZ`).
const TICKS: f64 = 100.0;

/// Writes the metrics of the process. Blocks, because it reads files.
pub fn write(out: &mut Exposition) {
    let Some(stat) = fs::read_to_string("/proc/self/stat").ok() else {
        return;
    };
    // The name of the program is in parentheses, and can contain spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // Numbered as in proc_pid_stat(5), where the field after the name is the third.
    let field = |number: usize| {
        let text = fields.get(number.saturating_sub(3));
        text.and_then(|text| text.parse::<u64>().ok())
            .unwrap_or_default()
    };
    out.single(
        "process_cpu_seconds",
        Kind::Counter,
        "CPU time that the process has used, in user and system mode.",
        (field(14) + field(15)) as f64 / TICKS,
    );
    out.single(
        "process_resident_memory_bytes",
        Kind::Gauge,
        "Memory of the process in RAM.",
        resident_bytes().unwrap_or_default(),
    );
    out.single(
        "process_virtual_memory_bytes",
        Kind::Gauge,
        "Address space of the process.",
        field(23),
    );
    if let Some(boot) = boot_time() {
        out.single(
            "process_start_time_seconds",
            Kind::Gauge,
            "When the process started, in seconds since 1970.",
            boot as f64 + field(22) as f64 / TICKS,
        );
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        out.single(
            "process_open_fds",
            Kind::Gauge,
            "Open file descriptors.",
            // One of them lists the others.
            files.count().saturating_sub(1),
        );
    }
    if let Some(max) = getrlimit(Resource::Nofile).current {
        out.single(
            "process_max_fds",
            Kind::Gauge,
            "Maximum number of open file descriptors.",
            max,
        );
    }
}

/// Memory in RAM, which `/proc/self/stat` shows in pages of unknown size.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes = line.trim().trim_end_matches(" kB");
    kibibytes.trim().parse::<u64>().ok().map(|it| it << 10)
}

/// When the machine started, in seconds since 1970.
fn boot_time() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}
