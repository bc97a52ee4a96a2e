//! Disk space set aside beside an SQLite file, so that a full disk does not stop claims, completions and deletes.
//!
//! The reserve is a file that holds nothing. When SQLite finds the disk full the file is removed, and the server
//! refuses new jobs. It accepts them again once the file can be allocated again with as much room to spare.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Sizes of the reserve in bytes. On a small disk the first is used that leaves as much again free.
const BYTES: [u64; 4] = [32 << 20, 16 << 20, 8 << 20, 4 << 20];

/// How often a full disk is checked for space.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The reserve of one database file.
#[derive(Debug)]
pub struct Reserve {
    path: PathBuf,
    /// Its size.
    bytes: u64,
    /// Since when the reserve has been released, or when the disk was checked last.
    released: Option<Instant>,
}

impl Reserve {
    /// Allocates the reserve of the database at `path`, unless it is there from before.
    pub fn of(path: &Path) -> Reserve {
        let mut reserve = Reserve::at(path);
        let file = std::fs::metadata(&reserve.path);
        let found = file.map_or(0, |file| file.len());
        if BYTES.contains(&found) {
            reserve.bytes = found;
        } else if let Some(bytes) = BYTES.into_iter().find(|bytes| reserve.fill(*bytes, *bytes)) {
            reserve.bytes = bytes;
        } else {
            tracing::error!("the disk is full; new jobs are refused");
            reserve.released = Some(Instant::now());
        }
        reserve
    }

    /// Removes what a server has left beside the database at `path`. True if that gives space back.
    pub fn give_up(path: &Path) -> bool {
        Reserve::at(path).remove()
    }

    fn at(path: &Path) -> Reserve {
        let mut name = path.as_os_str().to_owned();
        name.push(".reserve");
        Reserve {
            path: PathBuf::from(name),
            bytes: BYTES.into_iter().min().unwrap_or_default(),
            released: None,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_released(&self) -> bool {
        self.released.is_some()
    }

    /// Gives the space to the database. False if it was given before.
    pub fn release(&mut self) -> bool {
        if self.released.is_some() {
            return false;
        }
        self.remove();
        self.released = Some(Instant::now());
        true
    }

    /// Whether it is time to try [`Reserve::restore`].
    pub fn is_check_due(&self) -> bool {
        self.released.is_some_and(|at| at.elapsed() >= CHECK_EVERY)
    }

    /// Sets space aside again, if that leaves as much for the database: on the disk, or in the `spare` bytes of its
    /// file that hold nothing.
    pub fn restore(&mut self, spare: u64) {
        let more = self.bytes.saturating_sub(spare);
        self.released = (!self.fill(self.bytes, more)).then(Instant::now);
    }

    fn remove(&self) -> bool {
        std::fs::remove_file(&self.path).is_ok()
    }

    /// Allocates `bytes` of disk, if there are `more` besides.
    fn fill(&self, bytes: u64, more: u64) -> bool {
        let filled = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            let file = options.open(&self.path)?;
            allocate(&file, bytes + more)?;
            file.set_len(bytes)
        };
        let filled = filled().is_ok();
        if !filled {
            self.remove();
        }
        filled
    }
}

/// Takes disk blocks for the first `bytes` of the file.
#[cfg(target_os = "linux")]
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;

    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP) => write_zeros(file, bytes),
        outcome => Ok(outcome?),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    write_zeros(file, bytes)
}

fn write_zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut file)?;
    file.sync_data()
}
