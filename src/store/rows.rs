//! Statements, their arguments and their results, the same for every database.

use std::sync::Arc;

use rusqlite::types::Value;
use serde::ser::{Serialize, SerializeSeq, Serializer};
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row as _, Sqlite, TypeInfo, ValueRef};

use super::StoreError;
use super::row_serializer::RowSerializer;

/// One SQL statement with its arguments `$1`, `$2`, … Arguments are always bound, never inserted into the text.
#[derive(Clone, Debug)]
pub struct Statement {
    pub sql: &'static str,
    pub args: Vec<Arg>,
    /// The number of rows the statement must change, if known. Any other number is a conflict with another writer.
    pub expected: Option<u64>,
    /// See [`Statement::combinable`].
    pub is_combinable: bool,
    /// See [`Statement::measured`].
    pub bytes_max: Option<usize>,
}

impl Statement {
    pub fn new(sql: &'static str, args: impl IntoIterator<Item = Arg>) -> Statement {
        Statement {
            sql,
            args: args.into_iter().collect(),
            expected: None,
            is_combinable: false,
            bytes_max: None,
        }
    }

    /// A statement whose `$1` is a set of rows: tuples of numbers and text, all of the same length, or plain values.
    pub fn of_rows<T: Serialize>(sql: &'static str, rows: &[T]) -> Statement {
        // Most of these statements have another argument.
        let mut args = Vec::with_capacity(2);
        args.extend([Arg::Rows(Rows::of(rows))]);
        Statement {
            sql,
            args,
            expected: None,
            is_combinable: false,
            bytes_max: None,
        }
    }

    /// Limits the texts of the rows, which had `bytes` bytes when they were measured, to twice that and 1 MiB, not counting
    /// 1 KiB of each row: names are not measured. Other requests may have changed the rows since then, or added some.
    pub fn measured(mut self, bytes: usize) -> Statement {
        self.bytes_max = Some(grown_max(bytes));
        self
    }

    /// Requires the statement to change exactly `rows` rows; otherwise the group fails with a conflict.
    pub fn exactly(mut self, rows: usize) -> Statement {
        self.expected = Some(rows as u64);
        self
    }

    /// Lets Postgres run the statement together with others of the batch that are combinable (`postgres/combined.rs`).
    /// None of them reads or changes rows of another, nor has a `WITH` or `RETURNING` clause. They may delete a job and
    /// insert one with its ID: if the insertion came first, it would violate a constraint, and the group would run again.
    pub fn combinable(mut self) -> Statement {
        self.is_combinable = true;
        self
    }

    /// Whether Postgres runs the statement together with the next one.
    pub fn combines_with(&self, next: &Statement) -> bool {
        let both = self.is_combinable && next.is_combinable;
        both && self.expected.is_some() && next.expected.is_none()
    }

    /// Adds the rows of the next statement, if both are combinable, have the same text, and no other arguments. Otherwise
    /// returns it.
    pub(super) fn merge(&mut self, mut next: Statement) -> Option<Statement> {
        let is_same = self.is_combinable && next.is_combinable && std::ptr::eq(self.sql, next.sql);
        let ([Arg::Rows(rows)], [Arg::Rows(more)], true) =
            (&mut *self.args, &mut *next.args, is_same)
        else {
            return Some(next);
        };
        rows.values.append(&mut more.values);
        self.expected = self.expected.zip(next.expected).map(|(a, b)| a + b);
        None
    }

    /// Adds an argument.
    pub fn with(mut self, arg: impl Into<Arg>) -> Statement {
        self.args.push(arg.into());
        self
    }
}

/// The size in bytes to which a result of `bytes` bytes may have grown since it was measured.
pub fn grown_max(bytes: usize) -> usize {
    bytes.saturating_mul(2).saturating_add(1 << 20)
}

/// Bytes of a row that are not measured.
const NAMES_BYTES: usize = 1 << 10;

/// How many bytes the next rows of a statement may have ([`Statement::measured`]).
pub struct BytesLeft(usize);

impl BytesLeft {
    /// `None` if the number is unlimited.
    pub fn of(bytes_max: Option<usize>) -> Option<BytesLeft> {
        bytes_max.map(BytesLeft)
    }

    /// Counts a row.
    ///
    /// # Errors
    /// [`StoreError::Grown`].
    pub fn count(&mut self, row: &Row) -> Result<(), StoreError> {
        let counted = row.text_bytes().saturating_sub(NAMES_BYTES);
        let left = self.0.checked_sub(counted);
        self.0 = left.ok_or(StoreError::Grown)?;
        Ok(())
    }
}

/// A bound value, or a set of rows for `rows(…)` (`store/dialect.rs`).
#[derive(Clone, Debug, Default)]
pub enum Arg {
    #[default]
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    /// A long text, which is not copied.
    Shared(Arc<str>),
    Rows(Rows),
}

impl Serialize for Arg {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Arg::Null | Arg::Rows(_) => serializer.serialize_unit(),
            Arg::Int(value) => serializer.serialize_i64(*value),
            Arg::Real(value) => serializer.serialize_f64(*value),
            Arg::Text(value) => serializer.serialize_str(value),
            Arg::Shared(value) => serializer.serialize_str(value),
        }
    }
}

