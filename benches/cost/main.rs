//! The cost gate: detects changes that slow down the hot path. It counts the instructions of requests with Valgrind's
//! callgrind, because counts do not depend on the load of the machine.
//!
//! The program runs itself under callgrind, with the whole server on one thread (SQLite has its own), a temporary
//! SQLite file, and requests over loopback. Callgrind writes a profile at each call of [`boundary`]; every second one
//! covers exactly one section. A figure more than 3 % above the one in `benches/cost/figures.tsv` fails.
//!
//! `make cost`; `make cost ARGS=--accept` writes the figures of this run into the file.

#[expect(dead_code, reason = "the load program uses all of it")]
#[path = "../load/client.rs"]
mod client;
mod figures;
mod sections;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, fs};

use figures::Figures;

pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The committed figures.
const FIGURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/cost/figures.tsv");

/// Settings of glibc that make copies of memory cost the same on all processors with AVX2. By default, glibc chooses
/// between vector instructions and `rep movsb` by the model of the processor, and callgrind counts them differently.
const GLIBC_TUNABLES: &str =
    "glibc.cpu.hwcaps=-ERMS:glibc.cpu.x86_non_temporal_threshold=1073741824";

/// The argument with which the program runs itself under callgrind.
const RUN: &str = "--run";

/// Writes the figures instead of comparing them.
const ACCEPT: &str = "--accept";

fn main() -> ExitCode {
    let argument = env::args().nth(1);
    let outcome = match argument.as_deref() {
        Some(RUN) => sections::run().map(|()| true),
        None => gate(false),
        Some(ACCEPT) => gate(true),
        Some(other) => Err(format!("unknown argument {other}; known is {ACCEPT}").into()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("cost: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Callgrind writes a profile at each call of this function.
#[inline(never)]
pub fn boundary() {
    std::hint::black_box(());
}

/// Counts, and compares or accepts the figures. Returns false if a section costs too much.
fn gate(accept: bool) -> Result<bool> {
    let counted = count()?;
    if accept {
        fs::write(FIGURES, counted.to_string())?;
        println!("{counted}written to {FIGURES}");
        return Ok(true);
    }
    let committed = Figures::read(&fs::read_to_string(FIGURES)?)?;
    if counted.compare(&committed) {
        return Ok(true);
    }
    // A run can need 4 % more than another: the seeds of hash maps and the addresses of memory are random, and tasks in
    // the background run in between.
    let mut lowest = counted;
    for _ in 0..COUNTED_AGAIN {
        println!("counting again");
        lowest = lowest.lowest(&count()?);
        if lowest.compare(&committed) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How often the figures are counted again if a section costs too much.
const COUNTED_AGAIN: usize = 3;

/// How often the sections run. The lowest count is used, because interference between threads only increases a count.
const RUNS: usize = 2;

/// Runs the sections under callgrind, [`RUNS`] times concurrently.
fn count() -> Result<Figures> {
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..RUNS)
            .map(|_| scope.spawn(|| count_once().map_err(|error| error.to_string())))
            .collect();
        let counts = runs.into_iter().map(|run| {
            run.join()
                .map_err(|_| "a run panicked")?
                .map_err(Into::into)
        });
        let lowest = counts.reduce(|lowest: Result<Figures>, count| Ok(lowest?.lowest(&count?)));
        lowest.ok_or("no run")?
    })
}

fn count_once() -> Result<Figures> {
    let folder = tempfile::TempDir::new()?;
    let profile = folder.path().join("profile");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--dump-before=*::boundary*"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(env::current_exe()?)
        .arg(RUN)
        .env("GLIBC_TUNABLES", GLIBC_TUNABLES)
        .output()
        .map_err(|error| format!("valgrind does not run: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the run failed: {}\n{printed}{errors}", output.status).into());
    }
    let mut figures = Vec::new();
    for (number, section) in printed.lines().enumerate() {
        let (name, operations) = section
            .split_once('\t')
            .ok_or_else(|| format!("not a section: {section}"))?;
        // Profiles are numbered from 1. The one before each section's covers its preparation.
        let profile = format!("{}.{}", profile.display(), 2 * number + 2);
        let instructions = total(Path::new(&profile))?;
        figures.push((name.to_owned(), instructions / operations.parse::<u64>()?));
    }
    Ok(Figures::of_this_compiler(figures))
}

/// The number of instructions in a profile.
fn total(profile: &Path) -> Result<u64> {
    let text = fs::read_to_string(profile)
        .map_err(|error| format!("no profile {}: {error}", profile.display()))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total = total.ok_or_else(|| format!("no total in {}", profile.display()))?;
    Ok(total.trim().parse()?)
}
