//! PostgreSQL databases that tests use one after the other, because creating one per test takes longer than most tests.
//!
//! A process locks the file of a slot, and owns the slot's database until it ends. The next owner restores the content
//! of the template, or replaces the database if a test changed more than rows.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sqlx::Connection;
use sqlx::postgres::PgConnection;

use super::create;

/// More databases than concurrent tests use.
const SLOTS_MAX: usize = 2_000;

/// The databases of this process by the path that a test names. The open files hold the locks.
static OWNED: Mutex<Option<HashMap<PathBuf, (String, File)>>> = Mutex::new(None);

/// The name of the database that the slots are copies of (`scripts/postgres.sh`).
pub fn template() -> Option<String> {
    std::env::var("SWITCHYARD_TEST_POSTGRES_TEMPLATE").ok()
}

/// The address of the database that belongs to this path.
pub fn address(server: &str, template: &str, path: &Path) -> String {
    let mut owned = OWNED.lock().unwrap();
    let owned = owned.get_or_insert_default();
    if !owned.contains_key(path) {
        owned.insert(path.to_owned(), claim(server, template));
    }
    owned[path].0.clone()
}

/// Locks the first free slot, and makes its database look like the template.
fn claim(server: &str, template: &str) -> (String, File) {
    let folder = std::env::var("SWITCHYARD_TEST_POSTGRES_SLOTS").expect("a folder for the slots");
    let (name, lock) = (0..SLOTS_MAX)
        .find_map(|slot| {
            let name = format!("slot{slot}");
            let lock = File::create(Path::new(&folder).join(format!("{name}.lock"))).unwrap();
            lock.try_lock().is_ok().then_some((name, lock))
        })
        .expect("a free slot");
    let created = Path::new(&folder).join(format!("{name}.created"));
    let address = format!("{server}/{name}");
    let reused = created.exists() && {
        let address = address.clone();
        // The caller can be an asynchronous test, in which another runtime must not block.
        let restored = std::thread::spawn(move || restore(&address));
        restored.join().unwrap()
    };
    if !reused {
        drop_database(server, &name);
        create(server, &name, Some(template));
        fs::write(created, "").unwrap();
    }
    (address, lock)
}

/// Restores the template's rows with the function of `scripts/postgres.sql`. Returns false if the schema differs.
fn restore(address: &str) -> bool {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async {
        let Ok(mut connection) = PgConnection::connect(address).await else {
            return false;
        };
        let restored = sqlx::query_scalar("SELECT pristine.restore()");
        restored.fetch_one(&mut connection).await.unwrap_or(false)
    })
}

fn drop_database(server: &str, name: &str) {
    let mut drop = std::process::Command::new("dropdb");
    drop.arg(format!("--maintenance-db={server}/postgres"));
    let dropped = drop.args(["--if-exists", "--force", name]).output();
    let dropped = dropped.expect("dropdb runs");
    let error = String::from_utf8_lossy(&dropped.stderr);
    assert!(dropped.status.success(), "{error}");
}
