//! Copies of open databases, as a crash would leave them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Copies an SQLite file that is open. The copy is what a crash at this moment would leave.
pub fn crash_copy(from: &Path, to: &Path) {
    // The log first: it then contains everything that a checkpoint moves to the database during the copy.
    for suffix in ["-wal", ""] {
        let name = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        match std::fs::copy(name(from), name(to)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            copied => drop(copied.unwrap()),
        }
    }
}
