//! Copies a whole database into another one of either kind.
//!
//! The source is read in one snapshot. The target is written in one transaction, which is committed only after all rows
//! have been read back and compared. If the copy fails before that, the target is still empty, and the copy can be repeated.
//! Memory holds only one batch and a few rows, so the sizes of databases and bodies are not limited.

mod database;
mod tables;
mod value;

use std::os::unix::fs::MetadataExt;

use futures::TryStreamExt;

use database::CopyDatabase;
use tables::{Kind, TABLES, Table};
use value::{Batch, Sum, Value, values};

use super::address::is_postgres;
use super::{FIRST_TOKEN, StoreError, VERSION, migrations, sqlite};

/// Maximum number of rows that an error names per table.
const NAMED_ROWS_MAX: usize = 10;

/// Why a copy failed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("the {0}: {1}")]
    Store(&'static str, StoreError),
    #[error("the {0} cannot be {1}, because that database exists only inside its server")]
    Temporary(&'static str, String),
    #[error("there is no file {0}")]
    NoSource(String),
    #[error("the source has no Switchyard tables")]
    NotOurs,
    #[error(
        "the source was last used by another version of Switchyard; start a server of this version on it once \
         to migrate its tables"
    )]
    OtherVersion,
    #[error("source and target are the same database")]
    Same,
    #[error(
        "a server is using the {0}; stop it first (a killed server counts as stopped after 60 s)"
    )]
    InUse(&'static str),
    #[error("the target is not empty: its table {0} has rows")]
    NotEmpty(&'static str),
    #[error(
        "PostgreSQL cannot store the character NUL (U+0000), which these contain: {}",
        .0.join(", ")
    )]
    Nul(Vec<String>),
    #[error("a server changed the source during the copy; nothing was copied")]
    Changed,
    #[error("verification failed, nothing was copied; source and target differ in {}", .0.join("; "))]
    Mismatch(Vec<String>),
    #[error(
        "the target did not confirm the commit ({0}); if its tables have rows, the copy is complete"
    )]
    InDoubt(StoreError),
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The current phase: `copied` or `verified`.
    pub phase: &'static str,
    pub table: &'static str,
    /// Rows so far.
    pub rows: u64,
    /// All rows of the table.
    pub total: u64,
}

/// A copied table, with the row count and checksum that both sides agree on.
#[derive(Clone, Copy, Debug)]
pub struct Copied {
    pub table: &'static str,
    pub rows: u64,
    pub checksum: u64,
}

type Result<T> = std::result::Result<T, CopyError>;

