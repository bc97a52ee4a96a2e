//! Facts about the database of an installation, read without changing it, for `switchyard doctor`.

use std::path::PathBuf;
use std::sync::Arc;

use super::backup::{changed_definitions, connect, integrity};
use super::{
    DatabaseInfo, Readers, Settings, Statement, StoreError, VERSION, file, migrations, postgres,
    sqlite,
};

/// Facts about a database.
#[derive(Debug)]
pub struct Inspection {
    pub info: DatabaseInfo,
    /// The version of the schema that this program expects.
    pub expected: i64,
    /// Whether a server has it open.
    pub is_in_use: bool,
    /// Indexes that the migrations created and that are gone.
    pub missing_indexes: Vec<String>,
    /// Problems in the file that SQLite found; always empty for Postgres.
    pub damage: Vec<String>,
    /// Tables and indexes that the migrations do not create, or create differently; always empty for Postgres.
    pub changed_definitions: Vec<String>,
    /// Postgres: the database's clock, in microseconds since 1970.
    pub clock: Option<i64>,
    /// The number of rows of each table.
    pub rows: Vec<(String, i64)>,
}

/// The file of an SQLite database; `None` for Postgres and for a temporary database.
pub fn database_file(address: &str) -> Option<PathBuf> {
    match sqlite::locate(address) {
        Ok((path, None)) => Some(path),
        _ => None,
    }
}

/// Reads facts about the database at `address`; `None` if it has no tables yet. `now` is in microseconds since 1970.
/// Runs no migrations and does not create the database. Beside an SQLite file, the lock file and SQLite's own files can
/// be created.
///
/// # Errors
/// If the database cannot be opened or read.
pub async fn inspect(address: &str, now: i64) -> Result<Option<Inspection>, StoreError> {
    let (readers, damage, changed, is_in_use) = match database_file(address) {
        Some(path) if !path.is_file() => return Ok(None),
        Some(path) => {
            let mut connection = connect(&path).await?;
            let damage = integrity(&mut connection).await?;
            let changed = match damage.is_empty() {
                true => changed_definitions(&mut connection).await?,
                false => Vec::new(),
            };
            sqlx::Connection::close(connection).await?;
            let is_in_use = matches!(file::lock(&path), Err(StoreError::InUse));
            (
                Readers::Sqlite(sqlite::Readers::open(&path, Arc::default()).await?),
                damage,
                changed,
                is_in_use,
            )
        }
        None => {
            let readers = postgres::Readers::open(address, Settings::default()).await?;
            (Readers::Postgres(readers), Vec::new(), Vec::new(), false)
        }
    };
    let inspected = inspect_with(&readers, now).await;
    readers.close().await;
    Ok(inspected?.map(|inspection| Inspection {
        damage,
        // An older schema differs.
        changed_definitions: match inspection.info.migration == inspection.expected {
            true => changed,
            false => Vec::new(),
        },
        is_in_use: is_in_use || inspection.is_in_use,
        ..inspection
    }))
}

