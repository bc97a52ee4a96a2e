//! Backups of an SQLite file while a server uses it, and their restoration.
//!
//! A backup is one complete file as of one commit, written by `VACUUM INTO` in a folder of its own beside the target,
//! and given its name only when it is verified and on the disk. A restored file replaces the database in the same way.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection as _};
use tempfile::TempDir;

use super::address::is_postgres;
use super::file::with_suffix;
use super::{BUSY_TIMEOUT, StoreError, VERSION, file, migrations, sqlite};

/// Maximum number of problems of one kind that are reported of a damaged file.
const PROBLEMS_MAX: usize = 10;

/// Why a backup or a restoration failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error(
        "PostgreSQL databases are backed up with pg_dump or by archiving, and restored with pg_restore; see docs/postgres.md"
    )]
    Postgres,
    #[error("{0} is a temporary database that only its server can open")]
    Temporary(String),
    #[error("there is no file {0}")]
    Missing(String),
    #[error("{0} already exists")]
    Exists(String),
    #[error("{0} is not a Switchyard database")]
    NotOurs(String),
    #[error(
        "{0} has a write-ahead log beside it, so it is not a backup; `switchyard backup` creates one"
    )]
    HasLog(String),
    #[error("{0} comes from a newer version of Switchyard")]
    Newer(String),
    #[error("{path} is damaged: {}", .problems.join("; "))]
    Damaged { path: String, problems: Vec<String> },
    #[error("a server has this database open; stop it first")]
    InUse,
    #[error("{0}: {1}")]
    File(String, io::Error),
}

type Result<T> = std::result::Result<T, BackupError>;

/// A verified copy of a database that does not have its final name yet. Dropping it removes it.
#[derive(Debug)]
pub struct VerifiedCopy {
    folder: TempDir,
    target: PathBuf,
    /// Whether its schema is that of this version, so that the engine can check it.
    pub is_current: bool,
    /// Locks the database being replaced.
    lock: Option<File>,
}

impl VerifiedCopy {
    fn path(&self) -> PathBuf {
        self.folder.path().join("switchyard.db")
    }

    /// The address of the copy.
    pub fn address(&self) -> String {
        format!("sqlite://{}", self.path().display())
    }

    /// Gives a backup its name. Returns its size in bytes. When this returns, it survives a loss of power.
    ///
    /// # Errors
    /// If a file with that name exists, or the disk fails.
    pub fn publish(self) -> Result<u64> {
        let bytes = synced(&self.path())?;
        // Unlike a rename, a link does not replace a file that was created meanwhile.
        fs::hard_link(self.path(), &self.target).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => BackupError::Exists(text(&self.target)),
            _ => BackupError::File(text(&self.target), error),
        })?;
        sync_folder(&self.target)?;
        Ok(bytes)
    }

    /// Replaces the database with the copy. Returns its size in bytes. At any time, also after a crash, the database is
    /// either the old one or the copy.
    ///
    /// # Errors
    /// If the disk fails.
    pub async fn replace(self) -> Result<u64> {
        let bytes = synced(&self.path())?;
        if self.target.exists() {
            // The log of the old database must not be applied to the new one.
            empty_log(&self.target).await;
            for suffix in ["-wal", "-shm"] {
                let path = with_suffix(&self.target, suffix);
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(BackupError::File(text(&path), error));
                    }
                    _ => {}
                }
            }
            sync_folder(&self.target)?;
        }
        fs::rename(self.path(), &self.target)
            .map_err(|error| BackupError::File(text(&self.target), error))?;
        sync_folder(&self.target)?;
        drop(self.lock);
        Ok(bytes)
    }
}

