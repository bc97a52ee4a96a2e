//! The disk reserve on Postgres: a table of filler rows, which is dropped when the disk is full, so that claims,
//! completions and deletes continue in its space. Dropping a table needs no space, unlike truncating it.
//!
//! The table belongs to all servers on the database. Each looks for it once a second, and creates it if it is missing;
//! if that fails because there is no space, the disk is full. So a server notices within a second that another one found the
//! disk full. The table is not logged, so Postgres empties it after a crash, and it costs no write-ahead log.

use std::time::{Duration, Instant};

use sqlx::{Row as _, SqlSafeStr};

use super::Connection;
use crate::store::StoreError;

/// The time between two checks. Without a reserve, new jobs are refused for this time after the disk was found full;
/// then the next one tests the disk again.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// What is known about the reserve and the disk.
#[derive(Debug)]
pub struct Reserve {
    checked_at: Instant,
    /// When the disk was last found full.
    full_at: Option<Instant>,
    /// The table cannot be created, for example without the permission.
    is_unavailable: bool,
}

impl Default for Reserve {
    fn default() -> Self {
        Reserve {
            checked_at: Instant::now(),
            full_at: None,
            is_unavailable: false,
        }
    }
}

impl Reserve {
    /// Whether the disk is full, so that no jobs are added.
    pub fn is_disk_full(&self) -> bool {
        let is_recent = |at: Instant| at.elapsed() < CHECK_EVERY;
        self.full_at
            .is_some_and(|at| !self.is_unavailable || is_recent(at))
    }
}

impl Connection {
    /// Drops the reserve after a group found the disk full. False if that cannot help the group.
    pub(in crate::store) async fn release_reserve(&mut self) -> bool {
        let was_full = self.reserve.is_disk_full();
        self.reserve.full_at = Some(Instant::now());
        if self.reserve.is_unavailable {
            return !was_full;
        }
        if let Err(error) = self.run_text(DROP.into_sql_str()).await {
            tracing::warn!(%error, "failed to drop the table switchyard_reserve");
        }
        true
    }

    /// Creates the reserve if it is missing and the same amount of space stays free. Checks at most once a second.
    pub(in crate::store) async fn restore_reserve_if_possible(&mut self) -> Result<(), StoreError> {
        let is_due = self.reserve.checked_at.elapsed() >= CHECK_EVERY;
        // In an outage, the group itself finds out whether the database responds again.
        if !is_due || self.reserve.is_unavailable || self.inner.is_none() {
            return Ok(());
        }
        self.reserve.checked_at = Instant::now();
        match self.keep_reserve().await {
            Ok(()) => self.reserve.full_at = None,
            Err(error) if error.is_disk_full() => self.reserve.full_at = Some(Instant::now()),
            Err(error) if error.is_outage() || error.is_slow() => return Err(error),
            // Another server creates it at the same time.
            Err(error) if error.is_conflict() || error.has_code(&["42P07"]) => {}
            Err(error) => {
                tracing::info!(%error, "there is no disk reserve, because its table cannot be created");
                self.reserve.is_unavailable = true;
            }
        }
        Ok(())
    }

    /// Creates the reserve if it is missing.
    async fn keep_reserve(&mut self) -> Result<(), StoreError> {
        let found = self.run_text(SIZE.into_sql_str()).await?;
        let bytes: i64 = found.first().map_or(Ok(0), |row| row.try_get(0))?;
        if bytes == 0 {
            self.run_text(CREATE.into_sql_str()).await?;
        }
        Ok(())
    }
}

const SIZE: &str = "SELECT coalesce(pg_relation_size(to_regclass('switchyard_reserve')), 0)";

/// Takes a lock before the reserve is created or dropped. While one server tries to create it, and so occupies the rest
/// of the disk, another one that finds the disk full waits.
macro_rules! lock {
    ($($rest:literal),*) => {
        concat!("SELECT pg_advisory_xact_lock(CAST(CAST('state' AS regclass) AS oid)::bigint + 4294967296);", $($rest),*)
    };
}

const DROP: &str = lock!("DROP TABLE IF EXISTS switchyard_reserve");

// 8 MiB, one row per page. The second table checks that as much stays free; its file is gone after the transaction. It
// is one transaction, because the text has several statements.
const CREATE: &str = lock!(
    "
DROP TABLE IF EXISTS switchyard_reserve;
CREATE UNLOGGED TABLE switchyard_reserve (filler TEXT NOT NULL);
ALTER TABLE switchyard_reserve ALTER COLUMN filler SET STORAGE PLAIN;
INSERT INTO switchyard_reserve SELECT repeat('x', 8000) FROM generate_series(1, 1024);
CREATE UNLOGGED TABLE switchyard_spare (LIKE switchyard_reserve INCLUDING STORAGE);
INSERT INTO switchyard_spare TABLE switchyard_reserve;
DROP TABLE switchyard_spare;"
);
