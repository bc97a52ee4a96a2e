//! The functions of the query language.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use super::eval::Evaluation;
use super::json::{Json, Kind, SQL_DEPTH_MAX};
use super::number;
use super::path;
use super::tree::{Function, Node};
use super::value::{Affinity, Value, until_nul};
use crate::budget::{Budget, BudgetExceeded};

impl<'a> Evaluation<'a, '_> {
    pub fn call(
        &mut self,
        function: Function,
        arguments: &'a [Node],
    ) -> Result<Value<'a>, BudgetExceeded> {
        match (function, arguments) {
            // These functions do not evaluate all arguments, or take the first one as parsed JSON.
            (Function::Coalesce, _) => self.coalesce(arguments),
            (Function::Iif, [condition, then, otherwise @ ..]) => {
                if self.eval_bool(condition)? == Some(true) {
                    return self.eval(then);
                }
                let otherwise = otherwise.first();
                otherwise.map_or(Ok(Value::Null), |otherwise| self.eval(otherwise))
            }
            (Function::JsonExtract, [json, paths @ ..]) => self.json_extract(json, paths),
            (Function::JsonType, [json, path @ ..]) => {
                let found = self.json_at(json, path)?;
                let kind = found.and_then(|(json, at)| json.entry(at).map(|entry| entry.kind));
                Ok(kind.map_or(Value::Null, |kind| Value::text(type_name(kind))))
            }
            (Function::JsonArrayLength, [json, path @ ..]) => {
                let Some((json, at)) = self.json_at(json, path)? else {
                    return Ok(Value::Null);
                };
                let is_array = json.entry(at).map(|entry| entry.kind) == Some(Kind::Array);
                let count = if is_array {
                    json.children(at).count()
                } else {
                    0
                };
                self.spend(count)?;
                Ok(integer(count))
            }
            (Function::Json, [json]) => {
                let Some(json) = self.json(json)? else {
                    return Ok(Value::Null);
                };
                Ok(Value::json(json.minified(0, self.budget)?))
            }
            _ => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.eval(argument)?);
                }
                self.plain(function, values)
            }
        }
    }

    fn coalesce(&mut self, arguments: &'a [Node]) -> Result<Value<'a>, BudgetExceeded> {
        for argument in arguments {
            let value = self.eval(argument)?;
            if !value.is_null() {
                return Ok(value);
            }
        }
        Ok(Value::Null)
    }

    /// Calls a function that takes evaluated arguments.
    fn plain(
        &mut self,
        function: Function,
        values: Vec<Value<'a>>,
    ) -> Result<Value<'a>, BudgetExceeded> {
        for value in &values {
            if let Value::Text { text, .. } = value {
                self.spend(text.len())?;
            }
        }
        if function == Function::JsonArray {
            return self.json_array(&values);
        }
        if matches!(function, Function::Min | Function::Max) {
            return extreme(function, values, self.budget);
        }
        let mut values = values.into_iter();
        let first = values.next().unwrap_or(Value::Null);
        let (second, third) = (values.next(), values.next());
        Ok(match function {
            Function::TypeOf => Value::text(match first {
                Value::Null => "null",
                Value::Integer(_) => "integer",
                Value::Real(_) => "real",
                Value::Text { .. } => "text",
            }),
            Function::NullIf => {
                let second = second.unwrap_or(Value::Null);
                match first.compare(&second, Affinity::None, self.budget)? {
                    Ordering::Equal => Value::Null,
                    _ => first,
                }
            }
            _ if first.is_null() => Value::Null,
            Function::JsonValid => {
                let text = first.to_text(self.budget)?.unwrap_or_default();
                let is_valid = Json::read(text, SQL_DEPTH_MAX).is_ok();
                Value::from_bool(Some(is_valid))
            }
            Function::Length => integer(length(&first, self.budget)?),
            Function::Lower | Function::Upper => {
                let text = first.into_text(self.budget)?;
                let mut text = text.unwrap_or_default().into_owned();
                match function {
                    Function::Lower => text.make_ascii_lowercase(),
                    _ => text.make_ascii_uppercase(),
                }
                Value::text(text)
            }
            Function::Trim => self.trim(first, second.as_ref())?,
            Function::Substr => substr(first, second.as_ref(), third.as_ref(), self.budget)?,
            Function::Instr => self.instr(&first, second.as_ref())?,
            Function::Abs => match first {
                Value::Integer(value) => value.checked_abs().map_or(Value::Null, Value::Integer),
                other => Value::Real(other.to_real(self.budget)?.abs()),
            },
            Function::Round => match second {
                Some(Value::Null) => Value::Null,
                places => {
                    let places = places.map_or(Ok(0), |places| places.to_integer(self.budget))?;
                    let value = first.to_real(self.budget)?;
                    Value::Real(number::rounded(value, places, self.budget)?)
                }
            },
            _ => Value::Null,
        })
    }

    fn trim(
        &mut self,
        value: Value<'a>,
        set: Option<&Value<'_>>,
    ) -> Result<Value<'a>, BudgetExceeded> {
        let set = match set {
            None => Cow::Borrowed(" "),
            Some(set) => match set.to_text(self.budget)? {
                None => return Ok(Value::Null),
                Some(set) => set,
            },
        };
        let set = until_nul(&set);
        let text = value.into_text(self.budget)?.unwrap_or_default();
        // Searches the set for each character; the set can be as long as the text.
        let mut paid = Ok(());
        let trimmed = text.trim_matches(|char| {
            paid = paid.and_then(|()| self.spend(set.len()));
            paid.is_ok() && set.contains(char)
        });
        paid?;
        Ok(Value::text(trimmed.to_owned()))
    }

    fn instr(
        &mut self,
        value: &Value<'_>,
        wanted: Option<&Value<'_>>,
    ) -> Result<Value<'a>, BudgetExceeded> {
        let (Some(text), Some(wanted)) = (value.to_text(self.budget)?, wanted) else {
            return Ok(Value::Null);
        };
        let Some(wanted) = wanted.to_text(self.budget)? else {
            return Ok(Value::Null);
        };
        self.spend(text.len())?;
        let before = text.find(wanted.as_ref()).and_then(|at| text.get(..at));
        Ok(integer(
            before.map_or(0, |before| before.chars().count() + 1),
        ))
    }

    fn json_array(&mut self, values: &[Value<'_>]) -> Result<Value<'a>, BudgetExceeded> {
        let mut array = String::from("[");
        for (number, value) in values.iter().enumerate() {
            if number > 0 {
                array.push(',');
            }
            match value {
                Value::Null => array.push_str("null"),
                Value::Integer(value) => array.push_str(&value.to_string()),
                Value::Real(value) if value.is_infinite() => {
                    array.push_str(if *value < 0.0 {
                        "-9.0e+999"
                    } else {
                        "9.0e+999"
                    });
                }
                Value::Real(value) => array.push_str(&number::real_text(*value, self.budget)?),
                Value::Text {
                    text,
                    is_json: true,
                } => array.push_str(text),
                Value::Text { text, .. } => push_quoted(text, &mut array),
            }
            self.spend_on_text(array.len())?;
        }
        array.push(']');
        Ok(Value::json(array))
    }

    fn json_extract(
        &mut self,
        json: &'a Node,
        paths: &'a [Node],
    ) -> Result<Value<'a>, BudgetExceeded> {
        let Some(json) = self.json(json)? else {
            return Ok(Value::Null);
        };
        if let [path] = paths {
            let path = self.eval(path)?;
            let Some(Found::At(at)) = self.lookup(&json, &path)? else {
                return Ok(Value::Null);
            };
            return extracted(&json, at, self.budget);
        }
        let mut array = String::from("[");
        for (number, path) in paths.iter().enumerate() {
            let path = self.eval(path)?;
            if number > 0 {
                array.push(',');
            }
            match self.lookup(&json, &path)? {
                Some(Found::At(at)) => array.push_str(&json.minified(at, self.budget)?),
                Some(Found::Nothing) => array.push_str("null"),
                None => return Ok(Value::Null),
            }
            self.spend_on_text(array.len())?;
        }
        array.push(']');
        Ok(Value::json(array))
    }

    /// The JSON and the entry that a function uses: the root, or the target of the path.
    fn json_at(
        &mut self,
        json: &'a Node,
        path: &'a [Node],
    ) -> Result<Option<(Rc<Json<'a>>, usize)>, BudgetExceeded> {
        let Some(json) = self.json(json)? else {
            return Ok(None);
        };
        let Some(path) = path.first() else {
            return Ok(Some((json, 0)));
        };
        let path = self.eval(path)?;
        Ok(match self.lookup(&json, &path)? {
            Some(Found::At(at)) => Some((json, at)),
            _ => None,
        })
    }

    /// The target of a path; `None` if the path is invalid or NULL.
    fn lookup(
        &mut self,
        json: &Json<'_>,
        path: &Value<'_>,
    ) -> Result<Option<Found>, BudgetExceeded> {
        let Some(path) = path.to_text(self.budget)? else {
            return Ok(None);
        };
        self.spend(path.len())?;
        let Some(path) = until_nul(&path).strip_prefix('$') else {
            return Ok(None);
        };
        self.follow(json, path)
    }

    fn follow(&mut self, json: &Json<'_>, path: &str) -> Result<Option<Found>, BudgetExceeded> {
        let found = path::find(json, path, self.budget)?;
        Ok(match found {
            Ok(Some(at)) => Some(Found::At(at)),
            Ok(None) => Some(Found::Nothing),
            Err(path::BadPath) => None,
        })
    }

    /// `->` and `->>`. The right side is a path, a label or the index of an element.
    pub fn arrow(
        &mut self,
        json: Option<Rc<Json<'a>>>,
        is_json: bool,
        label: &'a Node,
    ) -> Result<Value<'a>, BudgetExceeded> {
        let label = self.eval(label)?;
        let (Some(json), Some(text)) = (json, label.to_text(self.budget)?) else {
            return Ok(Value::Null);
        };
        self.spend(text.len())?;
        let text = until_nul(&text);
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let found = if text.starts_with('$') {
            self.lookup(&json, &label)?
        } else if let Value::Integer(index) = label {
            let from_end = if index < 0 { "#" } else { "" };
            self.follow(&json, &format!("[{from_end}{index}]"))?
        } else if text.bytes().all(is_word) {
            self.follow(&json, &format!(".{text}"))?
        } else if text.starts_with('[') && text.len() >= 3 && text.ends_with(']') {
            self.follow(&json, text)?
        } else {
            self.follow(&json, &format!(".\"{text}\""))?
        };
        let Some(Found::At(at)) = found else {
            return Ok(Value::Null);
        };
        if is_json {
            return Ok(Value::json(json.minified(at, self.budget)?));
        }
        Ok(match extracted(&json, at, self.budget)? {
            Value::Text { text, .. } => Value::text(text),
            other => other,
        })
    }
}

