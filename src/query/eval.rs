//! Evaluates a syntax tree for one job.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use super::Record;
use super::json::{Json, SQL_DEPTH_MAX};
use super::like::is_like;
use super::tree::{Arithmetic, Binary, Column, Compare, Node, Step, Type};
use super::value::{Affinity, Value};
use crate::budget::{Budget, BudgetExceeded};

/// Maximum length of a computed text, in bytes.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// Maximum length of a LIKE pattern, in bytes (SQLite's limit).
const PATTERN_BYTES_MAX: usize = 50_000;

/// The parsed JSON of a column: `None` if it is not parsed yet, `Some(None)` if it is not valid JSON.
type CachedJson<'a> = Option<Option<Rc<Json<'a>>>>;

/// The evaluation of a query for one job.
pub struct Evaluation<'a, 'w> {
    record: Record<'a>,
    now: i64,
    /// Each function that converts, compares or copies a text spends from it first.
    pub budget: &'w mut Budget,
    payload: CachedJson<'a>,
    state: CachedJson<'a>,
    events: CachedJson<'a>,
}

impl<'a, 'w> Evaluation<'a, 'w> {
    pub fn new(record: Record<'a>, now: i64, budget: &'w mut Budget) -> Evaluation<'a, 'w> {
        Evaluation {
            record,
            now,
            budget,
            payload: None,
            state: None,
            events: None,
        }
    }

    pub fn spend(&mut self, steps: usize) -> Result<(), BudgetExceeded> {
        self.budget.spend(steps)
    }

    /// Pays for a new text of `bytes` bytes.
    pub fn spend_on_text(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        if bytes > TEXT_BYTES_MAX {
            return Err(BudgetExceeded::Text);
        }
        self.spend(bytes)
    }

    pub fn eval(&mut self, node: &'a Node) -> Result<Value<'a>, BudgetExceeded> {
        self.spend(1)?;
        match node {
            Node::Value(value) => Ok(literal(value)),
            Node::Boolean(value) => Ok(Value::from_bool(Some(*value))),
            Node::Column(column) => Ok(self.column(*column)),
            Node::Now { as_text: false } => Ok(Value::Integer(self.now)),
            Node::Now { as_text: true } => Ok(Value::text(self.now.to_string())),
            Node::Chain(first, steps) => self.chain(first, steps),
            Node::Negative(inner) => {
                let value = self.eval(inner)?;
                let zero = Value::Integer(0);
                arithmetic(Arithmetic::Subtract, &zero, &value, self.budget)
            }
            Node::Positive(inner) => self.eval(inner),
            Node::Not(inner) => {
                let condition = self.eval_bool(inner)?;
                Ok(Value::from_bool(condition.map(|is_true| !is_true)))
            }
            Node::Cast(inner, kind) => {
                let value = self.eval(inner)?;
                cast(value, *kind, self.budget)
            }
            Node::Call(function, arguments) => self.call(*function, arguments),
        }
    }

    /// The value of a node as a condition; `None` for NULL.
    pub fn eval_bool(&mut self, node: &'a Node) -> Result<Option<bool>, BudgetExceeded> {
        self.eval(node)?.to_bool(self.budget)
    }

    fn column(&self, column: Column) -> Value<'a> {
        match column {
            Column::Id => Value::Integer(self.record.id),
            Column::Modified => Value::Integer(self.record.modified),
            Column::Payload => Value::text(self.record.payload),
            Column::Events => Value::text(self.record.events),
            Column::State => self.record.state.map_or(Value::Null, Value::text),
        }
    }

    /// The JSON of an argument; `None` if it is not valid. A column is parsed only once.
    pub fn json(&mut self, node: &'a Node) -> Result<Option<Rc<Json<'a>>>, BudgetExceeded> {
        let column = match node {
            Node::Column(column @ (Column::Payload | Column::State | Column::Events)) => *column,
            _ => {
                let text = self.eval(node)?.into_text(self.budget)?;
                return self.read(text).map(|json| json.map(Rc::new));
            }
        };
        if let Some(known) = self.cached_json(column) {
            return Ok(known.clone());
        }
        let text = self.column(column).into_text(self.budget)?;
        let json = self.read(text)?.map(Rc::new);
        *self.cached_json(column) = Some(json.clone());
        Ok(json)
    }

    fn cached_json(&mut self, column: Column) -> &mut CachedJson<'a> {
        match column {
            Column::Payload => &mut self.payload,
            Column::Events => &mut self.events,
            Column::State | Column::Id | Column::Modified => &mut self.state,
        }
    }

