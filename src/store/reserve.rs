//! Disk space reserved next to an SQLite file, so that a full disk does not stop claims, completions and deletes.
//!
//! The reserve is a file of allocated, unused blocks. When the disk is full, the server removes it and rejects new jobs
//! until it can allocate the file again with the same amount of space left over.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::file::with_suffix;

/// Sizes of the reserve, in bytes. The first that leaves the same amount of space free is used.
const BYTES: [u64; 4] = [32 << 20, 16 << 20, 8 << 20, 4 << 20];

/// Opening a link fails, because others may have created it in a folder that they can write to.
const NO_LINKS: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// How often a full disk is checked for space.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The reserve of one database file.
#[derive(Debug)]
pub struct Reserve {
    path: PathBuf,
    /// Size of the reserve.
    bytes: u64,
    /// When the reserve was released, or the disk was last checked since; `None` while the reserve exists.
    released: Option<Instant>,
}

impl Reserve {
    /// Allocates the reserve of the database at `path`, unless it exists. Replaces a link, without writing to its file.
    pub fn allocate(path: &Path) -> Reserve {
        let mut reserve = Reserve::at(path);
        let file = std::fs::symlink_metadata(&reserve.path);
        if file.as_ref().is_ok_and(|file| !file.is_file()) {
            reserve.remove();
        }
        let found = file.map_or(0, |file| if file.is_file() { file.len() } else { 0 });
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

    /// Removes the reserve that an earlier server left next to the database at `path`. Returns whether one existed.
    pub fn remove_left_over(path: &Path) -> bool {
        Reserve::at(path).remove()
    }

    fn at(path: &Path) -> Reserve {
        Reserve {
            path: with_suffix(path, ".reserve"),
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

    /// Removes the reserve, so that the database can use its space. False if it was released before.
    pub fn release(&mut self) -> bool {
        if self.released.is_some() {
            return false;
        }
        self.remove();
        self.released = Some(Instant::now());
        true
    }

    /// Whether [`Reserve::restore`] is due.
    pub fn is_check_due(&self) -> bool {
        self.released.is_some_and(|at| at.elapsed() >= CHECK_EVERY)
    }

    /// Allocates the reserve again if that leaves the same amount of space for the database, on the disk or in the
    /// `spare` unused bytes of its file.
    pub fn restore(&mut self, spare: u64) {
        let headroom = self.bytes.saturating_sub(spare);
        self.released = (!self.fill(self.bytes, headroom)).then(Instant::now);
    }

    fn remove(&self) -> bool {
        std::fs::remove_file(&self.path).is_ok()
    }

    /// Allocates `bytes` of disk if `headroom` bytes are available beyond them.
    fn fill(&self, bytes: u64, headroom: u64) -> bool {
        let filled = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            let options = options.custom_flags(NO_LINKS);
            let file = options.open(&self.path)?;
            allocate_blocks(&file, bytes + headroom)?;
            file.set_len(bytes)
        };
        let filled = filled().is_ok();
        if !filled {
            self.remove();
        }
        filled
    }
}

/// Allocates disk blocks for the first `bytes` of the file.
#[cfg(target_os = "linux")]
fn allocate_blocks(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;

    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP) => write_zeros(file, bytes),
        outcome => Ok(outcome?),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate_blocks(file: &File, bytes: u64) -> io::Result<()> {
    write_zeros(file, bytes)
}

fn write_zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut file)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use std::fs::{read, symlink_metadata, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_is_replaced_and_its_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (database, kept) = (folder.path().join("jobs.db"), folder.path().join("kept"));
        let link = folder.path().join("jobs.db.reserve");
        write(&kept, "text of somebody").unwrap();
        symlink(&kept, &link).unwrap();
        let reserve = Reserve::allocate(&database);
        assert!(!reserve.is_released());
        let found = symlink_metadata(&link).unwrap();
        assert!(found.is_file() && found.len() == reserve.bytes());
        assert_eq!(read(&kept).unwrap(), b"text of somebody");
        // A link that appears later is not followed either.
        std::fs::remove_file(&link).unwrap();
        symlink(&kept, &link).unwrap();
        assert!(!reserve.fill(4096, 0));
        assert_eq!(read(&kept).unwrap(), b"text of somebody");
    }
}
