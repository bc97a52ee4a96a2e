//! A PostgreSQL server of the test's own, which the test can restart, stop and freeze.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::database;
use super::ports::Port;
use super::server::signal;

/// The address of a new database that several servers can share; `None` if the tests run on SQLite.
pub fn shared_database() -> Option<String> {
    if database::postgres().is_none() {
        println!("not run: it needs PostgreSQL (scripts/postgres.sh)");
        return None;
    }
    // The path is unique, so the database is not shared with other tests.
    let folder = TempDir::new().expect("a folder");
    Some(database::address(folder.path()))
}

/// A running PostgreSQL server. It is stopped when dropped.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    port: Port,
    /// PostgreSQL refuses to run as root, so it runs as the owner of the server that all tests share.
    owner: (u32, u32),
    /// Maximum size of a file, in units of 512 bytes. A write beyond it is truncated, as on a full disk.
    file_max: Option<u32>,
}

impl Postgres {
    /// Starts a server with an empty database; `None` if the tests run on SQLite.
    pub fn start() -> Option<Postgres> {
        Postgres::with_files_up_to(None)
    }

    /// Starts a server whose files cannot grow beyond this size, in units of 512 bytes.
    pub fn with_files_up_to(file_max: Option<u32>) -> Option<Postgres> {
        let Ok(other) = std::env::var("SWITCHYARD_TEST_POSTGRES_DATA") else {
            println!("not run: it needs PostgreSQL (scripts/postgres.sh)");
            return None;
        };
        let other = fs::metadata(other).expect("the data of the shared one");
        let owner = (other.uid(), other.gid());
        let folder = TempDir::new().expect("a folder for the data");
        chown(folder.path(), Some(owner.0), Some(owner.1)).expect("the folder can be given away");
        let postgres = Postgres {
            folder,
            port: Port::reserve(),
            owner,
            file_max,
        };
        let data = postgres.data();
        let mut made = postgres.program("initdb");
        made.arg("-D").arg(data).args(["-U", "switchyard", "-A"]);
        run(made.args(["trust", "-E", "UTF8", "--locale=C", "--no-sync"]));
        postgres.start_again();
        Some(postgres)
    }

    /// The address of its database.
    pub fn address(&self) -> String {
        let port = self.port.number;
        format!("postgres://switchyard@127.0.0.1:{port}/postgres")
    }

    /// Starts it after [`Postgres::stop`].
    pub fn start_again(&self) {
        self.control(&["start"]);
    }

    /// Stops the server as a crash would.
    pub fn stop(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    /// Stops the server as a crash would, and starts it again.
    pub fn restart(&self) {
        self.control(&["-m", "immediate", "restart"]);
    }

    /// Stops all processes (SIGSTOP): the system accepts connections, but the server does not respond.
    pub fn freeze(&self) {
        // Stops the postmaster first, so that it starts no more children.
        signal("STOP", self.first());
        for child in self.children() {
            signal("STOP", child);
        }
    }

    /// Continues all processes (SIGCONT).
    pub fn thaw(&self) {
        for child in self.children() {
            signal("CONT", child);
        }
        signal("CONT", self.first());
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.current_dir("/");
        if fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
            command.uid(self.owner.0).gid(self.owner.1);
        }
        command
    }

    fn control(&self, what: &[&str]) {
        let folder = self.folder.path().display();
        let options = format!(
            "-p {} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off",
            self.port.number
        );
        let mut command = match self.file_max {
            None => self.program("pg_ctl"),
            Some(max) => {
                let mut limited = self.program("sh");
                let script = format!("ulimit -f {max} && exec pg_ctl \"$@\"");
                limited.args(["-c", &script, "sh"]);
                limited
            }
        };
        command.arg("-D").arg(self.data()).args(["-s", "-w", "-o"]);
        command.arg(options).arg("-l");
        run(command.arg(self.folder.path().join("log")).args(what));
    }

    /// The process ID of the postmaster.
    fn first(&self) -> u32 {
        let pid = fs::read_to_string(self.data().join("postmaster.pid")).expect("it runs");
        let first = pid.lines().next().and_then(|line| line.parse().ok());
        first.expect("a process")
    }

    fn children(&self) -> Vec<u32> {
        let first = self.first();
        let processes = fs::read_dir("/proc").expect("a list of processes");
        let children = processes.filter_map(|entry| {
            let entry = entry.ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name of the program, in parentheses, can contain any characters.
            let parent: u32 = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
            let id = entry.file_name().to_str()?.parse().ok()?;
            (parent == first).then_some(id)
        });
        children.collect()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut stop = self.program("pg_ctl");
        stop.arg("-D").arg(self.data());
        if self.data().join("postmaster.pid").exists() {
            self.thaw();
            stop.args(["-s", "-m", "immediate", "stop"]).status().ok();
        }
    }
}

/// Discards the output: the server that `pg_ctl` starts would keep a pipe open.
fn run(command: &mut Command) {
    let status = command.stdout(std::process::Stdio::null()).status();
    let status = status.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
