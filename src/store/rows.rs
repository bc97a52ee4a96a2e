//! Statements, their arguments and their answers, the same for every database.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use super::StoreError;

/// One SQL statement with its arguments `$1`, `$2`, … Arguments are always bound, never spliced.
#[derive(Clone, Debug)]
pub struct Statement {
    pub sql: &'static str,
    pub args: Vec<Arg>,
    /// How many rows it must change, if that is known: the guard against other writers.
    pub expected: Option<u64>,
}

impl Statement {
    pub fn new(sql: &'static str, args: impl IntoIterator<Item = Arg>) -> Statement {
        Statement {
            sql,
            args: args.into_iter().collect(),
            expected: None,
        }
    }

    /// A statement whose `$1` is a set of rows, as a JSON array.
    pub fn of_rows<T: serde::Serialize>(sql: &'static str, rows: &[T]) -> Statement {
        Statement {
            sql,
            args: vec![Arg::rows(rows)],
            expected: None,
        }
    }

    /// The statement must change one row for each of its set, or the group fails with a conflict.
    pub fn exactly(mut self, rows: usize) -> Statement {
        self.expected = Some(rows as u64);
        self
    }

    /// Another argument.
    pub fn with(mut self, arg: impl Into<Arg>) -> Statement {
        self.args.push(arg.into());
        self
    }
}

/// A bound value.
#[derive(Clone, Debug)]
pub enum Arg {
    Int(i64),
    Text(String),
}

impl Arg {
    /// A set of rows as a JSON array, to be unfolded by `rows(…)` (`store/dialect.rs`).
    pub fn rows<T: serde::Serialize>(rows: &[T]) -> Arg {
        // Rows are tuples of numbers and text; only a map with keys that are not text could fail.
        Arg::Text(serde_json::to_string(rows).unwrap_or_default())
    }
}

impl From<i64> for Arg {
    fn from(value: i64) -> Self {
        Arg::Int(value)
    }
}

impl From<&str> for Arg {
    fn from(value: &str) -> Self {
        Arg::Text(value.to_owned())
    }
}

impl From<String> for Arg {
    fn from(value: String) -> Self {
        Arg::Text(value)
    }
}

/// What one statement of a batch answered.
#[derive(Debug, Default)]
pub struct Answer {
    pub rows: Vec<Row>,
    /// Rows inserted, updated or deleted.
    pub affected: u64,
}

/// One row of an answer; columns are read by position. Integers are 64 bits wide.
#[derive(Debug)]
pub enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// Reads a column of a row of either kind.
macro_rules! get {
    ($row:expr, $column:expr) => {
        match $row {
            Row::Sqlite(row) => Ok(row.try_get_unchecked($column)?),
            Row::Postgres(row) => Ok(row.try_get_unchecked($column)?),
        }
    };
}

impl Row {
    /// How many columns the row has.
    pub fn columns(&self) -> usize {
        match self {
            Row::Sqlite(row) => row.len(),
            Row::Postgres(row) => row.len(),
        }
    }

    pub fn int(&self, column: usize) -> Result<i64, StoreError> {
        get!(self, column)
    }

    pub fn real(&self, column: usize) -> Result<f64, StoreError> {
        get!(self, column)
    }

    pub fn real_or_null(&self, column: usize) -> Result<Option<f64>, StoreError> {
        get!(self, column)
    }

    pub fn text(&self, column: usize) -> Result<String, StoreError> {
        get!(self, column)
    }

    pub fn int_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
        get!(self, column)
    }

    pub fn text_or_null(&self, column: usize) -> Result<Option<String>, StoreError> {
        get!(self, column)
    }
}
