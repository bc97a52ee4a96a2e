//! Which database a test uses: an SQLite file, or with `SWITCHYARD_TEST_POSTGRES` one of that server
//! (`scripts/postgres.sh`), made for the test.

use std::path::Path;
use std::process::Command;

/// The address of the PostgreSQL server to use, if one is to be used.
pub fn postgres() -> Option<String> {
    std::env::var("SWITCHYARD_TEST_POSTGRES").ok()
}

/// The address of the database that `path` stands for. With Postgres it is made if it is not there.
pub fn address(path: &Path) -> String {
    let template = std::env::var("SWITCHYARD_TEST_POSTGRES_TEMPLATE");
    made(path, template.ok())
}

/// The same, as a copy of the template; without one, with Postgres it has no tables.
pub fn made(path: &Path, template: Option<String>) -> String {
    let Some(server) = postgres() else {
        return format!("sqlite://{}", path.display());
    };
    let name: String = path
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let name = format!("t{}", name.to_lowercase());
    let address = format!("{server}/{name}");
    let mut create = Command::new("createdb");
    create.arg(format!("--maintenance-db={server}/postgres"));
    if let Some(template) = template {
        create.args(["--template", &template]);
    }
    let made = create.arg(&name).output().expect("createdb runs");
    let error = String::from_utf8_lossy(&made.stderr);
    assert!(
        made.status.success() || error.contains("already exists"),
        "{error}"
    );
    address
}

/// Options of the server under test besides those of the test.
pub fn options() -> Vec<String> {
    let options = std::env::var("SWITCHYARD_TEST_OPTIONS").unwrap_or_default();
    options.split_whitespace().map(str::to_owned).collect()
}
