//! What stands at a path of a payload, compared exactly: numbers never go through a float unless they are one.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::value::RawValue;

use super::{Compare, Pattern, Wanted};

/// A number as it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    /// Reads digits with a sign, a point or an exponent.
    pub fn read(text: &str) -> Option<Number> {
        let signs = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        if !text.bytes().all(signs) {
            return None;
        }
        let whole = text.parse().ok().map(Number::Whole);
        whole.or_else(|| text.parse().ok().map(Number::Real))
    }

    fn order(&self, other: &Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => Some(a.cmp(b)),
            (a, b) => a.as_real().partial_cmp(&b.as_real()),
        }
    }

    fn as_real(&self) -> f64 {
        match self {
            Number::Whole(whole) => *whole as f64,
            Number::Real(real) => *real,
        }
    }

    /// Whether `self` is in that relation to `other`.
    pub fn is(&self, compare: Compare, other: &Number) -> bool {
        self.order(other).is_some_and(|order| compare.holds(order))
    }
}

/// Whether there is what is wanted at the path. Names lead into objects, numbers (from 0) also into lists.
pub fn holds(text: &str, path: &[String], wanted: &Wanted) -> bool {
    let mut text = text;
    for name in path {
        let found = match text.trim_start().as_bytes().first() {
            Some(b'{') => {
                let object: Result<HashMap<String, &RawValue>, _> = serde_json::from_str(text);
                object.ok().and_then(|mut object| object.remove(name))
            }
            Some(b'[') => {
                let list: Result<Vec<&RawValue>, _> = serde_json::from_str(text);
                let index: Option<usize> = name.parse().ok();
                list.ok()
                    .zip(index)
                    .and_then(|(list, index)| list.get(index).copied())
            }
            _ => None,
        };
        match found {
            Some(found) => text = found.get(),
            None => return false,
        }
    }
    if text.trim_start().starts_with('[') && !is_anything(wanted) {
        // One of a list is enough.
        let list: Result<Vec<&RawValue>, _> = serde_json::from_str(text);
        return list.is_ok_and(|list| list.iter().any(|value| is(value.get(), wanted)));
    }
    is(text, wanted)
}

fn is_anything(wanted: &Wanted) -> bool {
    matches!(wanted, Wanted::Is(pattern) if pattern.is_any())
}

/// Whether one value is wanted.
fn is(value: &str, wanted: &Wanted) -> bool {
    let value = value.trim();
    let number = || match value.as_bytes().first() {
        Some(b'-' | b'0'..=b'9') => Number::read(value),
        _ => None,
    };
    match wanted {
        Wanted::Number(compare, than) => number().is_some_and(|number| number.is(*compare, than)),
        Wanted::Is(pattern) if pattern.is_any() => true,
        Wanted::Is(pattern) => match value.as_bytes().first() {
            Some(b'"') => serde_json::from_str::<String>(value).is_ok_and(|text| pattern.is(&text)),
            Some(b'{' | b'[') | None => false,
            Some(_) => pattern.is(value) || is_same_number(number(), pattern),
        },
    }
}

fn is_same_number(number: Option<Number>, pattern: &Pattern) -> bool {
    let wanted = pattern.exact().and_then(Number::read);
    number
        .zip(wanted)
        .is_some_and(|(number, wanted)| number.is(Compare::Is, &wanted))
}