async fn inspect_with(readers: &Readers, now: i64) -> Result<Option<Inspection>, StoreError> {
    let (tables, indexes, migrator) = match readers {
        Readers::Sqlite(_) => (SQLITE_TABLES, SQLITE_INDEXES, migrations::sqlite()),
        Readers::Postgres(_) => (POSTGRES_TABLES, POSTGRES_INDEXES, migrations::postgres()),
    };
    let has_tables = !readers.rows(Statement::new(tables, [])).await?.is_empty();
    if !has_tables || readers.rows(Statement::new(VERSION, [])).await?.is_empty() {
        return Ok(None);
    }
    let clock = match readers {
        Readers::Sqlite(_) => None,
        Readers::Postgres(_) => {
            let rows = readers.rows(Statement::new(CLOCK, [])).await?;
            rows.first().map(|row| row.int(0)).transpose()?
        }
    };
    let info = readers.database_info(clock.unwrap_or(now)).await?;
    let rows = readers.rows(Statement::new(indexes, [])).await?;
    let found: Vec<String> = rows
        .iter()
        .map(|row| row.text(0))
        .collect::<Result<_, _>>()?;
    let steps: Vec<&str> = migrator.iter().map(|step| step.sql.as_str()).collect();
    let expected = migrations::newest(&migrator).unwrap_or_default();
    // An older schema lacks the indexes of later migrations.
    let is_current = info.migration == expected;
    let missing = index_names(&steps)
        .into_iter()
        .filter(|name| is_current && !found.contains(name));
    let has_servers = match readers {
        // Only servers on Postgres register.
        Readers::Sqlite(_) => false,
        Readers::Postgres(_) => !readers
            .rows(Statement::new(SERVERS, [clock.unwrap_or(now).into()]))
            .await?
            .is_empty(),
    };
    Ok(Some(Inspection {
        missing_indexes: missing.collect(),
        expected,
        is_in_use: has_servers,
        damage: Vec::new(),
        changed_definitions: Vec::new(),
        clock,
        rows: counts(readers, is_current).await?,
        info,
    }))
}

/// The number of rows of each table; none if the schema is not that of this program.
async fn counts(readers: &Readers, is_current: bool) -> Result<Vec<(String, i64)>, StoreError> {
    if !is_current {
        return Ok(Vec::new());
    }
    let rows = readers.rows(Statement::new(ROWS, [])).await?;
    rows.iter()
        .map(|row| Ok((row.text(0)?, row.int(1)?)))
        .collect()
}

/// The names of the indexes that exist after all of these migrations.
fn index_names(steps: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in steps.iter().flat_map(|step| step.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["CREATE", "INDEX", name, ..] | ["CREATE", "UNIQUE", "INDEX", name, ..] => {
                names.push((*name).to_owned());
            }
            ["DROP", "INDEX", name, ..] => names.retain(|it| it != name.trim_end_matches(';')),
            _ => {}
        }
    }
    names
}

const SQLITE_TABLES: &str =
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'";
const POSTGRES_TABLES: &str = "
SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = current_schema() AND tablename = '_sqlx_migrations'";

const SQLITE_INDEXES: &str = "SELECT name FROM sqlite_master WHERE type = 'index'";
const POSTGRES_INDEXES: &str =
    "SELECT CAST(indexname AS TEXT) FROM pg_indexes WHERE schemaname = current_schema()";

const ROWS: &str = "
SELECT 'queues', count(*) FROM queues
UNION ALL SELECT 'jobs', count(*) FROM jobs
UNION ALL SELECT 'dependencies', count(*) FROM dependencies
UNION ALL SELECT 'tags', count(*) FROM tags
UNION ALL SELECT 'tallies', count(*) FROM tallies
UNION ALL SELECT 'workers', count(*) FROM workers
UNION ALL SELECT 'tokens', count(*) FROM tokens
UNION ALL SELECT 'recurring', count(*) FROM recurring
UNION ALL SELECT 'sessions', count(*) FROM sessions
UNION ALL SELECT 'audit', count(*) FROM audit
UNION ALL SELECT 'events', count(*) FROM events
UNION ALL SELECT 'operations', count(*) FROM operations";

const CLOCK: &str = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";
const SERVERS: &str = "SELECT 1 AS one FROM servers WHERE until > $1 LIMIT 1";

#[cfg(test)]
mod tests {
    use sqlx::Connection as _;
    use sqlx::sqlite::SqliteConnection;

    use super::*;

    #[tokio::test]
    async fn the_indexes_of_the_migrations_are_those_of_a_new_database() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        migrations::sqlite().run(&mut connection).await.unwrap();
        let sql =
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name";
        let found: Vec<String> = sqlx::query_scalar(sql)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let migrator = migrations::sqlite();
        let steps: Vec<&str> = migrator.iter().map(|step| step.sql.as_str()).collect();
        let mut names = index_names(&steps);
        names.sort();
        assert_eq!(names, found);
        assert!(names.len() > 15, "{names:?}");
    }
}
