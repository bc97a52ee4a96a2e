//! The machine: clock, open files, disk space.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use rustix::system::uname;
use serde_json::{Value, json};

use super::Finding;
use crate::cli::micros;
use crate::store::{database_file, folder_of};

/// The clock is wrong if it is earlier: 2026-01-01, in microseconds since 1970.
const EARLIEST: i64 = 1_767_225_600_000_000;

/// A file that is newer than now by more than this, in microseconds, means that the clock was set back.
const SKEW_MAX: i64 = 60_000_000;

/// Open files below which the number of connections is small.
const OPEN_FILES_MIN: u64 = 4_096;

/// Free space below which the disk counts as almost full: four times the largest reserve.
const FREE_MIN: u64 = 128 << 20;

/// Kernel and architecture.
pub fn describe() -> Value {
    let system = uname();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    json!({
        "system": system.sysname().to_string_lossy(),
        "release": system.release().to_string_lossy(),
        "machine": system.machine().to_string_lossy(),
        "cores": cores,
    })
}

pub fn check(database: &str, now: i64) -> Vec<Finding> {
    let mut findings = vec![open_files()];
    let file = database_file(database);
    findings.push(clock(file.as_deref(), now));
    findings.extend(file.and_then(|file| disk(&file)));
    findings
}

fn open_files() -> Finding {
    // The server raises the soft limit to the hard one.
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit < OPEN_FILES_MIN => Finding::warning(
            "open files",
            format!(
                "the limit is {limit}, which allows few connections; set at least {OPEN_FILES_MIN}"
            ),
        ),
        Some(limit) => Finding::ok("open files", format!("the limit is {limit}")),
        None => Finding::ok("open files", "unlimited"),
    }
}

fn clock(file: Option<&Path>, now: i64) -> Finding {
    if now < EARLIEST {
        return Finding::problem("clock", "the machine's clock is before 2026");
    }
    let modified = file.and_then(|file| fs::metadata(file).ok()?.modified().ok());
    match modified.map(|at| micros(at).saturating_sub(now)) {
        Some(ahead) if ahead > SKEW_MAX => Finding::problem(
            "clock",
            format!(
                "the last change of the database is {} s in the future; the clock was set back",
                ahead / 1_000_000
            ),
        ),
        _ => Finding::ok("clock", "plausible"),
    }
}

/// The disk of the database.
fn disk(file: &Path) -> Option<Finding> {
    let folder = folder_of(file);
    let found = match rustix::fs::statvfs(folder) {
        Ok(found) => found,
        Err(error) => {
            let message = format!("cannot read {}: {error}", folder.display());
            return Some(Finding::problem("disk", message));
        }
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let size = fs::metadata(file).map_or(0, |file| file.len());
    let (mib, of) = (free >> 20, size >> 20);
    Some(if free < FREE_MIN {
        Finding::problem(
            "disk",
            format!("{mib} MiB free; the server refuses new jobs on a full disk"),
        )
    } else if free < size {
        Finding::warning(
            "disk",
            format!("{mib} MiB free; a backup on this disk needs up to {of} MiB"),
        )
    } else {
        Finding::ok("disk", format!("{mib} MiB free; the database has {of} MiB"))
    })
}
