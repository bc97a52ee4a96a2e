//! Notices that the files of the database were deleted or replaced while they are open. SQLite would continue to write to
//! the files that it has opened, and a restart would not find what it wrote.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// The database and its write-ahead log.
pub struct Files {
    database: Opened,
    log: Opened,
}

struct Opened {
    path: PathBuf,
    /// Device and inode; `None` until the file exists. SQLite creates the log at the first write.
    id: Option<(u64, u64)>,
}

impl Files {
    /// The files of the database that was just opened at `path`.
    pub fn of(path: &Path) -> Files {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Files {
            database: Opened {
                path: path.to_owned(),
                id: id(path),
            },
            log: Opened {
                path: log.into(),
                id: None,
            },
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
    fn is_unchanged(&mut self) -> bool {
        let found = id(&self.path);
        if self.id.is_none() {
            self.id = found;
        }
        self.id == found
    }
}

/// Device and inode of a file.
fn id(path: &Path) -> Option<(u64, u64)> {
    let file = fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}
