//! A server as a child process of its own, and what it uses.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::Result;

/// A running server. It ends with this value.
pub struct Target {
    pub name: String,
    /// `host:port`.
    pub address: String,
    child: Child,
    ticks_per_s: f64,
    _folder: Option<TempDir>,
}

impl Target {
    /// This program, as the floor.
    pub fn floor() -> Result<Target> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--floor");
        Target::start("floor", command, None)
    }

    /// The server with a database of its own.
    pub fn server(program: Option<&Path>, durability: &str) -> Result<Target> {
        // Beside the build, because a temporary folder may be in memory, where `full` costs nothing.
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
        let program = program.map_or_else(built, |program| Ok(program.to_owned()))?;
        let mut command = Command::new(program);
        command
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--durability",
                durability,
                "--database",
            ])
            .arg(format!(
                "sqlite://{}",
                folder.path().join("jobs.db").display()
            ));
        Target::start(durability, command, Some(folder))
    }

    fn start(name: &str, mut command: Command, folder: Option<TempDir>) -> Result<Target> {
        let mut child = command
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut target = Target {
            name: name.to_owned(),
            address: String::new(),
            child,
            ticks_per_s: ticks_per_s(),
            _folder: folder,
        };
        let mut lines = BufReader::new(output).lines();
        target.address = lines
            .by_ref()
            .map_while(std::result::Result::ok)
            .find_map(|line| {
                let (_, address) = line.split_once("listening on http://")?;
                Some(address.split(['/', ' ']).next()?.to_owned())
            })
            .ok_or_else(|| format!("{name} does not tell its address"))?;
        // What else it prints must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(target)
    }

    /// User and system time of all its threads so far.
    pub fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // After the name in parentheses come the state and ten numbers, then both times (proc(5)).
        let (_, fields) = stat.rsplit_once(')').ok_or("no stat")?;
        let mut ticks = 0.0;
        for field in fields.split_whitespace().skip(11).take(2) {
            ticks += field.parse::<f64>()?;
        }
        Ok(Duration::from_secs_f64(ticks / self.ticks_per_s))
    }

    /// Resident memory in megabytes.
    pub fn memory_mb(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next());
        Ok(kilobytes.ok_or("no memory")?.parse::<f64>()? / 1e3)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // It may be gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The release server of the same build: this program lies in `deps` beside it.
fn built() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().and_then(Path::parent).ok_or("no folder")?;
    let server = folder.join("switchyard");
    if server.is_file() {
        return Ok(server);
    }
    Err(format!("{} is not there; `make build` builds it", server.display()).into())
}

/// The unit of the times in `/proc`, which is a hundredth of a second nearly everywhere.
fn ticks_per_s() -> f64 {
    let asked = Command::new("getconf").arg("CLK_TCK").output();
    asked
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok()?.trim().parse().ok())
        .unwrap_or(100.0)
}
