//! A disk that records what a server writes to an SQLite database (`disk.c`), can be replayed up to a loss of power,
//! and fails on request.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::Server;
use super::random::Random;

/// The unit that is written completely or not at all before a loss of power.
const SECTOR: usize = 512;

/// A database on a recorded disk.
pub struct Disk {
    folder: TempDir,
}

impl Disk {
    /// A disk with a new database, which has all tables and is synchronized.
    pub async fn new() -> Disk {
        let folder = TempDir::new().unwrap();
        let disk = Disk { folder };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/disk.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(disk.path("disk.so"))
            .args([source, "-ldl"])
            .status()
            .expect("a C compiler runs");
        assert!(compiled.success());
        Server::on(&disk.database(), &[]).stop().await;
        fs::copy(disk.database(), disk.path("before.db")).unwrap();
        disk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn database(&self) -> PathBuf {
        self.path("jobs.db")
    }

    /// Starts a server on the database, and records what it writes.
    pub fn server(&self, options: &[&str]) -> Server {
        let address = format!("sqlite://{}", self.database().display());
        let mut command = Server::command(&address, options);
        command
            .env("LD_PRELOAD", self.path("disk.so"))
            .env("DISK_FILE", self.database())
            .env("DISK_LOG", self.path("log"))
            .env("DISK_FAULT", self.path("fault"));
        Server::run(command)
    }

    /// From now on, this call fails: `fsync` or `write`.
    pub fn fail(&self, call: &str) {
        fs::write(self.path("fault"), call).unwrap();
    }

    /// From now on, no call fails.
    pub fn repair(&self) {
        fs::remove_file(self.path("fault")).unwrap();
    }

    /// The size of the records of all calls that have ended.
    pub fn position(&self) -> u64 {
        fs::metadata(self.path("log")).map_or(0, |log| log.len())
    }

    /// The calls so far.
    pub fn records(&self) -> Vec<Record> {
        let bytes = fs::read(self.path("log")).unwrap();
        let (mut records, mut rest) = (Vec::new(), bytes.as_slice());
        while let Some((header, after)) = rest.split_first_chunk::<32>() {
            let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
            let length = usize::try_from(number(24)).unwrap();
            // The server may have been killed in the middle of a record.
            let Some((data, after)) = after.split_at_checked(length) else {
                break;
            };
            rest = after;
            let offset = usize::try_from(number(16)).unwrap();
            records.push(Record {
                file: usize::try_from(number(8)).unwrap(),
                call: match number(0) {
                    1 => Call::Write(offset, data.to_vec()),
                    2 => Call::Truncate(offset),
                    _ => Call::Sync,
                },
                end: (bytes.len() - rest.len()) as u64,
            });
        }
        records
    }

    /// Writes to `folder` what a loss of power after these calls leaves: everything that was synchronized, and of each
    /// later write everything, nothing, or some sectors.
    pub fn after_power_loss(
        &self,
        records: &[Record],
        random: &mut Random,
        folder: &Path,
    ) -> PathBuf {
        let database = fs::read(self.path("before.db")).unwrap();
        let mut files = [(database, Vec::new()), (Vec::new(), Vec::new())];
        for record in records {
            let (bytes, pending) = &mut files[record.file];
            pending.push(&record.call);
            if matches!(record.call, Call::Sync) {
                for call in pending.drain(..) {
                    call.apply(bytes, |_| true);
                }
            }
        }
        let path = folder.join("jobs.db");
        for ((mut bytes, pending), path) in files
            .into_iter()
            .zip([path.clone(), folder.join("jobs.db-wal")])
        {
            for call in pending {
                match random.index(3) {
                    0 => {}
                    1 => call.apply(&mut bytes, |_| true),
                    _ => call.apply(&mut bytes, |_| random.index(2) == 0),
                }
            }
            fs::write(path, bytes).unwrap();
        }
        path
    }
}

/// A call that has ended.
pub struct Record {
    /// 0 is the database, 1 its write-ahead log.
    file: usize,
    call: Call,
    /// The size of the records up to this one.
    pub end: u64,
}

enum Call {
    Write(usize, Vec<u8>),
    Truncate(usize),
    Sync,
}

impl Call {
    /// Repeats the call for these sectors.
    fn apply(&self, bytes: &mut Vec<u8>, mut is_written: impl FnMut(usize) -> bool) {
        match self {
            Call::Write(offset, data) => {
                let end = offset + data.len();
                let mut at = *offset;
                while at < end {
                    let next = (at / SECTOR + 1).saturating_mul(SECTOR).min(end);
                    if is_written(at / SECTOR) {
                        if bytes.len() < next {
                            bytes.resize(next, 0);
                        }
                        bytes[at..next].copy_from_slice(&data[at - offset..next - offset]);
                    }
                    at = next;
                }
            }
            Call::Truncate(length) => {
                if is_written(length / SECTOR) {
                    bytes.resize(*length, 0);
                }
            }
            Call::Sync => {}
        }
    }
}
