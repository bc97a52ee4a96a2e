//! Starts servers as child processes and measures their resources.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::Result;
use super::log::Log;

/// Running servers on one database. Dropping this value stops them.
pub struct Target {
    pub name: String,
    servers: Vec<Server>,
    /// The main process of the database, if the database is a server.
    database: Option<u32>,
    ticks_per_s: f64,
    /// The script that clients of the Redis protocol load.
    script: String,
    log: Log,
    _folder: Option<TempDir>,
}

struct Server {
    child: Child,
    /// `host:port`.
    address: String,
    /// `host:port` of the listener for the Redis protocol; empty if there is none.
    redis: String,
}

impl Target {
    /// Starts this program as the floor.
    pub fn floor() -> Result<Target> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--floor");
        let target = Target::new("floor", None, None);
        target.start(command)
    }

    /// Starts a server with a new SQLite database.
    pub fn server(program: Option<&Path>, durability: &str) -> Result<Target> {
        // In the build folder, because the system's temporary folder may be in memory, where `full` costs nothing.
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
        let file = folder.path().join("jobs.db");
        let database = format!("sqlite://{}", file.display());
        let command = serve(program, &database, durability)?;
        let mut target = Target::new(durability, Some(folder), None).start(command)?;
        target.log = Log::of_file(&file)?;
        Ok(target)
    }

    /// Starts `servers` servers on a new database of the PostgreSQL that `scripts/postgres.sh` started.
    pub fn postgres(program: Option<&Path>, servers: usize) -> Result<Target> {
        let missing = "run this with scripts/postgres.sh";
        let address = std::env::var("SWITCHYARD_TEST_POSTGRES").map_err(|_| missing)?;
        let data = std::env::var("SWITCHYARD_TEST_POSTGRES_DATA").map_err(|_| missing)?;
        let pid = std::fs::read_to_string(Path::new(&data).join("postmaster.pid"))?;
        let pid = pid.lines().next().ok_or("no process")?.parse()?;
        let name = format!("load{servers}");
        let made = Command::new("createdb")
            .arg(format!("--maintenance-db={address}/postgres"))
            .arg(&name)
            .status()?;
        if !made.success() {
            return Err("cannot create the database".into());
        }
        let title = format!(
            "postgres, {servers} server{}",
            if servers == 1 { "" } else { "s" }
        );
        let mut target = Target::new(&title, None, Some(pid));
        target.log = Log::Postgres(format!("{address}/{name}"));
        for _ in 0..servers {
            target = target.start(serve(program, &format!("{address}/{name}"), "full")?)?;
        }
        Ok(target)
    }

    /// Starts a Redis with this script of qless-core. It writes each command to its log; `policy` says when the log
    /// reaches the disk.
    pub fn redis_server(script: &Path, policy: &str) -> Result<Target> {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"])
            .args(["--port", &port.to_string(), "--appendfsync", policy])
            .args([Path::new("--dir"), folder.path()])
            .stdout(Stdio::null())
            .spawn()?;
        let address = format!("127.0.0.1:{port}");
        while std::net::TcpStream::connect(&address).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut target = Target::new(&format!("Redis, {policy}"), Some(folder), None);
        target.script = std::fs::read_to_string(script)?;
        target.servers.push(Server {
            child,
            address: address.clone(),
            redis: address,
        });
        Ok(target)
    }

    /// Starts `switchyard dev` with `jobs` generated jobs of all protocols and continuous traffic.
    pub fn generated(program: Option<&Path>, jobs: usize) -> Result<Target> {
        let mut command = Command::new(server(program)?);
        command.args([
            "dev",
            "--listen",
            "127.0.0.1:0",
            "--jobs",
            &jobs.to_string(),
        ]);
        let filled = format!("added all {jobs} generated jobs");
        Target::new("generated jobs", None, None).start_and_wait_for_line(command, &filled)
    }

    fn new(name: &str, folder: Option<TempDir>, database: Option<u32>) -> Target {
        Target {
            name: name.to_owned(),
            servers: Vec::new(),
            database,
            ticks_per_s: ticks_per_s(),
            script: "local QlessAPI = {}".to_owned(),
            log: Log::None,
            _folder: folder,
        }
    }

    fn start(self, command: Command) -> Result<Target> {
        self.start_and_wait_for_line(command, "")
    }

    /// Starts a server and waits until it has printed its address and then the line `last`, unless that is empty.
    fn start_and_wait_for_line(mut self, mut command: Command, last: &str) -> Result<Target> {
        let mut child = command
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(output).lines();
        let address = lines
            .by_ref()
            .map_while(std::result::Result::ok)
            .find_map(|line| {
                let (_, address) = line.split_once("listening on http://")?;
                Some(address.split(['/', ' ']).next()?.to_owned())
            })
            .ok_or_else(|| format!("{} did not print its address", self.name))?;
        let serves_redis = command.get_args().any(|it| it == "--redis-listen");
        let mut redis = String::new();
        while serves_redis && redis.is_empty() {
            let line = lines.next().ok_or("the server ended")??;
            if let Some((_, address)) = line.split_once("redis://") {
                redis = address.split(' ').next().unwrap_or_default().to_owned();
            }
        }
        let mut is_printed = last.is_empty();
        while !is_printed {
            let line = lines.next().ok_or("the server ended")??;
            is_printed = line == last;
        }
        // Reads further output, so that the pipe does not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        self.servers.push(Server {
            child,
            address,
            redis,
        });
        Ok(self)
    }

    /// Whether there is only one server.
    pub fn is_alone(&self) -> bool {
        self.servers.len() == 1
    }

    /// The server address for this connection. Connections are distributed over the servers.
    pub fn address(&self, connection: usize) -> Result<&str> {
        let server = self.servers.get(connection % self.servers.len().max(1));
        Ok(&server.ok_or("no server")?.address)
    }

    /// The address for this connection over the Redis protocol.
    pub fn redis(&self, connection: usize) -> Result<&str> {
        let server = self.servers.get(connection % self.servers.len().max(1));
        Ok(&server.ok_or("no server")?.redis)
    }

    pub fn script(&self) -> &str {
        &self.script
    }

    /// User and system time of all servers and their database so far.
    pub fn cpu(&self) -> Result<Duration> {
        let mut ticks = 0.0;
        for server in &self.servers {
            ticks += times(server.child.id())?.own;
        }
        if let Some(database) = self.database {
            let first = times(database)?;
            ticks += first.own + first.ended;
            let processes = processes_of(database)?;
            ticks += processes.map(|(_, times)| times.own).sum::<f64>();
        }
        Ok(Duration::from_secs_f64(ticks / self.ticks_per_s))
    }

    /// Waits this long. Returns the bytes that the database wrote to its log meanwhile.
    pub async fn log_written(&self, during: Duration) -> Result<f64> {
        self.log.written(during).await
    }

    /// The process IDs of the servers and of their database, separated by commas.
    pub fn pids(&self) -> Result<String> {
        let mut pids: Vec<u32> = self.servers.iter().map(|it| it.child.id()).collect();
        if let Some(database) = self.database {
            pids.push(database);
            pids.extend(processes_of(database)?.map(|(pid, _)| pid));
        }
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        Ok(pids.join(","))
    }

    /// Resident memory of all servers, without their database, in megabytes.
    pub fn memory_mb(&self) -> Result<f64> {
        let mut sum = 0.0;
        for server in &self.servers {
            let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id()))?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kilobytes = line.and_then(|line| line.split_whitespace().next());
            sum += kilobytes.ok_or("no memory")?.parse::<f64>()? / 1e3;
        }
        Ok(sum)
    }
}

