//! The query language of Jobq, which selects jobs.
//!
//! A query is a list of terms `[OP, EXPR, EXPR]`, all of which must hold. An expression is an SQLite expression over
//! the columns of one job: no subqueries, no other tables, and only the functions in `tree.rs`. SQLite's own grammar
//! parses it (`parse.rs`); anything else is rejected with its position. A query is never turned back into SQL.
//! `eval.rs` evaluates it for one job at a time, so it behaves the same on every database. A `Budget` bounds the work:
//! each function that converts, compares or copies a text pays for the bytes first.
//!
//! The result is that of SQLite 3.51 for `SELECT (EXPR) OP (EXPR)` over a row whose `id` and `modified` are INTEGER and
//! whose `payload`, `state` and `events` are TEXT (JSON without whitespace; the state `null` is NULL). `tests/query`
//! compares the two. Intended differences:
//!
//! * An expression that is a single word but not a column is a text: `CREATED`.
//! * Where SQLite fails the statement (malformed JSON, an invalid computed path, `abs` of the smallest integer, a LIKE
//!   pattern longer than 50,000 bytes), the function returns NULL. An invalid literal path is rejected.
//! * JSON is RFC 8259. SQLite's functions also accept JSON5 in computed texts.
//! * An unpaired surrogate in JSON becomes U+FFFD. A path index beyond 32 bits does not wrap around.
//! * `x IN ()` is always 0; to the right of `IS`, SQLite sometimes treats it as the keyword FALSE.
//! * `strftime` and `unixepoch` return the time passed to [`Query::matches`] and accept no other arguments.
//! * A computed text is at most `TEXT_BYTES_MAX` long; a longer one ends the evaluation with an error.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::budget::{Budget, BudgetExceeded, UpTo};

mod eval;
mod functions;
mod hint;
mod json;
mod label;
mod like;
mod literal;
mod number;
mod parse;
mod path;
mod tokens;
mod tree;
mod value;

pub use eval::TEXT_BYTES_MAX;
pub use json::{Malformed, are_equal, minified, parsed_bytes};
pub use label::{NO_STATE, label, label_of};
pub use tokens::{DEPTH_MAX, TOKENS_MAX};

use tree::{Binary, Compare, Node};
use value::Value;

/// Maximum number of terms in a query.
pub const TERMS_MAX: usize = 32;
/// Maximum length of an expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4_096;

/// A parsed query. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Query(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    text: String,
    terms: Vec<Node>,
    hint: Hint,
    used_columns: UsedColumns,
}

/// The columns of a job: JSON texts without whitespace (`minified`), and times in seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    pub id: i64,
    pub payload: &'a str,
    /// `None` for the state `null`.
    pub state: Option<&'a str>,
    pub events: &'a str,
    pub modified: i64,
}

/// The columns that a query uses. A [`Record`] may have empty texts for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsedColumns {
    pub payload: bool,
    pub state: bool,
    pub events: bool,
    /// The query uses the current time, so its result for an unchanged job can change.
    pub time: bool,
}

/// Necessary conditions of a match that an index can check. A job can meet all of them and still not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The required first element of the state ([`first_text_of`]).
    pub first_text: Option<String>,
    pub no_state: bool,
    pub has_state: bool,
    /// No job matches if the range is empty.
    pub ids: RangeInclusive<i64>,
    /// In seconds since 1970.
    pub modified: RangeInclusive<i64>,
}

/// Why a query is rejected, and where: the term (from 0), its part (0 is the operator), the character (from 1).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", self.position_text())]
pub struct QueryError {
    pub term: Option<usize>,
    pub part: Option<usize>,
    pub column: Option<usize>,
    pub why: String,
}

impl QueryError {
    fn position_text(&self) -> String {
        let index = |at: Option<usize>| at.map(|at| format!("[{at}]")).unwrap_or_default();
        let column = self.column.map(|column| format!(", column {column}"));
        let (term, part) = (index(self.term), index(self.part));
        format!("query{term}{part}{}: ", column.unwrap_or_default())
    }
}

/// An error in an expression, and its byte offset.
#[derive(Debug)]
struct ExpressionError {
    at: usize,
    why: String,
}

impl ExpressionError {
    fn new(at: usize, why: impl Into<String>) -> ExpressionError {
        let why = why.into();
        ExpressionError { at, why }
    }
}

impl Query {
    /// Parses the JSON text of a query. An empty list matches every job.
    pub fn parse(text: &str) -> Result<Query, QueryError> {
        let error = |term, part, why: &str| QueryError {
            term,
            part,
            column: None,
            why: why.to_owned(),
        };
        let UpTo::<TERMS_MAX, &RawValue>(items) = serde_json::from_str(text)
            .map_err(|_| error(None, None, "a query must be a list of [OP, EXPR, EXPR]"))?;
        if items.len() > TERMS_MAX {
            let why = format!("too many terms; the limit is {TERMS_MAX}");
            return Err(error(Some(TERMS_MAX), None, &why));
        }
        let mut terms = Vec::with_capacity(items.len());
        for (number, item) in items.into_iter().enumerate() {
            let parts: [&RawValue; 3] = serde_json::from_str(item.get())
                .map_err(|_| error(Some(number), None, "a term must be [OP, EXPR, EXPR]"))?;
            let [operator, left, right] = parts;
            let operator =
                read_operator(operator).map_err(|why| error(Some(number), Some(0), &why))?;
            let side = |part: usize, raw: &RawValue| {
                read_side(raw).map_err(|(column, why)| QueryError {
                    column,
                    ..error(Some(number), Some(part), &why)
                })
            };
            let (left, right) = (side(1, left)?, side(2, right)?);
            terms.push(Node::Chain(
                Box::new(left),
                vec![parse::step(operator, right)],
            ));
        }
        let mut used_columns = UsedColumns::default();
        for term in &terms {
            term.add_columns(&mut used_columns);
        }
        let hint = hint::of(&terms);
        Ok(Query(Arc::new(Parsed {
            text: text.to_owned(),
            terms,
            hint,
            used_columns,
        })))
    }

