//! Locks on an SQLite file. One server has it open; `switchyard token` and `switchyard doctor` can open it alongside.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::sqlite::Connection;
use super::{BUSY_TIMEOUT, Durability, StoreError};

/// How long a server waits for another process to close the file.
const BRIEF_OPEN_MAX: Duration = Duration::from_secs(2);

/// Delay between attempts to open a file.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The server that has the file open. Holds the path of the file.
#[derive(Debug)]
pub struct FileOwner(PathBuf);

impl FileOwner {
    /// Whether the server has closed the file. Checks by taking the lock and releasing it.
    pub fn has_closed(&self) -> bool {
        lock(&self.0).is_ok()
    }
}

/// Opens the file exclusively. Waits up to 2 s for a process that has it open briefly, such as `switchyard token`.
pub async fn open_exclusive(
    path: &Path,
    durability: Durability,
    scratch: bool,
) -> Result<Connection, StoreError> {
    let until = Instant::now() + BRIEF_OPEN_MAX;
    loop {
        match Connection::open(path, durability, scratch) {
            Err(StoreError::InUse) if Instant::now() < until => sleep(RETRY_DELAY).await,
            opened => return opened,
        }
    }
}

/// Opens the file exclusively, or alongside the server that has it open. Waits up to 5 s for a starting server to run
/// its migrations.
pub async fn open_or_join(path: &Path) -> Result<(Connection, Option<FileOwner>), StoreError> {
    let until = Instant::now() + BUSY_TIMEOUT;
    loop {
        match Connection::open(path, Durability::Full, false) {
            Err(StoreError::InUse) => {}
            opened => return Ok((opened?, None)),
        }
        match Connection::open_alongside(path).await {
            Err(StoreError::OtherVersion) if Instant::now() < until => sleep(RETRY_DELAY).await,
            joined => return Ok((joined?, Some(FileOwner(path.to_owned())))),
        }
    }
}

/// The path of a file beside `path`, such as `switchyard.db-wal`.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Locks the file against other servers, because each server assumes that it is the only writer. Of a link, locks the
/// file that it names, which need not exist yet.
pub fn lock(path: &Path) -> Result<File, StoreError> {
    let file = private(&with_suffix(&resolved(path), ".lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse),
        Err(TryLockError::Error(error)) => Err(StoreError::Database(error.into())),
    }
}

/// Maximum number of links between a path and its file, as on Linux.
const LINKS_MAX: usize = 40;

/// The path without links, whether or not its file exists.
pub fn resolved(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(next) = target.read_link() else { break };
        // A link that is a relative path starts from the link's folder.
        target = folder_of(&target).join(next);
    }
    match (folder_of(&target).canonicalize(), target.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => target,
    }
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Creates the file of a new database, readable by its owner only. SQLite gives its log files the same mode.
pub fn create(path: &Path) -> Result<(), StoreError> {
    // An existing file is not opened, because closing it would release SQLite's POSIX locks on it.
    if !path.exists() {
        private(path)?;
    } else if is_open_to_others(path) {
        let file = path.display();
        tracing::warn!(
            "every user of this machine can access {file}; to prevent this, stop the server and run: chmod o= {file}*"
        );
    }
    Ok(())
}

/// Whether users other than the file's owner and group have access to it.
fn is_open_to_others(path: &Path) -> bool {
    let mode = path
        .metadata()
        .map(|metadata| metadata.permissions().mode());
    mode.is_ok_and(|mode| mode & 0o007 != 0)
}

/// Opens a file, or creates one that only its owner can read.
fn private(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| StoreError::Database(error.into()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions, set_permissions};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn one_server_locks_a_file_under_any_path_before_and_after_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("data")).unwrap();
        symlink("data/jobs.db", path("link.db")).unwrap();
        symlink(path("link.db"), path("link-to-link.db")).unwrap();
        symlink("data", path("folder")).unwrap();
        let paths = [
            "data/jobs.db",
            "link.db",
            "link-to-link.db",
            "folder/jobs.db",
            "data/../data/jobs.db",
        ];
        for exists in [false, true] {
            for first in paths {
                let held = lock(&path(first)).unwrap();
                for second in paths {
                    let refused = matches!(lock(&path(second)), Err(StoreError::InUse));
                    assert!(refused, "{first}, then {second}; exists: {exists}");
                }
                drop(held);
            }
            create(&path("data/jobs.db")).unwrap();
        }
        let files = fs::read_dir(path("data")).unwrap().count();
        assert_eq!(files, 2, "the database and its lock");
    }

    #[test]
    fn a_new_file_is_private_and_an_existing_one_with_access_for_all_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.db");
        create(&path).unwrap();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        for (mode, expected) in [
            (0o600, false),
            (0o640, false),
            (0o660, false),
            (0o644, true),
            (0o602, true),
            (0o666, true),
        ] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_open_to_others(&path), expected, "{mode:o}");
            create(&path).unwrap();
            let kept = path.metadata().unwrap().permissions().mode();
            assert_eq!(kept & 0o777, mode, "the mode stays");
        }
    }
}