    fn read(&mut self, text: Option<Cow<'a, str>>) -> Result<Option<Json<'a>>, BudgetExceeded> {
        let Some(text) = text else {
            return Ok(None);
        };
        self.spend(text.len())?;
        Ok(Json::read(text, SQL_DEPTH_MAX).ok())
    }

    fn chain(&mut self, first: &'a Node, steps: &'a [Step]) -> Result<Value<'a>, BudgetExceeded> {
        let (mut affinity, mut steps) = (first.affinity(), steps.iter());
        // An arrow takes the parsed JSON of its left side, which is cached for a column.
        let mut value = match steps.as_slice() {
            [Step::Binary(Binary::Arrow { is_json }, label), ..] => {
                steps.next();
                affinity = Affinity::None;
                let json = self.json(first)?;
                self.arrow(json, *is_json, label)?
            }
            _ => self.eval(first)?,
        };
        for step in steps {
            value = self.step(value, affinity, step)?;
            affinity = Affinity::None;
        }
        Ok(value)
    }

    fn step(
        &mut self,
        left: Value<'a>,
        affinity: Affinity,
        step: &'a Step,
    ) -> Result<Value<'a>, BudgetExceeded> {
        match step {
            Step::Binary(operator, right) => self.binary(left, affinity, *operator, right),
            Step::IsNull(wanted) => Ok(Value::from_bool(Some(left.is_null() == *wanted))),
            Step::IsBoolean { value, not } => {
                let is_match = left.to_bool(self.budget)? == Some(*value);
                Ok(Value::from_bool(Some(is_match != *not)))
            }
            Step::Between { not, low, high } => {
                let above = self.compare(Compare::GreaterEqual, &left, affinity, low)?;
                let below = self.compare(Compare::LessEqual, &left, affinity, high)?;
                let between = and(above, below);
                Ok(Value::from_bool(between.map(|between| between != *not)))
            }
            Step::In { not, list } => {
                let found = self.is_in(&left, affinity, list)?;
                Ok(Value::from_bool(found.map(|found| found != *not)))
            }
        }
    }

    fn binary(
        &mut self,
        left: Value<'a>,
        affinity: Affinity,
        operator: Binary,
        right: &'a Node,
    ) -> Result<Value<'a>, BudgetExceeded> {
        match operator {
            Binary::And | Binary::Or => {
                // AND is decided by false, OR by true.
                let deciding = operator == Binary::Or;
                let left = left.to_bool(self.budget)?;
                if left == Some(deciding) {
                    return Ok(Value::from_bool(left));
                }
                let right = self.eval_bool(right)?;
                let both = if deciding {
                    or(left, right)
                } else {
                    and(left, right)
                };
                Ok(Value::from_bool(both))
            }
            Binary::Compare(compare) => {
                let result = self.compare(compare, &left, affinity, right)?;
                Ok(Value::from_bool(result))
            }
            Binary::Like { not } => {
                let right = self.eval(right)?;
                let (text, pattern) = (left.to_text(self.budget)?, right.to_text(self.budget)?);
                let (Some(text), Some(pattern)) = (text, pattern) else {
                    return Ok(Value::Null);
                };
                if pattern.len() > PATTERN_BYTES_MAX {
                    return Ok(Value::Null);
                }
                let is_like = is_like(&text, &pattern, self.budget)?;
                Ok(Value::from_bool(Some(is_like != not)))
            }
            Binary::Arithmetic(operator) => {
                let right = self.eval(right)?;
                arithmetic(operator, &left, &right, self.budget)
            }
            Binary::Concat => {
                let right = self.eval(right)?;
                let (left, right) = (left.to_text(self.budget)?, right.to_text(self.budget)?);
                let (Some(left), Some(right)) = (left, right) else {
                    return Ok(Value::Null);
                };
                self.spend_on_text(left.len() + right.len())?;
                let mut text = left.into_owned();
                text.push_str(&right);
                Ok(Value::text(text))
            }
            Binary::Arrow { is_json } => {
                let text = left.into_text(self.budget)?;
                let json = self.read(text)?.map(Rc::new);
                self.arrow(json, is_json, right)
            }
        }
    }

    fn compare(
        &mut self,
        operator: Compare,
        left: &Value<'a>,
        affinity: Affinity,
        right: &'a Node,
    ) -> Result<Option<bool>, BudgetExceeded> {
        let affinity = affinity.combine(right.affinity());
        let right = self.eval(right)?;
        let is_total = matches!(operator, Compare::Is | Compare::IsNot);
        if !is_total && (left.is_null() || right.is_null()) {
            return Ok(None);
        }
        let order = left.compare(&right, affinity, self.budget)?;
        Ok(Some(match operator {
            Compare::Is | Compare::Equal => order == Ordering::Equal,
            Compare::IsNot | Compare::NotEqual => order != Ordering::Equal,
            Compare::Less => order == Ordering::Less,
            Compare::LessEqual => order != Ordering::Greater,
            Compare::Greater => order == Ordering::Greater,
            Compare::GreaterEqual => order != Ordering::Less,
        }))
    }

    /// `IN` uses the affinity of its left side only.
    fn is_in(
        &mut self,
        left: &Value<'a>,
        affinity: Affinity,
        list: &'a [Node],
    ) -> Result<Option<bool>, BudgetExceeded> {
        if list.is_empty() {
            return Ok(Some(false));
        }
        let mut has_null = left.is_null();
        for node in list {
            let value = self.eval(node)?;
            if value.is_null() || left.is_null() {
                has_null = true;
            } else if left.compare(&value, affinity, self.budget)? == Ordering::Equal {
                return Ok(Some(true));
            }
        }
        Ok((!has_null).then_some(false))
    }
}