/// Copies the database at `address` for a backup in `target`, as of now, and checks the copy's integrity. Writers do
/// not wait for it.
///
/// # Errors
/// If the target exists, or the database cannot be copied.
pub async fn back_up(address: &str, target: &Path) -> Result<VerifiedCopy> {
    let path = file_of(address)?;
    if !path.is_file() {
        return Err(BackupError::Missing(text(&path)));
    }
    if target.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(text(target)));
    }
    let folder = folder_beside(target)?;
    let copy = folder.path().join("switchyard.db");
    // With the mode of a private file; SQLite fills an empty one.
    file::create(&copy)?;
    let mut connection = connect(&path).await?;
    let copied = sqlx::query("VACUUM INTO ?")
        .bind(text(&copy))
        .execute(&mut connection)
        .await;
    close(connection).await;
    copied.map_err(StoreError::from)?;
    let is_current = verify(&copy, &path).await?;
    Ok(VerifiedCopy {
        folder,
        target: target.to_owned(),
        is_current,
        lock: None,
    })
}

/// Copies a backup beside the database at `address`, which it is to replace, locks that database, and checks the copy's
/// integrity. An existing database is accepted only if `force` is set.
///
/// # Errors
/// If a server has the database open, or the file is not a sound backup.
pub async fn restore(backup: &Path, address: &str, force: bool) -> Result<VerifiedCopy> {
    // A link stays one: the file that it names is replaced, which need not exist.
    let target = file::resolved(&file_of(address)?);
    if !backup.is_file() {
        return Err(BackupError::Missing(text(backup)));
    }
    let log = fs::metadata(with_suffix(backup, "-wal"));
    if log.is_ok_and(|log| log.len() > 0) {
        return Err(BackupError::HasLog(text(backup)));
    }
    let lock = file::lock(&target).map_err(|error| match error {
        StoreError::InUse => BackupError::InUse,
        error => BackupError::Store(error),
    })?;
    if target.symlink_metadata().is_ok() && !force {
        return Err(BackupError::Exists(format!(
            "{} (--force replaces it)",
            text(&target)
        )));
    }
    let folder = folder_beside(&target)?;
    let copy = folder.path().join("switchyard.db");
    file::create(&copy)?;
    let mut from = File::open(backup).map_err(|error| BackupError::File(text(backup), error))?;
    let mut to = File::options()
        .write(true)
        .open(&copy)
        .map_err(|error| BackupError::File(text(&copy), error))?;
    io::copy(&mut from, &mut to).map_err(|error| BackupError::File(text(&copy), error))?;
    drop(to);
    let is_current = verify(&copy, backup).await?;
    Ok(VerifiedCopy {
        folder,
        target,
        is_current,
        lock: Some(lock),
    })
}

/// Checks that `copy` is a sound database of this version or an older one. Returns whether it is of this version.
/// Errors name `of`, the file that was copied.
async fn verify(copy: &Path, of: &Path) -> Result<bool> {
    let mut connection = connect(copy).await.map_err(|error| BackupError::Damaged {
        path: text(of),
        problems: vec![error.to_string()],
    })?;
    let checked = integrity(&mut connection).await;
    let version = sqlx::query_scalar::<_, Option<i64>>(VERSION)
        .fetch_one(&mut connection)
        .await;
    close(connection).await;
    let problems = match checked {
        Ok(problems) => problems,
        Err(error) => vec![error.to_string()],
    };
    if !problems.is_empty() {
        let path = text(of);
        return Err(BackupError::Damaged { path, problems });
    }
    let newest = migrations::newest(&migrations::sqlite());
    match version {
        Ok(Some(version)) if Some(version) > newest => Err(BackupError::Newer(text(of))),
        Ok(Some(version)) => Ok(Some(version) == newest),
        _ => Err(BackupError::NotOurs(text(of))),
    }
}