    /// The text that was parsed.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    pub fn hint(&self) -> &Hint {
        &self.0.hint
    }

    pub fn used_columns(&self) -> UsedColumns {
        self.0.used_columns
    }

    /// Whether the job matches. `now` is in seconds since 1970. The evaluation spends the budget.
    pub fn matches(
        &self,
        record: &Record<'_>,
        now: i64,
        budget: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        let mut evaluation = eval::Evaluation::new(*record, now, budget);
        for term in &self.0.terms {
            if evaluation.eval_bool(term)? != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The first element of a state, as in `Hint::first_text`: `json_extract(state, '$[0]')`, if that is a text.
pub fn first_text_of(state: Option<&str>) -> Option<String> {
    let state = json::Json::read(state?, json::SQL_DEPTH_MAX).ok()?;
    // Unlimited, because the length of a state is limited when it is written.
    let budget = &mut Budget::unlimited();
    let Ok(Ok(Some(found))) = path::find(&state, "[0]", budget) else {
        return None;
    };
    match functions::extracted(&state, found, budget) {
        Ok(Value::Text { text, .. }) => Some(text.into_owned()),
        _ => None,
    }
}

/// Operators are shorter, even with spaces and escapes. Of others, an error quotes only the beginning.
const OPERATOR_BYTES_MAX: usize = 200;

fn read_operator(raw: &RawValue) -> Result<Binary, String> {
    let known = [
        ("IS", Binary::Compare(Compare::Is)),
        ("IS NOT", Binary::Compare(Compare::IsNot)),
        ("LIKE", Binary::Like { not: false }),
        ("NOT LIKE", Binary::Like { not: true }),
        ("=", Binary::Compare(Compare::Equal)),
        ("==", Binary::Compare(Compare::Equal)),
        ("!=", Binary::Compare(Compare::NotEqual)),
        ("<>", Binary::Compare(Compare::NotEqual)),
        ("<", Binary::Compare(Compare::Less)),
        ("<=", Binary::Compare(Compare::LessEqual)),
        (">", Binary::Compare(Compare::Greater)),
        (">=", Binary::Compare(Compare::GreaterEqual)),
    ];
    let is_short = raw.get().len() <= OPERATOR_BYTES_MAX;
    let given: Option<String> = is_short
        .then(|| serde_json::from_str(raw.get()).ok())
        .flatten();
    let words = given.as_deref().map(|given| {
        let words: Vec<&str> = given.split_ascii_whitespace().collect();
        words.join(" ")
    });
    let same = |known: &str| {
        words
            .as_deref()
            .is_some_and(|words| known.eq_ignore_ascii_case(words))
    };
    let found = known.into_iter().find(|(name, _)| same(name));
    found.map(|(_, operator)| operator).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let given = given.unwrap_or_else(|| raw.get().chars().take(OPERATOR_BYTES_MAX).collect());
        format!(
            "{given} is not an operator; use one of {}",
            names.join(", ")
        )
    })
}

/// A side of a term: null, a number, true or false (1 or 0), or the text of an expression.
fn read_side(raw: &RawValue) -> Result<Node, (Option<usize>, String)> {
    let text = raw.get();
    match text.bytes().next() {
        Some(b'n') => Ok(Node::Value(Value::Null)),
        Some(b't') => Ok(Node::Value(Value::Integer(1))),
        Some(b'f') => Ok(Node::Value(Value::Integer(0))),
        Some(b'"') => {
            let unread = |_| (None, "the text is not valid Unicode".to_owned());
            read_expression(&serde_json::from_str::<String>(text).map_err(unread)?)
        }
        Some(b'[' | b'{') => {
            let why = "an expression must be text, a number, true, false or null";
            Err((None, why.to_owned()))
        }
        _ => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            let number = literal::number(digits, digits.len() < text.len());
            number
                .map(Node::Value)
                .ok_or((None, "not a valid number".to_owned()))
        }
    }
}

fn read_expression(text: &str) -> Result<Node, (Option<usize>, String)> {
    if text.len() > EXPRESSION_BYTES_MAX {
        let why = format!("the expression is too long; the limit is {EXPRESSION_BYTES_MAX} bytes");
        return Err((None, why));
    }
    parse::expression(text).map_err(|error| {
        let before = text.char_indices().take_while(|(at, _)| *at < error.at);
        (Some(before.count() + 1), error.why)
    })
}
