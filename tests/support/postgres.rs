//! A PostgreSQL server of the test's own, which the test can restart, stop and freeze.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
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
    disk: Disk,
}

/// The disk of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disk {
    Unlimited,
    /// Maximum size of a file, in units of 512 bytes. A write beyond it is truncated, as on a full disk.
    FilesUpTo(u32),
    /// The tablespace of its database is on a file system of this size, in MiB, which only the server can access.
    Tablespace(u32),
}

/// The database on the small tablespace.
const SMALL: &str = "small";

impl Postgres {
    /// Starts a server with an empty database; `None` if the tests run on SQLite.
    pub fn start() -> Option<Postgres> {
        Postgres::with(Disk::Unlimited)
    }

    /// Starts a server whose files cannot grow beyond this size, in units of 512 bytes.
    pub fn with_files_up_to(file_max: u32) -> Option<Postgres> {
        Postgres::with(Disk::FilesUpTo(file_max))
    }

    /// Starts a server with a database in a tablespace of this size, in MiB; `None` also without root, who can mount
    /// one. The server cannot be restarted.
    pub async fn with_tablespace(mib: u32) -> Option<Postgres> {
        if !is_root() {
            println!("not run: it needs root");
            return None;
        }
        let postgres = Postgres::with(Disk::Tablespace(mib))?;
        let address = format!(
            "postgres://switchyard@127.0.0.1:{}/postgres",
            postgres.port.number
        );
        let mut admin = PgConnection::connect(&address).await.expect("it runs");
        let folder = postgres.tablespace_folder();
        for sql in [
            format!("CREATE TABLESPACE {SMALL} LOCATION '{}'", folder.display()),
            format!("CREATE DATABASE {SMALL} TABLESPACE {SMALL}"),
        ] {
            let created = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await;
            created.expect("the tablespace is created");
        }
        Some(postgres)
    }

