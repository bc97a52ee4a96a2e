//! Notices that the files of the database were deleted or replaced while they are open. SQLite would continue to write
//! to the files that it has opened, and a restart would not find what it wrote.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Dev, stat};

use crate::store::StoreError;
use crate::store::file::with_suffix;

/// The database and its write-ahead log.
pub struct Files {
    database: Opened,
    log: Opened,
}

struct Opened {
    /// As the system call expects it, because each commit checks it.
    path: CString,
    /// Device and inode; `None` until the file exists. SQLite creates the log at the first write.
    id: Option<(Dev, u64)>,
}

impl Files {
    /// The files of the database that was just opened at `path`.
    pub fn of(path: &Path) -> Files {
        let log = with_suffix(path, "-wal");
        let mut database = Opened::at(path);
        // Remembers the device and inode.
        database.is_unchanged();
        Files {
            database,
            log: Opened::at(Path::new(&log)),
        }
    }

    /// # Errors
    /// [`StoreError::Lost`] if another file, or none, has the name of a file that was opened.
    pub fn check(&mut self) -> Result<(), StoreError> {
        let is_database = self.database.is_unchanged();
        if is_database && self.log.is_unchanged() {
            return Ok(());
        }
        Err(StoreError::Lost(match is_database {
            false => "the database file was deleted or replaced while the server was using it",
            true => "the write-ahead log was deleted or replaced while the server was using it",
        }))
    }
}

impl Opened {
    /// A path with a NUL names no file, so the database could not be opened.
    fn at(path: &Path) -> Opened {
        Opened {
            path: CString::new(path.as_os_str().as_bytes()).unwrap_or_default(),
            id: None,
        }
    }

    /// Whether the path has the file that it had at the first call that found one.
    fn is_unchanged(&mut self) -> bool {
        let found = stat(self.path.as_c_str()).ok();
        let found = found.map(|file| (file.st_dev, file.st_ino));
        if self.id.is_none() {
            self.id = found;
        }
        self.id == found
    }
}