/// The problems that SQLite finds in the file. Triggers and views are problems, too: this program creates none, and
/// those of others would run with the statements of the server.
pub(super) async fn integrity(
    connection: &mut SqliteConnection,
) -> std::result::Result<Vec<String>, StoreError> {
    let found: Vec<String> = sqlx::query_scalar("SELECT * FROM pragma_integrity_check LIMIT ?")
        .bind(i64::try_from(PROBLEMS_MAX).unwrap_or(i64::MAX))
        .fetch_all(&mut *connection)
        .await?;
    let foreign: Vec<String> = sqlx::query_scalar(FOREIGN)
        .bind(i64::try_from(PROBLEMS_MAX).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await?;
    let damage = found.into_iter().filter(|problem| problem != "ok");
    Ok(damage.chain(foreign).collect())
}

/// Tables and indexes of a database of this version that the migrations do not create, or create differently.
pub(super) async fn changed_definitions(
    connection: &mut SqliteConnection,
) -> std::result::Result<Vec<String>, StoreError> {
    let mut new = SqliteConnectOptions::new()
        .in_memory(true)
        .disable_statement_logging()
        .connect()
        .await?;
    migrations::sqlite().run(&mut new).await?;
    let expected = definitions(&mut new).await?;
    let found = definitions(connection).await?;
    let differs = |(name, sql): &(String, String)| expected.get(name) != Some(sql);
    let changed = found.into_iter().filter(differs).map(|(name, _)| name);
    Ok(changed.take(PROBLEMS_MAX).collect())
}

/// The SQL of tables and indexes by kind and name.
async fn definitions(
    connection: &mut SqliteConnection,
) -> std::result::Result<BTreeMap<String, String>, StoreError> {
    let rows: Vec<(String, String)> = sqlx::query_as(DEFINITIONS).fetch_all(connection).await?;
    Ok(rows.into_iter().collect())
}

/// Reads tables and indexes, without those of SQLite and sqlx, which depend on the versions of both.
const DEFINITIONS: &str = "
SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_master
WHERE type IN ('table', 'index') AND substr(name, 1, 7) <> 'sqlite_' AND name <> '_sqlx_migrations' LIMIT 1000";

const FOREIGN: &str =
    "SELECT type || ' ' || name FROM sqlite_master WHERE type IN ('trigger', 'view') LIMIT ?";

/// Opens an existing file, whether or not a server has it open.
pub(super) async fn connect(path: &Path) -> std::result::Result<SqliteConnection, StoreError> {
    Ok(SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(false)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging()
        .connect()
        .await?)
}

async fn close(connection: SqliteConnection) {
    if let Err(error) = connection.close().await {
        tracing::debug!(%error, "cannot close the database");
    }
}

/// Moves what is in the write-ahead log into the file. A damaged database keeps its log.
async fn empty_log(path: &Path) {
    let Ok(mut connection) = connect(path).await else {
        return;
    };
    let done = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut connection)
        .await;
    if let Err(error) = done {
        tracing::warn!(%error, "cannot checkpoint the database being replaced");
    }
    close(connection).await;
}

/// The file of the database at this address.
fn file_of(address: &str) -> Result<PathBuf> {
    if is_postgres(address) {
        return Err(BackupError::Postgres);
    }
    match sqlite::locate(address)? {
        (path, None) => Ok(path),
        (_, Some(_)) => Err(BackupError::Temporary(address.to_owned())),
    }
}

/// A new folder, readable by its owner only, in the folder of the file.
fn folder_beside(path: &Path) -> Result<TempDir> {
    let parent = file::folder_of(path);
    tempfile::Builder::new()
        .prefix(".switchyard-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .map_err(|error| BackupError::File(text(parent), error))
}

/// Waits until the file is on the disk. Returns its size in bytes.
fn synced(path: &Path) -> Result<u64> {
    let failed = |error| BackupError::File(text(path), error);
    let file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(file.metadata().map_err(failed)?.len())
}

/// Waits until the names in the folder of the file are on the disk.
fn sync_folder(path: &Path) -> Result<()> {
    let parent = file::folder_of(path);
    File::open(parent)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| BackupError::File(text(parent), error))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