enum Found {
    At(usize),
    Nothing,
}

/// Converts a JSON value to an SQL value. Arrays and objects become their JSON text.
pub fn extracted<'t>(
    json: &Json<'t>,
    at: usize,
    budget: &mut Budget,
) -> Result<Value<'t>, BudgetExceeded> {
    Ok(match json.entry(at).map(|entry| entry.kind) {
        None | Some(Kind::Null) => Value::Null,
        Some(Kind::True) => Value::Integer(1),
        Some(Kind::False) => Value::Integer(0),
        Some(Kind::Integer) => match number::integer(json.source(at), budget)? {
            (value, number::Fit::Whole) => Value::Integer(value),
            _ => Value::Real(number::real(json.source(at), budget)?.0),
        },
        Some(Kind::Real) => Value::Real(number::real(json.source(at), budget)?.0),
        Some(Kind::Text(_)) => Value::text(json.string_value(at, budget)?),
        Some(Kind::Array | Kind::Object) => Value::json(json.minified(at, budget)?),
    })
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::True => "true",
        Kind::False => "false",
        Kind::Integer => "integer",
        Kind::Real => "real",
        Kind::Text(_) => "text",
        Kind::Array => "array",
        Kind::Object => "object",
    }
}

fn integer<'a>(count: usize) -> Value<'a> {
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The number of characters of a text, or of bytes of a number as text.
fn length(value: &Value<'_>, budget: &mut Budget) -> Result<usize, BudgetExceeded> {
    Ok(match value {
        Value::Text { text, .. } => until_nul(text).chars().count(),
        other => other.to_text(budget)?.map_or(0, |text| text.len()),
    })
}

/// The minimum or maximum; NULL if any value is NULL. Among equal values, `min` returns the last and `max` the first.
fn extreme<'a>(
    function: Function,
    values: Vec<Value<'a>>,
    budget: &mut Budget,
) -> Result<Value<'a>, BudgetExceeded> {
    if values.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let mut values = values.into_iter();
    let mut best = values.next().unwrap_or(Value::Null);
    for next in values {
        let order = best.compare(&next, Affinity::None, budget)?;
        let is_next = match function {
            Function::Min => order != Ordering::Less,
            _ => order == Ordering::Less,
        };
        if is_next {
            best = next;
        }
    }
    Ok(best)
}

