//! An SQLite database with all tables and no rows, which new servers of tests begin with: creating the tables takes
//! longer than most tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;

use super::{Server, database};

/// Copies the template to this path, unless there is a file or the tests run on PostgreSQL.
pub fn copy_to(path: &Path) {
    if database::postgres().is_none() && !path.exists() {
        fs::copy(template(), path).expect("a copy of the template");
    }
}

/// The file of the template, created by the first test that needs it after the program was compiled.
fn template() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let template = folder.join("template.db");
    let program = modified(&Server::path()).expect("the program exists");
    if modified(&template).is_none_or(|created| created <= program) {
        // Other processes may do the same: each has its own file, and the last one replaces the others.
        let own = TempDir::new_in(folder).expect("a folder");
        let file = own.path().join("jobs.db");
        let mut create = Server::program();
        create.args(["token", "list", "--database", &database::file(&file)]);
        let created = create.output().expect("the program runs");
        assert!(created.status.success(), "{created:?}");
        fs::rename(file, &template).expect("the template");
    }
    template
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