/// The command that starts the server.
fn serve(program: Option<&Path>, database: &str, durability: &str) -> Result<Command> {
    let mut command = Command::new(server(program)?);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--no-auth"])
        .args(["--redis-listen", "127.0.0.1:0"])
        .args(["--durability", durability, "--database", database]);
    Ok(command)
}

/// Facts about a process from `/proc`. Times are in ticks.
struct Times {
    parent: u32,
    own: f64,
    /// Time of the children that have ended.
    ended: f64,
}

/// The processes that this one has started and that run, and their times.
fn processes_of(parent: u32) -> Result<impl Iterator<Item = (u32, Times)>> {
    let all = std::fs::read_dir("/proc")?.filter_map(std::result::Result::ok);
    let pids = all.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    let known = pids.filter_map(|pid| Some((pid, times(pid).ok()?)));
    Ok(known.filter(move |(_, times)| times.parent == parent))
}

fn times(pid: u32) -> Result<Times> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses is followed by the state, the parent, nine numbers, and the times (proc(5)).
    let (_, fields) = stat.rsplit_once(')').ok_or("no stat")?;
    let mut fields = fields.split_whitespace().skip(1);
    let parent = fields.next().ok_or("no parent")?.parse()?;
    let mut times = fields.skip(9).map(str::parse::<f64>);
    let mut next = || times.next().ok_or("no times");
    Ok(Times {
        parent,
        own: next()?? + next()??,
        ended: next()?? + next()??,
    })
}

impl Drop for Target {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // Ignores errors, because the process may have ended already.
            server.child.kill().ok();
            server.child.wait().ok();
        }
    }
}

fn server(program: Option<&Path>) -> Result<PathBuf> {
    program.map_or_else(built, |program| Ok(program.to_owned()))
}

/// The release server of the same build, in the parent folder of this program's `deps`.
fn built() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().and_then(Path::parent).ok_or("no folder")?;
    let server = folder.join("switchyard");
    if server.is_file() {
        return Ok(server);
    }
    Err(format!(
        "{} does not exist; `make build` builds it",
        server.display()
    )
    .into())
}

/// Ticks per second of the times in `/proc`, 100 on nearly all systems.
fn ticks_per_s() -> f64 {
    let output = Command::new("getconf").arg("CLK_TCK").output();
    output
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok()?.trim().parse().ok())
        .unwrap_or(100.0)
}
