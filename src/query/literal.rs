//! Parses literals.

use super::number::{Fit, integer, real};
use super::value::Value;
use crate::budget::Budget;

/// `TRUE` and `FALSE`, in any case.
pub fn boolean(word: &str) -> Option<bool> {
    if word.eq_ignore_ascii_case("true") {
        return Some(true);
    }
    word.eq_ignore_ascii_case("false").then_some(false)
}

/// A text without its quotes. A doubled quote inside becomes a single one.
pub fn unquoted(quoted: &str) -> String {
    let mut chars = quoted.chars();
    let quote = chars.next().unwrap_or_default();
    chars.next_back();
    let doubled: String = [quote, quote].iter().collect();
    chars.as_str().replace(&doubled, &quote.to_string())
}

/// The value of a numeric literal: an integer if it fits in 64 bits, otherwise a real number. `None` for hexadecimal
/// literals that do not fit.
pub fn number(source: &str, is_negative: bool) -> Option<Value<'static>> {
    let digits = source.replace('_', "");
    let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    if let Some(digits) = hexadecimal {
        let bits = u64::from_str_radix(digits, 16).ok()?;
        let value = bits.cast_signed();
        let value = if is_negative {
            value.checked_neg()?
        } else {
            value
        };
        return Some(Value::Integer(value));
    }
    let signed = if is_negative {
        format!("-{digits}")
    } else {
        digits
    };
    let is_whole = !signed.contains(['.', 'e', 'E']);
    // Unlimited, because literals are parsed once, with the query.
    let mut budget = Budget::unlimited();
    Some(match integer(&signed, &mut budget).ok()? {
        (value, Fit::Whole) if is_whole => Value::Integer(value),
        _ => Value::Real(real(&signed, &mut budget).ok()?.0),
    })
}