/// A set of rows. The first column is never null.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The number of columns.
    pub width: usize,
    /// Whether the rows are plain values instead of tuples.
    is_plain: bool,
    /// Row by row.
    pub values: Vec<Arg>,
}

impl Rows {
    fn of<T: Serialize>(rows: &[T]) -> Rows {
        let mut serializer = RowSerializer::default();
        // Fails only for values that are neither numbers nor text, and no caller has such rows.
        rows.iter()
            .try_for_each(|row| row.serialize(&mut serializer))
            .ok();
        Rows {
            width: serializer.values.len().checked_div(rows.len()).unwrap_or(1),
            is_plain: !serializer.is_tuple,
            values: serializer.values,
        }
    }

    pub fn len(&self) -> usize {
        self.values.len() / self.width.max(1)
    }

    /// As a JSON array.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for Rows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.len()))?;
        for row in self.values.chunks(self.width.max(1)) {
            match row {
                [value] if self.is_plain => rows.serialize_element(value)?,
                columns => rows.serialize_element(columns)?,
            }
        }
        rows.end()
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

/// The result of one statement of a batch.
#[derive(Debug, Default)]
pub struct StatementResult {
    pub rows: Vec<Row>,
    /// Rows inserted, updated or deleted.
    pub affected: u64,
}

/// One row of a result. Columns are read by position; integers have 64 bits.
#[derive(Debug)]
pub enum Row {
    /// From SQLite's writing connection.
    Values(Box<[Value]>),
    /// From SQLite's reading connections.
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// Reads a column of a row of any kind. `$of_value` converts a column of [`Row::Values`].
macro_rules! get {
    ($row:expr, $column:expr, $of_value:expr) => {
        match $row {
            Row::Values(values) => match values.get($column) {
                Some(value) => $of_value(value),
                None => Err(StoreError::Corrupt("a column is missing")),
            },
            Row::Sqlite(row) => Ok(row.try_get_unchecked($column)?),
            Row::Postgres(row) => Ok(row.try_get_unchecked($column)?),
        }
    };
}

/// Numbers convert as SQLite converts them.
#[expect(clippy::cast_possible_truncation, reason = "as SQLite does")]
fn int(value: &Value) -> Result<i64, StoreError> {
    match value {
        Value::Integer(value) => Ok(*value),
        Value::Real(value) => Ok(*value as i64),
        _ => Err(StoreError::Corrupt("expected an integer")),
    }
}

fn real(value: &Value) -> Result<f64, StoreError> {
    match value {
        Value::Integer(value) => Ok(*value as f64),
        Value::Real(value) => Ok(*value),
        _ => Err(StoreError::Corrupt("expected a number")),
    }
}

fn text(value: &Value) -> Result<String, StoreError> {
    match value {
        Value::Integer(value) => Ok(value.to_string()),
        Value::Text(value) => Ok(value.clone()),
        _ => Err(StoreError::Corrupt("expected text")),
    }
}

/// `read`, or `None` for null.
fn or_null<T>(
    read: impl Fn(&Value) -> Result<T, StoreError>,
) -> impl Fn(&Value) -> Result<Option<T>, StoreError> {
    move |value| match value {
        Value::Null => Ok(None),
        value => read(value).map(Some),
    }
}

impl Row {
    /// The number of columns.
    pub fn columns(&self) -> usize {
        match self {
            Row::Values(values) => values.len(),
            Row::Sqlite(row) => row.len(),
            Row::Postgres(row) => row.len(),
        }
    }

    /// The size of its texts in bytes.
    pub fn text_bytes(&self) -> usize {
        let bytes = |column| match self {
            Row::Values(values) => match values.get(column)? {
                Value::Text(text) => Some(text.len()),
                _ => None,
            },
            Row::Sqlite(row) => {
                let value = row.try_get_raw(column).ok()?;
                let is_text = value.type_info().name() == "TEXT";
                is_text.then(|| <&str as Decode<Sqlite>>::decode(value).map_or(0, str::len))
            }
            Row::Postgres(row) => Some(row.try_get_raw(column).ok()?.as_bytes().ok()?.len()),
        };
        (0..self.columns()).filter_map(bytes).sum()
    }

    pub fn int(&self, column: usize) -> Result<i64, StoreError> {
        get!(self, column, int)
    }

    pub fn real(&self, column: usize) -> Result<f64, StoreError> {
        get!(self, column, real)
    }

    pub fn real_or_null(&self, column: usize) -> Result<Option<f64>, StoreError> {
        get!(self, column, or_null(real))
    }

    pub fn text(&self, column: usize) -> Result<String, StoreError> {
        get!(self, column, text)
    }

    /// Like [`Row::text`], but moves the text out of [`Row::Values`] instead of copying it, which leaves null there.
    pub fn take_text(&mut self, column: usize) -> Result<String, StoreError> {
        if let Row::Values(values) = self
            && let Some(value @ Value::Text(_)) = values.get_mut(column)
            && let Value::Text(text) = std::mem::replace(value, Value::Null)
        {
            return Ok(text);
        }
        self.text(column)
    }

    pub fn int_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
        get!(self, column, or_null(int))
    }

    pub fn text_or_null(&self, column: usize) -> Result<Option<String>, StoreError> {
        get!(self, column, or_null(text))
    }
}
