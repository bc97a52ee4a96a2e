//! Values and their order, as in SQLite: NULL, integers, real numbers and text, but no blobs.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::number::{self, Extent, Fit};
use crate::budget::{Budget, BudgetExceeded};

#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text {
        text: Cow<'a, str>,
        /// Whether the text is the result of a JSON function; other JSON functions then insert it as JSON (SQLite's
        /// subtype).
        is_json: bool,
    },
}

/// The conversion of operands before a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    None,
    Text,
    Numeric,
}

impl Affinity {
    /// The affinity of a comparison between operands with these two affinities.
    pub fn combine(self, other: Affinity) -> Affinity {
        match (self, other) {
            (Affinity::None, only) | (only, Affinity::None) => only,
            (Affinity::Text, Affinity::Text) => Affinity::None,
            _ => Affinity::Numeric,
        }
    }
}

/// The text up to its first NUL, where SQLite's C functions stop.
pub fn until_nul(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default()
}

impl<'a> Value<'a> {
    pub fn text(text: impl Into<Cow<'a, str>>) -> Value<'a> {
        Value::Text {
            text: text.into(),
            is_json: false,
        }
    }

    pub fn json(text: impl Into<Cow<'a, str>>) -> Value<'a> {
        Value::Text {
            text: text.into(),
            is_json: true,
        }
    }

    pub fn from_bool(condition: Option<bool>) -> Value<'a> {
        condition.map_or(Value::Null, |is_true| Value::Integer(i64::from(is_true)))
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The value as a condition; `None` for NULL.
    pub fn to_bool(&self, budget: &mut Budget) -> Result<Option<bool>, BudgetExceeded> {
        Ok(match self {
            Value::Null => None,
            Value::Integer(value) => Some(*value != 0),
            Value::Real(value) => Some(*value != 0.0),
            Value::Text { text, .. } => Some(number::real(text, budget)?.0 != 0.0),
        })
    }

    /// The value as text; `None` for NULL.
    pub fn to_text(&self, budget: &mut Budget) -> Result<Option<Cow<'_, str>>, BudgetExceeded> {
        Ok(match self {
            Value::Null => None,
            Value::Integer(value) => Some(Cow::Owned(value.to_string())),
            Value::Real(value) => Some(Cow::Owned(number::real_text(*value, budget)?)),
            Value::Text { text, .. } => Some(Cow::Borrowed(text)),
        })
    }

    pub fn into_text(self, budget: &mut Budget) -> Result<Option<Cow<'a, str>>, BudgetExceeded> {
        Ok(match self {
            Value::Text { text, .. } => Some(text),
            other => (other.to_text(budget)?).map(|text| Cow::Owned(text.into_owned())),
        })
    }

    /// The value as an integer: the one at the start of a text, a real number truncated and clamped, 0 for NULL.
    pub fn to_integer(&self, budget: &mut Budget) -> Result<i64, BudgetExceeded> {
        Ok(match self {
            Value::Null => 0,
            Value::Integer(value) => *value,
            Value::Real(value) => number::real_to_integer(*value),
            Value::Text { text, .. } => number::integer(text, budget)?.0,
        })
    }

    /// The value as a real number: the one at the start of a text, 0 for NULL.
    #[expect(
        clippy::cast_precision_loss,
        reason = "SQLite converts in the same way"
    )]
    pub fn to_real(&self, budget: &mut Budget) -> Result<f64, BudgetExceeded> {
        Ok(match self {
            Value::Null => 0.0,
            Value::Integer(value) => *value as f64,
            Value::Real(value) => *value,
            Value::Text { text, .. } => number::real(text, budget)?.0,
        })
    }

    /// The value as an operand of arithmetic: a text becomes the number at its start.
    pub fn to_number(&self, budget: &mut Budget) -> Result<Value<'static>, BudgetExceeded> {
        Ok(match self {
            Value::Null => Value::Null,
            Value::Integer(value) => Value::Integer(*value),
            Value::Real(value) => Value::Real(*value),
            Value::Text { text, .. } => {
                let (real, extent) = number::real(text, budget)?;
                let (integer, fit) = number::integer(text, budget)?;
                match (extent, fit) {
                    (Extent::Integer, Fit::Whole) | (Extent::Other, Fit::Whole | Fit::Prefix) => {
                        Value::Integer(integer)
                    }
                    _ => Value::Real(real),
                }
            }
        })
    }

    /// Applies an affinity: a numeric text becomes a number, a number becomes text, or the value is unchanged.
    fn apply_affinity(
        &self,
        affinity: Affinity,
        budget: &mut Budget,
    ) -> Result<Cow<'_, Value<'a>>, BudgetExceeded> {
        Ok(match (affinity, self) {
            (Affinity::Text, Value::Integer(_) | Value::Real(_)) => {
                let text = self.to_text(budget)?.unwrap_or_default();
                Cow::Owned(Value::text(text.into_owned()))
            }
            (Affinity::Numeric, Value::Text { text, .. }) => {
                let (real, extent) = number::real(text, budget)?;
                let (integer, fit) = number::integer(text, budget)?;
                match (extent, fit) {
                    (Extent::Integer, Fit::Whole) => Cow::Owned(Value::Integer(integer)),
                    (Extent::Integer | Extent::Real, _) => Cow::Owned(Value::Real(real)),
                    _ => Cow::Borrowed(self),
                }
            }
            _ => Cow::Borrowed(self),
        })
    }

    /// The order of two values after an affinity is applied. NULL comes first and equals itself.
    pub fn compare(
        &self,
        other: &Value<'_>,
        affinity: Affinity,
        budget: &mut Budget,
    ) -> Result<Ordering, BudgetExceeded> {
        let has_text = matches!(self, Value::Text { .. }) || matches!(other, Value::Text { .. });
        if affinity == Affinity::None || !has_text {
            return self.order(other, budget);
        }
        let (one, two) = (
            self.apply_affinity(affinity, budget)?,
            other.apply_affinity(affinity, budget)?,
        );
        one.order(&two, budget)
    }

    fn order(&self, other: &Value<'_>, budget: &mut Budget) -> Result<Ordering, BudgetExceeded> {
        Ok(match (self, other) {
            (Value::Integer(one), Value::Integer(two)) => one.cmp(two),
            (Value::Real(one), Value::Real(two)) => one.partial_cmp(two).unwrap_or(Ordering::Equal),
            (Value::Integer(one), Value::Real(two)) => integer_and_real(*one, *two),
            (Value::Real(one), Value::Integer(two)) => integer_and_real(*two, *one).reverse(),
            (Value::Text { text: one, .. }, Value::Text { text: two, .. }) => {
                budget.spend(one.len().min(two.len()))?;
                one.as_bytes().cmp(two.as_bytes())
            }
            _ => self.rank().cmp(&other.rank()),
        })
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Integer(_) | Value::Real(_) => 1,
            Value::Text { .. } => 2,
        }
    }
}

/// Compares exactly, without rounding either number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the range checks ensure that the number fits; it is rounded only if the integer parts are equal"
)]
fn integer_and_real(one: i64, two: f64) -> Ordering {
    if two < -9.223_372_036_854_776e18 {
        return Ordering::Greater;
    }
    if two >= 9.223_372_036_854_776e18 {
        return Ordering::Less;
    }
    let whole = two as i64;
    let rest = || (one as f64).partial_cmp(&two).unwrap_or(Ordering::Equal);
    one.cmp(&whole).then_with(rest)
}
