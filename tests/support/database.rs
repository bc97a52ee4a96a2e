//! The database of a test: an SQLite file, or with `SWITCHYARD_TEST_POSTGRES` a database of that server
//! (`scripts/postgres.sh`).

use std::path::Path;
use std::process::Command;

// The path is explicit because two test programs include this file in different ways.
#[path = "slots.rs"]
mod slots;

/// The address of the PostgreSQL server, if the tests run on PostgreSQL.
pub fn postgres() -> Option<String> {
    std::env::var("SWITCHYARD_TEST_POSTGRES").ok()
}

/// The address of the database for this path: the file, or a PostgreSQL database that belongs to this path until the
/// process ends. A PostgreSQL database has all tables, and they are empty at first.
pub fn address(path: &Path) -> String {
    match (postgres(), slots::template()) {
        (None, _) => file(path),
        (Some(server), Some(template)) => slots::address(&server, &template, path),
        (Some(server), None) => created(&server, path),
    }
}

/// The address of this file.
pub fn file(path: &Path) -> String {
    format!("sqlite://{}", path.display())
}

/// The address of a PostgreSQL database without tables, named after this path. Creates it unless it exists.
pub fn created(server: &str, path: &Path) -> String {
    let name: String = path
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let name = format!("t{}", name.to_lowercase());
    create(server, &name, None);
    format!("{server}/{name}")
}

/// Creates a database unless it exists.
pub fn create(server: &str, name: &str, template: Option<&str>) {
    let mut create = Command::new("createdb");
    create.arg(format!("--maintenance-db={server}/postgres"));
    create.args(template.map(|template| format!("--template={template}")));
    let created = create.arg(name).output().expect("createdb runs");
    let error = String::from_utf8_lossy(&created.stderr);
    assert!(
        created.status.success() || error.contains("already exists"),
        "{error}"
    );
}

/// Additional options of the servers under test.
pub fn options() -> Vec<String> {
    let options = std::env::var("SWITCHYARD_TEST_OPTIONS").unwrap_or_default();
    options.split_whitespace().map(str::to_owned).collect()
}