    fn with(disk: Disk) -> Option<Postgres> {
        let owner = shared_owner()?;
        let postgres = Postgres {
            folder: owned_folder(owner),
            port: Port::reserve(),
            owner,
            disk,
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
        self.address_at(self.port.number)
    }

    /// The address of its database over a proxy on this port.
    pub fn address_at(&self, port: u16) -> String {
        let name = match self.disk {
            Disk::Tablespace(_) => SMALL,
            Disk::Unlimited | Disk::FilesUpTo(_) => "postgres",
        };
        format!("postgres://switchyard@127.0.0.1:{port}/{name}")
    }

    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// Starts a standby of this server. From now on, a commit waits until the standby has it
    /// (`synchronous_standby_names`).
    pub async fn synchronous_standby(&self) -> Postgres {
        let standby = Postgres {
            folder: owned_folder(self.owner),
            port: Port::reserve(),
            owner: self.owner,
            disk: Disk::Unlimited,
        };
        let mut copy = standby.program("pg_basebackup");
        copy.arg("-D").arg(standby.data());
        copy.args(["-h", "127.0.0.1", "-p", &self.port.number.to_string()]);
        copy.args(["-U", "switchyard", "-R", "-X", "stream", "-c", "fast"]);
        run(copy.arg("--no-sync"));
        standby.start_again();
        let mut admin = PgConnection::connect(&self.address()).await.unwrap();
        for sql in [
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "SELECT pg_reload_conf()",
        ] {
            sqlx::raw_sql(sql).execute(&mut admin).await.unwrap();
        }
        let synchronous = "SELECT count(*) FROM pg_stat_replication \
                           WHERE sync_state = 'sync' AND state = 'streaming'";
        loop {
            let count = sqlx::query_scalar(synchronous).fetch_one(&mut admin);
            let count: i64 = count.await.unwrap();
            if count == 1 {
                return standby;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Archives the write-ahead log in the folder that this returns, as `docs/postgres.md` says. Restarts the server.
    pub async fn archive_log(&self) -> PathBuf {
        let archive = self.folder.path().join("archive");
        fs::create_dir(&archive).expect("a folder for the archive");
        chown(&archive, Some(self.owner.0), Some(self.owner.1)).expect("the owner can be changed");
        let folder = archive.display();
        let mut admin = PgConnection::connect(&self.address()).await.unwrap();
        for sql in [
            "ALTER SYSTEM SET archive_mode = on".to_owned(),
            format!(
                "ALTER SYSTEM SET archive_command = 'test ! -f {folder}/%f && cp %p {folder}/%f'"
            ),
        ] {
            let set = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await;
            set.expect("the settings are changed");
        }
        drop(admin);
        self.restart();
        archive
    }

    /// The current time of the database. All later commits have a later time.
    pub async fn now(&self) -> String {
        let mut admin = PgConnection::connect(&self.address()).await.unwrap();
        let now = "SELECT clock_timestamp()::text FROM pg_sleep(0.01)";
        let now = sqlx::query_scalar(now).fetch_one(&mut admin).await;
        now.expect("a time")
    }

    /// Waits until everything that has been written is archived.
    pub async fn all_archived(&self) {
        let mut admin = PgConnection::connect(&self.address()).await.unwrap();
        let last = "SELECT pg_walfile_name(pg_switch_wal())";
        let last: String = sqlx::query_scalar(last)
            .fetch_one(&mut admin)
            .await
            .unwrap();
        let archived = "SELECT coalesce(last_archived_wal >= $1, false) FROM pg_stat_archiver";
        loop {
            let done = sqlx::query_scalar(archived).bind(&last);
            if done.fetch_one(&mut admin).await.unwrap() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Makes a base backup. [`Postgres::recover`] starts a server on it.
    pub fn base_backup(&self) -> Postgres {
        let backup = Postgres {
            folder: owned_folder(self.owner),
            port: Port::reserve(),
            owner: self.owner,
            disk: Disk::Unlimited,
        };
        let mut copy = backup.program("pg_basebackup");
        copy.arg("-D").arg(backup.data());
        copy.args(["-h", "127.0.0.1", "-p", &self.port.number.to_string()]);
        run(copy.args(["-U", "switchyard", "-c", "fast", "--no-sync"]));
        backup
    }

    /// Starts this base backup, and recovers the changes in the archive up to this time.
    pub async fn recover(&self, archive: &Path, time: &str) {
        let settings = self.data().join("postgresql.auto.conf");
        let mut text = fs::read_to_string(&settings).expect("the settings of the backup");
        text.push_str(&format!(
            "archive_mode = off\nrestore_command = 'cp {}/%f %p'\nrecovery_target_time = '{time}'\n\
             recovery_target_action = 'promote'\n",
            archive.display()
        ));
        fs::write(&settings, text).expect("the settings can be written");
        let signal = self.data().join("recovery.signal");
        fs::write(&signal, "").expect("the signal file can be written");
        chown(&signal, Some(self.owner.0), Some(self.owner.1)).expect("the owner can be changed");
        self.start_again();
        let mut admin = PgConnection::connect(&self.address()).await.unwrap();
        let recovering = "SELECT pg_is_in_recovery()";
        while sqlx::query_scalar(recovering)
            .fetch_one(&mut admin)
            .await
            .unwrap()
        {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Makes a standby the primary server.
    pub fn promote(&self) {
        let mut promote = self.program("pg_ctl");
        promote.arg("-D").arg(self.data());
        run(promote.args(["-s", "-w", "promote"]));
    }

    /// Starts it after [`Postgres::stop`].
    pub fn start_again(&self) {
        self.pg_ctl(&["start"]);
    }

    /// Stops the server as a crash would.
    pub fn stop(&self) {
        self.pg_ctl(&["-m", "immediate", "stop"]);
    }

    /// Stops the server as a crash would, and starts it again.
    pub fn restart(&self) {
        self.pg_ctl(&["-m", "immediate", "restart"]);
    }

    /// Stops all processes (SIGSTOP): the system accepts connections, but the server does not respond.
    pub fn freeze(&self) {
        // Stops the postmaster first, so that it starts no more children.
        signal("STOP", self.postmaster_pid());
        for child in self.children() {
            signal("STOP", child);
        }
    }

    /// Continues all processes (SIGCONT).
    pub fn thaw(&self) {
        for child in self.children() {
            signal("CONT", child);
        }
        signal("CONT", self.postmaster_pid());
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The folder of the small tablespace.
    fn tablespace_folder(&self) -> PathBuf {
        self.folder.path().join("small")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.current_dir("/");
        if is_root() {
            command.uid(self.owner.0).gid(self.owner.1);
        }
        command
    }

    fn pg_ctl(&self, what: &[&str]) {
        let folder = self.folder.path().display();
        let options = format!(
            "-p {} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off",
            self.port.number
        );
        let mut command = match self.disk {
            Disk::Unlimited => self.program("pg_ctl"),
            Disk::FilesUpTo(max) => {
                let mut limited = self.program("sh");
                let script = format!("ulimit -f {max} && exec pg_ctl \"$@\"");
                limited.args(["-c", &script, "sh"]);
                limited
            }
            Disk::Tablespace(mib) => {
                let (uid, gid) = self.owner;
                let script = format!(
                    "mkdir -p \"$0\" && mount -t tmpfs -o size={mib}m,uid={uid},gid={gid},mode=700 tmpfs \"$0\" && \
                     cd / && exec setpriv --reuid={uid} --regid={gid} --clear-groups pg_ctl \"$@\""
                );
                let mut mounted = Command::new("unshare");
                mounted
                    .args(["--mount", "sh", "-c", &script])
                    .arg(self.tablespace_folder());
                mounted
            }
        };
        command.arg("-D").arg(self.data()).args(["-s", "-w", "-o"]);
        command.arg(options).arg("-l");
        run(command.arg(self.folder.path().join("log")).args(what));
    }

    /// The process ID of the postmaster.
    fn postmaster_pid(&self) -> u32 {
        let pid = fs::read_to_string(self.data().join("postmaster.pid")).expect("it runs");
        let first = pid.lines().next().and_then(|line| line.parse().ok());
        first.expect("a process")
    }

    fn children(&self) -> Vec<u32> {
        let first = self.postmaster_pid();
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

/// The user and group of the server that all tests share; `None` if the tests run on SQLite.
pub fn shared_owner() -> Option<(u32, u32)> {
    let Ok(data) = std::env::var("SWITCHYARD_TEST_POSTGRES_DATA") else {
        println!("not run: it needs PostgreSQL (scripts/postgres.sh)");
        return None;
    };
    let data = fs::metadata(data).expect("the data of the shared server");
    Some((data.uid(), data.gid()))
}

/// A folder for the data of a server with this user and group.
pub fn owned_folder(owner: (u32, u32)) -> TempDir {
    let folder = TempDir::new().expect("a folder for the data");
    chown(folder.path(), Some(owner.0), Some(owner.1))
        .expect("the owner of the folder can be changed");
    folder
}

pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
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

/// Runs a command, which must succeed. Discards its output: the server that `pg_ctl` starts would keep a pipe open.
fn run(command: &mut Command) {
    let status = command.stdout(std::process::Stdio::null()).status();
    let status = status.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