/// The result of `CAST`.
fn cast<'a>(
    value: Value<'a>,
    kind: Type,
    budget: &mut Budget,
) -> Result<Value<'a>, BudgetExceeded> {
    Ok(match (kind, value) {
        (_, Value::Null) => Value::Null,
        (Type::Integer, value) => Value::Integer(value.to_integer(budget)?),
        (Type::Real, value) => Value::Real(value.to_real(budget)?),
        // Keeps the JSON subtype.
        (Type::Text, text @ Value::Text { .. }) => text,
        (Type::Text, value) => Value::text(value.into_text(budget)?.unwrap_or_default()),
    })
}

/// The value of a literal, borrowed.
fn literal<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::Null => Value::Null,
        Value::Integer(value) => Value::Integer(*value),
        Value::Real(value) => Value::Real(*value),
        Value::Text { text, .. } => Value::text(text.as_ref()),
    }
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

/// Integers stay integers unless they overflow. Division by zero is NULL.
fn arithmetic(
    operator: Arithmetic,
    left: &Value<'_>,
    right: &Value<'_>,
    budget: &mut Budget,
) -> Result<Value<'static>, BudgetExceeded> {
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    if let (Value::Integer(one), Value::Integer(two)) =
        (&left.to_number(budget)?, &right.to_number(budget)?)
    {
        let is_division = matches!(operator, Arithmetic::Divide | Arithmetic::Remainder);
        if is_division && *two == 0 {
            return Ok(Value::Null);
        }
        let whole = match operator {
            Arithmetic::Add => one.checked_add(*two),
            Arithmetic::Subtract => one.checked_sub(*two),
            Arithmetic::Multiply => one.checked_mul(*two),
            Arithmetic::Divide => one.checked_div(*two),
            Arithmetic::Remainder => one.checked_rem(*two).or(Some(0)),
        };
        if let Some(whole) = whole {
            return Ok(Value::Integer(whole));
        }
    }
    let (one, two) = (left.to_real(budget)?, right.to_real(budget)?);
    let real = match operator {
        Arithmetic::Add => one + two,
        Arithmetic::Subtract => one - two,
        Arithmetic::Multiply => one * two,
        Arithmetic::Divide if two == 0.0 => return Ok(Value::Null),
        Arithmetic::Divide => one / two,
        Arithmetic::Remainder => {
            // SQLite converts a text to an integer here: '1e2' is 1.
            let (one, two) = (left.to_integer(budget)?, right.to_integer(budget)?);
            if two == 0 {
                return Ok(Value::Null);
            }
            Value::Integer(one.checked_rem(two).unwrap_or_default()).to_real(budget)?
        }
    };
    if real.is_nan() {
        return Ok(Value::Null);
    }
    Ok(Value::Real(real))
}