/// Adds to an error the side on which it occurred.
trait OnSide<T> {
    fn on_side(self, side: &'static str) -> Result<T>;
}

impl<T, E: Into<StoreError>> OnSide<T> for std::result::Result<T, E> {
    fn on_side(self, side: &'static str) -> Result<T> {
        self.map_err(|error| match error.into() {
            StoreError::InUse => CopyError::InUse(side),
            error => CopyError::Store(side, error),
        })
    }
}

/// Copies everything from the database at `from` into the one at `to`. Reports its progress to `on_progress` after each
/// batch.
///
/// # Errors
/// If the databases cannot be copied, or the copy fails. No rows were copied then, unless the error is
/// [`CopyError::InDoubt`], or a connection could not be closed after the commit.
pub async fn copy(
    from: &str,
    to: &str,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Vec<Copied>> {
    let mut source = open(from, SOURCE).await?;
    let (counts, state) = inspect_source(&mut source).await?;
    let activity = read_activity(&mut source).await?;
    if is_postgres(to) {
        refuse_nul(&mut source).await?;
    }
    if is_same_file(from, to) {
        return Err(CopyError::Same);
    }
    let mut target = open(to, TARGET).await?;
    prepare(&mut source, &mut target).await?;
    let mut copied = Vec::with_capacity(TABLES.len());
    for (table, total) in TABLES.iter().zip(counts) {
        let sum = read(&mut source, SOURCE, table, Some(&mut target), &mut |rows| {
            on_progress(Progress {
                phase: "copied",
                table: table.name,
                rows,
                total,
            });
        })
        .await?;
        copied.push((table, sum));
    }
    source.run("COMMIT").await.on_side(SOURCE)?;
    let before = (state, activity);
    refuse_changes(&mut source, &before).await?;
    verify(&mut target, &copied, on_progress).await?;
    refuse_changes(&mut source, &before).await?;
    let state = state.map(Value::Int).to_vec();
    target.execute(SET_STATE, state).await.on_side(TARGET)?;
    target.run("COMMIT").await.map_err(CopyError::InDoubt)?;
    if target.is_postgres() {
        // Otherwise the planner has no statistics until autovacuum runs.
        drop(target.run(&format!("ANALYZE {}", names())).await);
    }
    target.close().await.on_side(TARGET)?;
    source.close().await.on_side(SOURCE)?;
    let copied = copied.into_iter().map(|(table, sum)| Copied {
        table: table.name,
        rows: sum.rows,
        checksum: sum.checksum,
    });
    Ok(copied.collect())
}

const SOURCE: &str = "source";
const TARGET: &str = "target";

/// Connects to the source or the target. Only the target may be a file that does not exist yet.
async fn open(address: &str, side: &'static str) -> Result<CopyDatabase> {
    if is_postgres(address) {
        return CopyDatabase::postgres(address).await.on_side(side);
    }
    let (path, scratch) = sqlite::locate(address).on_side(side)?;
    if scratch.is_some() {
        return Err(CopyError::Temporary(side, address.to_owned()));
    }
    if side == SOURCE && !path.is_file() {
        return Err(CopyError::NoSource(path.display().to_string()));
    }
    CopyDatabase::sqlite(&path, side == TARGET)
        .await
        .on_side(side)
}

/// Begins the snapshot of the source and checks whether it can be copied. Returns the number of rows of each table, and
/// the state.
async fn inspect_source(source: &mut CopyDatabase) -> Result<(Vec<u64>, [i64; 3])> {
    let begin = if source.is_postgres() {
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    } else {
        "BEGIN"
    };
    source.run(begin).await.on_side(SOURCE)?;
    if source.tables().await.on_side(SOURCE)?.is_empty() {
        return Err(CopyError::NotOurs);
    }
    let expected = migrations::newest(&source.migrations());
    let rows = source.rows(VERSION).await.on_side(SOURCE)?;
    let version = rows.first().map(|row| row.int_or_null(0));
    if version.transpose().on_side(SOURCE)?.flatten() != expected {
        return Err(CopyError::OtherVersion);
    }
    if source.has_servers().await.on_side(SOURCE)? {
        return Err(CopyError::InUse(SOURCE));
    }
    let mut counts = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let rows = source
            .rows(format!("SELECT count(*) FROM {}", table.name))
            .await;
        let rows = rows.on_side(SOURCE)?;
        let count = rows
            .first()
            .map_or(Ok(0), |row| row.int(0))
            .on_side(SOURCE)?;
        counts.push(count.unsigned_abs());
    }
    Ok((counts, read_state(source, SOURCE).await?))
}

/// The revision, the number of the last event, and the number of the last deleted queue.
async fn read_state(database: &mut CopyDatabase, side: &'static str) -> Result<[i64; 3]> {
    let rows = database.rows(STATE).await.on_side(side)?;
    let row = rows
        .first()
        .ok_or(StoreError::Corrupt("no state"))
        .on_side(side)?;
    let column = |column| row.int(column).on_side(side);
    Ok([column(0)?, column(1)?, column(2)?])
}

/// What differs after any job has been put, claimed or completed.
async fn read_activity(source: &mut CopyDatabase) -> Result<[Option<i64>; 2]> {
    let rows = source.rows(ACTIVITY).await.on_side(SOURCE)?;
    let row = rows.first();
    let column = |column| {
        row.map_or(Ok(None), |row| row.int_or_null(column))
            .on_side(SOURCE)
    };
    Ok([column(0)?, column(1)?])
}

/// Refuses a source that a server uses, or has used since it was read.
async fn refuse_changes(
    source: &mut CopyDatabase,
    (state, activity): &([i64; 3], [Option<i64>; 2]),
) -> Result<()> {
    let is_changed = source.has_servers().await.on_side(SOURCE)?
        || read_state(source, SOURCE).await? != *state
        || read_activity(source).await? != *activity;
    match is_changed {
        true => Err(CopyError::Changed),
        false => Ok(()),
    }
}

/// Refuses texts with NUL, which SQLite can store and Postgres cannot.
async fn refuse_nul(source: &mut CopyDatabase) -> Result<()> {
    if source.is_postgres() {
        return Ok(());
    }
    let mut found = Vec::new();
    for table in TABLES {
        let texts = table.columns.iter().filter(|(_, kind)| *kind == Kind::Text);
        let holds = texts.map(|(name, _)| format!("instr({name}, char(0)) > 0"));
        let holds: Vec<_> = holds.collect();
        if holds.is_empty() {
            continue;
        }
        let (name, holds, key) = (table.name, holds.join(" OR "), table.key());
        let shown = if table.columns.contains(&("id", Kind::Text)) {
            "id"
        } else {
            &key
        };
        let sql = format!(
            "SELECT {shown} FROM {name} WHERE {holds} ORDER BY {key} LIMIT {NAMED_ROWS_MAX}"
        );
        for row in source.rows(sql).await.on_side(SOURCE)? {
            let key = row.text_or_null(0).on_side(SOURCE)?.unwrap_or_default();
            found.push(match name {
                "jobs" => format!("job {key:?}"),
                _ => format!("row {key:?} of the table {name}"),
            });
        }
    }
    if found.is_empty() {
        Ok(())
    } else {
        Err(CopyError::Nul(found))
    }
}

/// Whether both addresses name the same file, possibly by different paths.
fn is_same_file(from: &str, to: &str) -> bool {
    let identity = |address: &str| {
        let file = sqlite::locate(address).ok()?.0.metadata().ok()?;
        Some((file.dev(), file.ino()))
    };
    identity(from).is_some_and(|one| identity(to) == Some(one))
}

/// Prepares the target: checks that it is empty, runs the migrations, and locks it until the end of the copy.
async fn prepare(source: &mut CopyDatabase, target: &mut CopyDatabase) -> Result<()> {
    if source.is_postgres() && target.is_postgres() {
        let one = source.rows(IDENTITY).await.on_side(SOURCE)?;
        let other = target.rows(IDENTITY).await.on_side(TARGET)?;
        let (one, other) = (one.first(), other.first());
        let one = one.map(|row| row.text(0)).transpose().on_side(SOURCE)?;
        if one == other.map(|row| row.text(0)).transpose().on_side(TARGET)? {
            return Err(CopyError::Same);
        }
    }
    // Before the migrations, so that a wrong address changes nothing.
    refuse_rows(target).await?;
    target.migrate().await.on_side(TARGET)?;
    if target.has_servers().await.on_side(TARGET)? {
        return Err(CopyError::InUse(TARGET));
    }
    if target.is_postgres() {
        let names = names();
        let begin = format!(
            "BEGIN; SET LOCAL lock_timeout = '5s'; LOCK TABLE state, servers, {names} IN ACCESS EXCLUSIVE MODE"
        );
        target.run(&begin).await.on_side(TARGET)?;
    } else {
        target.run("BEGIN IMMEDIATE").await.on_side(TARGET)?;
    }
    // Again under the lock: a server may have started meanwhile.
    if target.has_servers().await.on_side(TARGET)? {
        return Err(CopyError::InUse(TARGET));
    }
    refuse_rows(target).await?;
    let drop_first_token = format!("DELETE FROM tokens WHERE description = '{FIRST_TOKEN}'");
    target.run(&drop_first_token).await.on_side(TARGET)
}

/// The names of all copied tables, separated by commas.
fn names() -> String {
    let names: Vec<_> = TABLES.iter().map(|table| table.name).collect();
    names.join(", ")
}

async fn refuse_rows(target: &mut CopyDatabase) -> Result<()> {
    for table in target.tables().await.on_side(TARGET)? {
        let (name, key) = (table.name, table.key());
        // A server creates this token at its first start, so a database with no other rows counts as empty.
        let condition = match name {
            "tokens" => format!("WHERE description <> '{FIRST_TOKEN}'"),
            _ => String::new(),
        };
        let rows = target
            .rows(format!("SELECT {key} FROM {name} {condition} LIMIT 1"))
            .await;
        if !rows.on_side(TARGET)?.is_empty() {
            return Err(CopyError::NotEmpty(name));
        }
    }
    Ok(())
}

/// Reads a table from one side and writes it into the other one, if given. Reports the number of rows to `on_progress`
/// after each batch.
async fn read(
    from: &mut CopyDatabase,
    side: &'static str,
    table: &Table,
    mut into: Option<&mut CopyDatabase>,
    on_progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Sum> {
    let mut sum = Sum::default();
    let mut after = None;
    loop {
        let mut batch = Batch::default();
        let mut left = CopyDatabase::PAGE;
        let mut page = from.page(table, after.take()).on_side(side)?;
        while let Some(row) = page.try_next().await.on_side(side)? {
            let row = values(table, &row).on_side(side)?;
            sum.add(&row);
            left = left.saturating_sub(1);
            if left == 0 {
                after = Some(row.iter().take(table.key).cloned().collect());
            }
            batch.add(row);
            if batch.is_full() {
                let batch = std::mem::take(&mut batch);
                if let Some(into) = &mut into {
                    into.insert(table, batch).await.on_side(TARGET)?;
                }
                on_progress(sum.rows);
            }
        }
        drop(page);
        if let Some(into) = &mut into {
            into.insert(table, batch).await.on_side(TARGET)?;
        }
        on_progress(sum.rows);
        if after.is_none() {
            return Ok(sum);
        }
    }
}

/// Reads all tables of the target back and compares their checksums.
async fn verify(
    target: &mut CopyDatabase,
    copied: &[(&Table, Sum)],
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<()> {
    let mut wrong = Vec::new();
    for (table, expected) in copied {
        let (table, total) = (*table, expected.rows);
        let found = read(target, TARGET, table, None, &mut |rows| {
            on_progress(Progress {
                phase: "verified",
                table: table.name,
                rows,
                total,
            });
        })
        .await?;
        if found != *expected {
            wrong.push(format!(
                "{} ({} rows with the checksum {:016x} instead of {} with {:016x})",
                table.name, found.rows, found.checksum, expected.rows, expected.checksum
            ));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(CopyError::Mismatch(wrong))
    }
}

const ACTIVITY: &str = "
SELECT (SELECT max(seq) FROM jobs), (SELECT CAST(sum(n) AS BIGINT) FROM tallies)";

const STATE: &str = "SELECT revision, last_event, last_gone_queue FROM state WHERE id = 1";

// The new revision is higher than that of either database, so that every server reloads its caches.
const SET_STATE: &str = "
UPDATE state SET revision = CASE WHEN revision > $1 THEN revision ELSE $1 END + 1, last_event = $2,
    deleted_queues_revision = CASE WHEN revision > $1 THEN revision ELSE $1 END + 1,
    config_revision = CASE WHEN revision > $1 THEN revision ELSE $1 END + 1,
    tracked_revision = CASE WHEN revision > $1 THEN revision ELSE $1 END + 1,
    tokens_revision = CASE WHEN revision > $1 THEN revision ELSE $1 END + 1,
    recurring_revision = CASE WHEN revision > $1 THEN revision ELSE $1 END + 1, last_gone_queue = $3 WHERE id = 1";

const IDENTITY: &str = "
SELECT current_database() || '/' || current_schema() || '/' || CAST(pg_postmaster_start_time() AS TEXT)";
