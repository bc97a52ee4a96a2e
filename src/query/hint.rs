//! Derives conditions from a query that an index can check before any job is read.

use std::ops::RangeInclusive;

use super::Hint;
use super::tree::{Binary, Column, Compare, Function, Node, Step};
use super::value::Value;

/// The conditions that all terms together imply.
pub fn of(terms: &[Node]) -> Hint {
    let mut hint = Hint {
        first_text: None,
        no_state: false,
        has_state: false,
        ids: i64::MIN..=i64::MAX,
        modified: i64::MIN..=i64::MAX,
    };
    for term in terms {
        add_implied(Part::of(term), &mut hint);
    }
    hint
}

/// An expression or a prefix of one: its leftmost operand and the steps applied to it.
#[derive(Clone, Copy)]
struct Part<'q> {
    first: &'q Node,
    steps: &'q [Step],
}

impl<'q> Part<'q> {
    fn of(node: &'q Node) -> Part<'q> {
        match node {
            Node::Chain(first, steps) => Part { first, steps }.inner(),
            first => Part { first, steps: &[] },
        }
    }

    /// The part; without steps, the part of its operand, which can be a chain in parentheses.
    fn inner(self) -> Part<'q> {
        match self.steps {
            [] => Part::of(self.first),
            _ => self,
        }
    }

    /// The operand, if there are no steps.
    fn sole_operand(self) -> Option<&'q Node> {
        self.steps.is_empty().then_some(self.first)
    }

    fn column(self) -> Option<Column> {
        match self.sole_operand() {
            Some(Node::Column(column)) => Some(*column),
            _ => None,
        }
    }

    fn value(self) -> Option<&'q Value<'static>> {
        match self.sole_operand() {
            Some(Node::Value(value)) => Some(value),
            _ => None,
        }
    }

    /// Whether the expression is the first element of the state.
    fn is_first_text(self) -> bool {
        let is_state = |node: &Node| Part::of(node).column() == Some(Column::State);
        match (self.first, self.steps) {
            (Node::Call(Function::JsonExtract, arguments), []) => {
                matches!(arguments.as_slice(), [json, path] if is_state(json) && is_text(path, "$[0]"))
            }
            (json, [Step::Binary(Binary::Arrow { is_json: false }, label)]) => {
                let is_first = matches!(label, Node::Value(Value::Integer(0)));
                is_state(json) && (is_first || is_text(label, "$[0]"))
            }
            _ => false,
        }
    }
}

fn is_text(node: &Node, wanted: &str) -> bool {
    matches!(node, Node::Value(Value::Text { text, .. }) if text == wanted)
}

/// Adds to the hint what a true expression implies.
fn add_implied(part: Part<'_>, hint: &mut Hint) {
    let Some((last, before)) = part.steps.split_last() else {
        return;
    };
    let before = Part {
        first: part.first,
        steps: before,
    };
    let before = before.inner();
    match last {
        Step::Binary(Binary::And, right) => {
            add_implied(before, hint);
            add_implied(Part::of(right), hint);
        }
        Step::Binary(Binary::Compare(compare), right) => {
            let right = Part::of(right);
            add_compared(before, *compare, right, hint);
            add_compared(right, flipped(*compare), before, hint);
        }
        Step::IsNull(is_null) if before.column() == Some(Column::State) => {
            hint.no_state |= is_null;
            hint.has_state |= !is_null;
        }
        Step::IsBoolean {
            value: true,
            not: false,
        } => add_implied(before, hint),
        Step::In { not: false, list } => {
            if let [only] = list.as_slice() {
                add_compared(before, Compare::Equal, Part::of(only), hint);
            }
        }
        _ => {}
    }
}

/// Adds to the hint what a true comparison implies about its left side.
fn add_compared(left: Part<'_>, compare: Compare, right: Part<'_>, hint: &mut Hint) {
    let is_equal = matches!(compare, Compare::Is | Compare::Equal);
    let Some(value) = right.value() else {
        return;
    };
    match (left.column(), value) {
        (Some(Column::State), Value::Null) => {
            hint.no_state |= compare == Compare::Is;
            hint.has_state |= compare == Compare::IsNot;
        }
        (Some(Column::Id), value) => narrow(&mut hint.ids, compare, value),
        (Some(Column::Modified), value) => narrow(&mut hint.modified, compare, value),
        (None, Value::Text { text, .. }) if is_equal && left.is_first_text() => {
            hint.first_text
                .get_or_insert_with(|| text.clone().into_owned());
            hint.has_state = true;
        }
        // `x = 1` implies `x` if `x` can only be 1, 0 or NULL.
        (None, Value::Integer(1)) if is_equal && left.steps.last().is_some_and(is_boolean) => {
            add_implied(left, hint);
        }
        _ => {}
    }
}

/// Whether the result of a step can only be 1, 0 or NULL.
fn is_boolean(step: &Step) -> bool {
    match step {
        Step::Binary(operator, _) => matches!(
            operator,
            Binary::And | Binary::Or | Binary::Compare(_) | Binary::Like { .. }
        ),
        Step::IsNull(_) | Step::IsBoolean { .. } | Step::Between { .. } | Step::In { .. } => true,
    }
}

/// The comparison for exchanged sides.
fn flipped(compare: Compare) -> Compare {
    match compare {
        Compare::Less => Compare::Greater,
        Compare::LessEqual => Compare::GreaterEqual,
        Compare::Greater => Compare::Less,
        Compare::GreaterEqual => Compare::LessEqual,
        same @ (Compare::Is | Compare::IsNot | Compare::Equal | Compare::NotEqual) => same,
    }
}

/// Narrows a range to the integers for which a comparison with a number is true.
fn narrow(range: &mut RangeInclusive<i64>, compare: Compare, value: &Value<'_>) {
    // The nearest integers, which are equal unless the number has a fraction. Clamped to 64 bits.
    let (below, above) = match value {
        Value::Integer(value) => (*value, *value),
        Value::Real(value) => (
            super::number::real_to_integer(value.floor()),
            super::number::real_to_integer(value.ceil()),
        ),
        Value::Null | Value::Text { .. } => return,
    };
    let is_beyond = matches!(value, Value::Real(real) if real.abs() > 9.0e18);
    let step = i64::from(below == above && !is_beyond);
    let (start, end) = match compare {
        Compare::Is | Compare::Equal => (above, below),
        Compare::Less => (i64::MIN, below.saturating_sub(step)),
        Compare::LessEqual => (i64::MIN, below),
        Compare::Greater => (above.saturating_add(step), i64::MAX),
        Compare::GreaterEqual => (above, i64::MAX),
        Compare::IsNot | Compare::NotEqual => return,
    };
    *range = start.max(*range.start())..=end.min(*range.end());
}
