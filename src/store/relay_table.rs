//! The table of a Relay server in PostgreSQL, read in one snapshot, for `switchyard import`.

use std::collections::HashSet;

use futures::StreamExt;
use futures::stream::BoxStream;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::address::{connect_once, postgres_options};
use super::{Row, StoreError};

/// The longest payload or state that is read, in bytes.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// What is read instead of a longer text. It is not JSON.
const TOO_LONG: &str = "<";

/// A job of Relay.
#[derive(Clone, Debug)]
pub struct RelayRow {
    pub id: String,
    pub queue: String,
    pub timeout_s: i64,
    /// `None` or negative for any number.
    pub max_retries: Option<i64>,
    pub retries_remaining: Option<i64>,
    /// JSON.
    pub payload: String,
    /// JSON.
    pub state: Option<String>,
    /// Payload or state is longer than 16 MiB, and was not read.
    pub is_too_long: bool,
    pub in_flight: bool,
    pub run_id: Option<String>,
    /// This and the other times are in microseconds since 1970, UTC.
    pub run_at: i64,
    pub is_due: bool,
    pub expires_at: Option<i64>,
    pub updated_at: i64,
    pub created_at: i64,
}

/// The connection to Relay's database, in one read-only transaction.
pub struct RelayTable {
    connection: Box<PgConnection>,
    /// Whether the table has the column `run_id`, which the first versions lack.
    has_run_id: bool,
}

impl RelayTable {
    /// Connects to the database at `address` and begins the snapshot. Returns `None` if it has no table of Relay.
    ///
    /// # Errors
    /// If the address is invalid or the database cannot be read.
    pub async fn open(address: &str) -> Result<Option<RelayTable>, StoreError> {
        let options = postgres_options(address)?
            .application_name("switchyard import")
            // The transaction is idle while the target is written.
            .options([
                ("idle_in_transaction_session_timeout", "0"),
                ("default_transaction_read_only", "on"),
            ])
            .disable_statement_logging();
        let mut connection = connect_once(&options).await?;
        sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            .execute(&mut *connection)
            .await?;
        let columns = sqlx::query(COLUMNS).fetch_all(&mut *connection).await?;
        let columns: HashSet<String> = columns
            .into_iter()
            .map(|row| Row::Postgres(row).text(0))
            .collect::<Result<_, _>>()?;
        if !REQUIRED.iter().all(|name| columns.contains(*name)) {
            return Ok(None);
        }
        let has_run_id = columns.contains("run_id");
        Ok(Some(RelayTable {
            connection,
            has_run_id,
        }))
    }

    /// The number of jobs.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub async fn count(&mut self) -> Result<u64, StoreError> {
        let row = sqlx::query(COUNT).fetch_one(&mut *self.connection).await?;
        Ok(Row::Postgres(row).int(0)?.unsigned_abs())
    }

    /// Streams the jobs in the order in which they are run.
    pub fn rows(&mut self) -> BoxStream<'_, Result<RelayRow, StoreError>> {
        let run_id = match self.has_run_id {
            true => "CAST(run_id AS TEXT)",
            false => "CAST(NULL AS TEXT)",
        };
        let sql = JOBS.replace("{run_id}", run_id);
        let sql = sql.replace("{max}", &TEXT_BYTES_MAX.to_string());
        // Safe: the text is put together from literals of this program.
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch(&mut *self.connection);
        rows.map(|row| read(&Row::Postgres(row?))).boxed()
    }

    /// Ends the snapshot.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn close(self) -> Result<(), StoreError> {
        Ok(self.connection.close().await?)
    }
}

fn read(row: &Row) -> Result<RelayRow, StoreError> {
    let (payload, state) = (row.text(5)?, row.text_or_null(6)?);
    let is_too_long = payload == TOO_LONG || state.as_deref() == Some(TOO_LONG);
    Ok(RelayRow {
        id: row.text(0)?,
        queue: row.text(1)?,
        timeout_s: row.int(2)?,
        max_retries: row.int_or_null(3)?,
        retries_remaining: row.int_or_null(4)?,
        payload,
        state,
        is_too_long,
        in_flight: row.int(7)? != 0,
        run_id: row.text_or_null(8)?,
        run_at: row.int(9)?,
        expires_at: row.int_or_null(10)?,
        updated_at: row.int(11)?,
        created_at: row.int(12)?,
        is_due: row.int(13)? != 0,
    })
}

/// The columns that all versions of Relay's table have.
const REQUIRED: [&str; 12] = [
    "id",
    "queue",
    "timeout",
    "max_retries",
    "retries_remaining",
    "data",
    "state",
    "in_flight",
    "run_at",
    "expires_at",
    "updated_at",
    "created_at",
];

const COLUMNS: &str = "
SELECT CAST(column_name AS TEXT) FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = 'jobs'";

const COUNT: &str = "SELECT count(*) FROM jobs";

// Relay writes times without a time zone, in UTC.
const JOBS: &str = "
SELECT CAST(id AS TEXT), CAST(queue AS TEXT), CAST(extract(epoch FROM timeout) AS BIGINT),
    CAST(max_retries AS BIGINT), CAST(retries_remaining AS BIGINT),
    CASE WHEN octet_length(CAST(data AS TEXT)) > {max} THEN '<' ELSE CAST(data AS TEXT) END,
    CASE WHEN octet_length(CAST(state AS TEXT)) > {max} THEN '<' ELSE CAST(state AS TEXT) END,
    CASE WHEN in_flight THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END, {run_id},
    CAST(extract(epoch FROM run_at) * 1000000 AS BIGINT),
    CAST(extract(epoch FROM expires_at) * 1000000 AS BIGINT),
    CAST(extract(epoch FROM updated_at) * 1000000 AS BIGINT),
    CAST(extract(epoch FROM created_at) * 1000000 AS BIGINT),
    CASE WHEN run_at <= now() AT TIME ZONE 'UTC' THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END
FROM jobs ORDER BY run_at, created_at, queue, id";
