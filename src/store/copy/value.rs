//! The rows of a copy, and their checksum.

use std::hash::{DefaultHasher, Hasher};

use super::tables::{Kind, Table};
use crate::store::{Row, StoreError};

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
}

impl Value {
    /// Approximate memory use, in bytes.
    fn bytes(&self) -> usize {
        match self {
            Value::Text(text) => text.len() + 24,
            _ => 8,
        }
    }

    pub fn into_int(self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(value),
            _ => None,
        }
    }

    pub fn into_real(self) -> Option<f64> {
        match self {
            Value::Real(value) => Some(value),
            _ => None,
        }
    }

    pub fn into_text(self) -> Option<String> {
        match self {
            Value::Text(value) => Some(value),
            _ => None,
        }
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        match self {
            Value::Null => hasher.write_u8(0),
            Value::Int(value) => {
                hasher.write_u8(1);
                hasher.write(&value.to_le_bytes());
            }
            Value::Real(value) => {
                hasher.write_u8(2);
                // SQLite does not distinguish -0.0 from 0.0.
                hasher.write(&(value + 0.0).to_bits().to_le_bytes());
            }
            Value::Text(text) => {
                hasher.write_u8(3);
                hasher.write(&(text.len() as u64).to_le_bytes());
                hasher.write(text.as_bytes());
            }
        }
    }
}

/// The values of a row of the table.
///
/// # Errors
/// If a column has the wrong type.
pub fn values(table: &Table, row: &Row) -> Result<Vec<Value>, StoreError> {
    let columns = table.columns.iter().enumerate();
    let value = |(i, (_, kind)): (usize, &(&str, Kind))| {
        Ok(match kind {
            Kind::Int => row.int_or_null(i)?.map_or(Value::Null, Value::Int),
            Kind::Real => row.real_or_null(i)?.map_or(Value::Null, Value::Real),
            Kind::Text => row.text_or_null(i)?.map_or(Value::Null, Value::Text),
        })
    };
    columns.map(value).collect()
}

/// The number of rows and their checksum, which does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub rows: u64,
    pub checksum: u64,
}

impl Sum {
    /// Adds a row.
    pub fn add(&mut self, row: &[Value]) {
        let mut hasher = DefaultHasher::new();
        row.iter().for_each(|value| value.hash(&mut hasher));
        self.rows += 1;
        self.checksum = self.checksum.wrapping_add(hasher.finish());
    }
}

/// Rows that are written together.
#[derive(Default)]
pub struct Batch {
    pub rows: Vec<Vec<Value>>,
    bytes: usize,
}

/// Maximum number of rows in a batch.
const ROWS_MAX: usize = 1_000;

/// Approximate maximum size of a batch in bytes, unless a single row is larger.
const BYTES_MAX: usize = 4 << 20;

impl Batch {
    pub fn add(&mut self, row: Vec<Value>) {
        self.bytes += row.iter().map(Value::bytes).sum::<usize>();
        self.rows.push(row);
    }

    pub fn is_full(&self) -> bool {
        self.rows.len() >= ROWS_MAX || self.bytes >= BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(rows: &[&[Value]]) -> Sum {
        let mut sum = Sum::default();
        rows.iter().for_each(|row| sum.add(row));
        sum
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn a_checksum_depends_on_every_value_and_its_place_and_not_on_the_order_of_rows() {
        let (one, other) = (
            &[text("a"), Value::Int(1)][..],
            &[text("b"), Value::Null][..],
        );
        assert_eq!(sum(&[one, other]), sum(&[other, one]));
        for (left, right) in [
            (vec![text("a"), text("bc")], vec![text("ab"), text("c")]),
            (vec![text("a"), Value::Null], vec![Value::Null, text("a")]),
            (vec![Value::Int(0)], vec![Value::Null]),
            (vec![Value::Int(0)], vec![Value::Real(0.0)]),
            (vec![text("")], vec![Value::Null]),
            (
                vec![Value::Real(0.1)],
                vec![Value::Real(0.1 + f64::EPSILON)],
            ),
        ] {
            assert_ne!(sum(&[&left]), sum(&[&right]), "{left:?} {right:?}");
        }
        let zeros = [&[Value::Real(0.0)][..], &[Value::Real(-0.0)]];
        assert_eq!(sum(&zeros[..1]), sum(&zeros[1..]));
        assert_ne!(sum(&[one, other]), sum(&[one]));
    }

    #[test]
    fn a_batch_is_full_of_rows_or_of_bytes() {
        let mut batch = Batch::default();
        for _ in 1..ROWS_MAX {
            batch.add(vec![text("short"), Value::Int(1)]);
        }
        assert!(!batch.is_full());
        batch.add(vec![Value::Null]);
        assert!(batch.is_full());
        let mut batch = Batch::default();
        batch.add(vec![text(&"x".repeat(BYTES_MAX))]);
        assert!(batch.is_full());
    }
}
