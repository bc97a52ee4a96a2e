//! Compares JSON texts by value.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Json, Kind, number, unescaped};

/// Whether two JSON texts have the same value: objects regardless of the order of their keys (the last of duplicate
/// keys counts), strings by their value without escapes, numbers by their exact value. Numbers whose exponents have
/// more than 18 digits are compared as text. A text that is not JSON equals nothing, not even itself.
pub fn are_equal(one: &str, two: &str) -> bool {
    let read = |text| Json::read(text, usize::MAX);
    let (Ok(one), Ok(two)) = (read(one), read(two)) else {
        return false;
    };
    let mut pairs = vec![(0, 0)];
    while let Some((left, right)) = pairs.pop() {
        if !entries_are_equal((&one, left), (&two, right), &mut pairs) {
            return false;
        }
    }
    true
}

/// Whether two entries are equal, apart from their children, which are added to `pairs`.
fn entries_are_equal(
    (one, left): (&Json<'_>, usize),
    (two, right): (&Json<'_>, usize),
    pairs: &mut Vec<(usize, usize)>,
) -> bool {
    let (Some(first), Some(second)) = (one.entry(left), two.entry(right)) else {
        return false;
    };
    match (first.kind, second.kind) {
        (Kind::Integer | Kind::Real, Kind::Integer | Kind::Real) => {
            number::are_equal(one.source(left), two.source(right))
        }
        (Kind::Text(_), Kind::Text(_)) => {
            raw_string_value(one, left) == raw_string_value(two, right)
        }
        (Kind::Array, Kind::Array) => {
            let (mut ours, mut theirs) = (one.children(left), two.children(right));
            loop {
                match (ours.next(), theirs.next()) {
                    (None, None) => return true,
                    (Some(left), Some(right)) if is_scalar(one, left) => {
                        // At once, because there can be millions.
                        if !entries_are_equal((one, left), (two, right), pairs) {
                            return false;
                        }
                    }
                    (Some(left), Some(right)) => pairs.push((left, right)),
                    _ => return false,
                }
            }
        }
        (Kind::Object, Kind::Object) => {
            let (ours, theirs) = (members(one, left), members(two, right));
            let is_same = ours.keys().eq(theirs.keys());
            pairs.extend(ours.into_values().zip(theirs.into_values()));
            is_same
        }
        (first, second) => first == second,
    }
}

fn is_scalar(json: &Json<'_>, index: usize) -> bool {
    let entry = json.entry(index);
    entry.is_some_and(|entry| !matches!(entry.kind, Kind::Array | Kind::Object))
}

/// The value of a string, including unpaired surrogates.
fn raw_string_value<'j>(json: &'j Json<'_>, index: usize) -> Cow<'j, [u8]> {
    match json.is_escaped(index) {
        true => Cow::Owned(unescaped(json.source(index))),
        false => Cow::Borrowed(json.source(index).as_bytes()),
    }
}

fn members<'j>(json: &'j Json<'_>, index: usize) -> BTreeMap<Cow<'j, [u8]>, usize> {
    let mut children = json.children(index);
    let mut members = BTreeMap::new();
    while let (Some(key), Some(value)) = (children.next(), children.next()) {
        members.insert(raw_string_value(json, key), value);
    }
    members
}