/// `substr`: characters count from 1, or from the end for a negative start. A negative count takes the characters
/// before the start.
fn substr<'a>(
    value: Value<'a>,
    start: Option<&Value<'_>>,
    count: Option<&Value<'_>>,
    budget: &mut Budget,
) -> Result<Value<'a>, BudgetExceeded> {
    let start = start.unwrap_or(&Value::Null);
    if start.is_null() || count.is_some_and(Value::is_null) {
        return Ok(Value::Null);
    }
    let text = value.into_text(budget)?.unwrap_or_default();
    let text = until_nul(&text);
    let mut start = start.to_integer(budget)?;
    let mut count = count.map_or(Ok(1_000_000_000), |count| count.to_integer(budget))?;
    if start < 0 {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        start = start.saturating_add(length);
        if start < 0 {
            count = if count < 0 {
                0
            } else {
                count.saturating_add(start)
            };
            start = 0;
        }
    } else if start > 0 {
        start -= 1;
    } else if count > 0 {
        count -= 1;
    }
    if count < 0 {
        count = if count < -start { start } else { -count };
        start -= count;
    }
    let (start, count) = (usize::try_from(start), usize::try_from(count));
    let (start, count) = (start.unwrap_or_default(), count.unwrap_or_default());
    let cut: String = text.chars().skip(start).take(count).collect();
    Ok(Value::text(cut))
}

/// Appends a text as a JSON string.
fn push_quoted(text: &str, json: &mut String) {
    json.push('"');
    for char in text.chars() {
        match char {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\u{8}' => json.push_str("\\b"),
            '\t' => json.push_str("\\t"),
            '\n' => json.push_str("\\n"),
            '\u{c}' => json.push_str("\\f"),
            '\r' => json.push_str("\\r"),
            '\0'..='\u{1f}' => json.push_str(&format!("\\u{:04x}", u32::from(char))),
            _ => json.push(char),
        }
    }
    json.push('"');
}
