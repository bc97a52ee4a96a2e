//! JSON paths: `$`, `.key`, `."quoted key"`, `[3]`, `[#-1]`.

use std::borrow::Cow;

use super::json::{Json, Kind};
use crate::budget::{Budget, BudgetExceeded};

/// A step of a path.
enum Step<'p> {
    Key(Cow<'p, str>),
    Index(usize),
    /// Distance from the end; 0 is the position after the last element.
    FromEnd(usize),
}

/// The path is invalid.
pub struct BadPath;

pub fn is_path(path: &str) -> bool {
    let Some(mut rest) = path.strip_prefix('$') else {
        return false;
    };
    loop {
        match step(rest) {
            Ok(None) => return true,
            Ok(Some((_, after))) => rest = after,
            Err(BadPath) => return false,
        }
    }
}

/// The entry at a path, given without its `$`. Spends the bytes of the path and of the compared keys, and one step per
/// visited entry.
pub fn find(
    json: &Json<'_>,
    path: &str,
    budget: &mut Budget,
) -> Result<Result<Option<usize>, BadPath>, BudgetExceeded> {
    budget.spend(path.len())?;
    let mut at = 0;
    let mut rest = path;
    loop {
        let (step, after) = match step(rest) {
            Ok(Some(step)) => step,
            Ok(None) => return Ok(Ok(Some(at))),
            Err(BadPath) => return Ok(Err(BadPath)),
        };
        let Some(found) = follow(json, at, &step, budget)? else {
            return Ok(Ok(None));
        };
        (at, rest) = (found, after);
    }
}

/// The first step of a path, and the rest.
fn step(path: &str) -> Result<Option<(Step<'_>, &str)>, BadPath> {
    if path.is_empty() {
        return Ok(None);
    }
    if let Some(quoted) = path.strip_prefix(".\"") {
        let end = quote_end(quoted).ok_or(BadPath)?;
        let (key, after) = quoted.split_at_checked(end).ok_or(BadPath)?;
        let after = after.strip_prefix('"').ok_or(BadPath)?;
        return Ok(Some((Step::Key(key_of(key)), after)));
    }
    if let Some(key) = path.strip_prefix('.') {
        let end = key.find(['.', '[']).unwrap_or(key.len());
        let (key, after) = key.split_at_checked(end).ok_or(BadPath)?;
        if key.is_empty() {
            return Err(BadPath);
        }
        return Ok(Some((Step::Key(Cow::Borrowed(key)), after)));
    }
    let inner = path.strip_prefix('[').ok_or(BadPath)?;
    let (inner, after) = inner.split_once(']').ok_or(BadPath)?;
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number
            .then(|| digits.parse().unwrap_or(usize::MAX))
            .ok_or(BadPath)
    };
    let step = match inner.strip_prefix('#') {
        None => Step::Index(number(inner)?),
        Some("") => Step::FromEnd(0),
        Some(back) => Step::FromEnd(number(back.strip_prefix('-').ok_or(BadPath)?)?),
    };
    Ok(Some((step, after)))
}

fn quote_end(quoted: &str) -> Option<usize> {
    let mut is_escaped = false;
    quoted.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// Resolves the JSON escapes of a key.
fn key_of(source: &str) -> Cow<'_, str> {
    if !source.contains('\\') {
        return Cow::Borrowed(source);
    }
    let text = format!("\"{source}\"");
    // Unlimited, because the bytes of the path are already paid for.
    let budget = &mut Budget::unlimited();
    let string_value =
        Json::read(text.as_str(), 1).map(|json| json.string_value(0, budget).map(Cow::into_owned));
    match string_value {
        Ok(Ok(string_value)) => Cow::Owned(string_value),
        Ok(Err(_)) | Err(_) => Cow::Borrowed(source),
    }
}

/// The entry that a step leads to.
fn follow(
    json: &Json<'_>,
    at: usize,
    step: &Step<'_>,
    budget: &mut Budget,
) -> Result<Option<usize>, BudgetExceeded> {
    budget.spend(1)?;
    let mut children = json.children(at);
    match (step, json.entry(at).map(|entry| entry.kind)) {
        (Step::Key(wanted), Some(Kind::Object)) => {
            while let (Some(key), Some(value)) = (children.next(), children.next()) {
                budget.spend(1)?;
                if json.key_is(key, wanted, budget)? {
                    return Ok(Some(value));
                }
            }
            Ok(None)
        }
        (Step::Index(index), Some(Kind::Array)) => nth(children, *index, budget),
        (Step::FromEnd(back), Some(Kind::Array)) => {
            let mut count: usize = 0;
            for _ in children.by_ref() {
                budget.spend(1)?;
                count += 1;
            }
            match count.checked_sub(*back) {
                Some(index) => nth(json.children(at), index, budget),
                None => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

fn nth(
    children: impl Iterator<Item = usize>,
    index: usize,
    budget: &mut Budget,
) -> Result<Option<usize>, BudgetExceeded> {
    for (number, child) in children.enumerate() {
        budget.spend(1)?;
        if number == index {
            return Ok(Some(child));
        }
    }
    Ok(None)
}
