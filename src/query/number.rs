//! Conversions between numbers and text. They follow SQLite's algorithms step by step, even where those are not the
//! most exact, so that a query finds the same jobs as in SQLite.

use std::fmt::Write;

use crate::budget::{Budget, BudgetExceeded};

/// How much of a text is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it is an integer, possibly of more than 64 bits.
    Integer,
    /// All of it is a number with a fraction or an exponent.
    Real,
    /// It starts with a number that has a fraction or an exponent.
    RealPrefix,
    /// It starts with an integer or with no number.
    Other,
}

/// Whether an integer fits in 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The text is the number.
    Whole,
    /// Other text follows the number, or there is no number.
    Prefix,
    /// The number does not fit; the result is the nearest number that fits.
    Overflow,
}

/// Whitespace in SQLite.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// A cursor over bytes.
struct Bytes<'t>(&'t [u8]);

impl Bytes<'_> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn skip(&mut self) {
        self.0 = self.0.get(1..).unwrap_or_default();
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.skip();
        }
    }

    /// Consumes a sign. True for a minus.
    fn sign(&mut self) -> bool {
        let sign = self.peek().filter(|byte| matches!(byte, b'-' | b'+'));
        if sign.is_some() {
            self.skip();
        }
        sign == Some(b'-')
    }

    fn digit(&mut self) -> Option<u64> {
        let digit = self.peek().filter(u8::is_ascii_digit)?;
        self.skip();
        Some(u64::from(digit - b'0'))
    }
}

/// The integer at the start of a text (`sqlite3Atoi64`).
pub fn integer(text: &str, budget: &mut Budget) -> Result<(i64, Fit), BudgetExceeded> {
    budget.spend(text.len())?;
    Ok(read_integer(text))
}

fn read_integer(text: &str) -> (i64, Fit) {
    let mut bytes = Bytes(text.as_bytes());
    bytes.skip_spaces();
    let is_negative = bytes.sign();
    let mut value: i128 = 0;
    let mut is_empty = true;
    while let Some(digit) = bytes.digit() {
        is_empty = false;
        // Beyond 64 bits, further digits do not change the result.
        if value < i128::from(u64::MAX) {
            value = value * 10 + i128::from(digit);
        }
    }
    bytes.skip_spaces();
    let value = if is_negative { -value } else { value };
    let Ok(fitting) = i64::try_from(value) else {
        let nearest = if is_negative { i64::MIN } else { i64::MAX };
        return (nearest, Fit::Overflow);
    };
    if is_empty || bytes.peek().is_some() {
        return (fitting, Fit::Prefix);
    }
    (fitting, Fit::Whole)
}

/// Above this significand, further digits are only counted.
const SIGNIFICAND_MAX: u64 = (u64::MAX - 9) / 10;

/// Work of reading an exponent, in addition to the bytes of the text.
const EXPONENT_WORK: usize = 16;

/// Work of computing the decimal digits of a real number.
const DIGITS_WORK: usize = 32;

/// The number at the start of a text, 0 if there is none (`sqlite3AtoF`).
pub fn real(text: &str, budget: &mut Budget) -> Result<(f64, Extent), BudgetExceeded> {
    budget.spend(text.len() + EXPONENT_WORK)?;
    Ok(read_real(text))
}

fn read_real(text: &str) -> (f64, Extent) {
    let mut bytes = Bytes(text.as_bytes());
    bytes.skip_spaces();
    let is_negative = bytes.sign();
    let mut significand: u64 = 0;
    let mut shift: i64 = 0;
    let mut has_digits = false;
    let mut is_real = false;
    while let Some(digit) = bytes.digit() {
        has_digits = true;
        if significand < SIGNIFICAND_MAX {
            significand = significand * 10 + digit;
        } else {
            shift += 1;
        }
    }
    if bytes.peek() == Some(b'.') {
        is_real = true;
        bytes.skip();
        while let Some(digit) = bytes.digit() {
            if significand < SIGNIFICAND_MAX {
                has_digits = true;
                significand = significand * 10 + digit;
                shift -= 1;
            }
        }
    }
    let has_point = is_real;
    let mut exponent: i64 = 0;
    let mut is_whole = true;
    if bytes.peek().is_some_and(|byte| matches!(byte, b'e' | b'E')) {
        is_real = true;
        is_whole = false;
        bytes.skip();
        let is_small = bytes.sign();
        while let Some(digit) = bytes.digit() {
            is_whole = true;
            exponent = (exponent * 10 + i64::try_from(digit).unwrap_or(9)).min(10_000);
        }
        exponent = if is_small { -exponent } else { exponent };
    }
    bytes.skip_spaces();
    let value = scaled(significand, exponent.saturating_add(shift));
    let value = if is_negative { -value } else { value };
    let is_end = bytes.peek().is_none();
    let extent = match (is_end && has_digits && is_whole, is_real) {
        (true, true) => Extent::Real,
        (true, false) => Extent::Integer,
        // In SQLite, `1.5e` starts with a real number and `1e` with an integer.
        (false, true) if has_digits && (is_whole || has_point) => Extent::RealPrefix,
        _ => Extent::Other,
    };
    (value, extent)
}

/// `significand * 10^exponent`, computed with the precision of two doubles.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the second double holds the rounding error"
)]
fn scaled(mut significand: u64, mut exponent: i64) -> f64 {
    if significand == 0 {
        return 0.0;
    }
    while exponent > 0 && significand < (u64::MAX - 0x7ff) / 10 {
        significand *= 10;
        exponent -= 1;
    }
    while exponent < 0 && significand.is_multiple_of(10) {
        significand /= 10;
        exponent += 1;
    }
    let mut pair = Pair(significand as f64, 0.0);
    if pair.0 <= 1.844_674_407_370_955e19 {
        let back = pair.0 as u64;
        pair.1 = if significand >= back {
            (significand - back) as f64
        } else {
            -((back - significand) as f64)
        };
    }
    for (step, up, down) in POWERS {
        while exponent >= step {
            exponent -= step;
            pair.multiply(up);
        }
        while exponent <= -step {
            exponent += step;
            pair.multiply(down);
        }
    }
    let value = pair.0 + pair.1;
    if value.is_nan() { f64::INFINITY } else { value }
}

/// A double and its rounding error.
type Exact = (f64, f64);

/// For each exponent, the power of ten and its inverse.
const POWERS: [(i64, Exact, Exact); 3] = [
    (
        100,
        (1.0e100, -1.590_289_110_975_991_8e83),
        (1.0e-100, -1.999_189_980_260_288_4e-117),
    ),
    (10, (1.0e10, 0.0), (1.0e-10, -3.643_219_731_549_774e-27)),
    (1, (1.0e1, 0.0), (1.0e-1, -5.551_115_123_125_783e-18)),
];

/// A number as the sum of two doubles.
#[derive(Clone, Copy)]
struct Pair(f64, f64);

impl Pair {
    /// Dekker's multiplication.
    fn multiply(&mut self, (factor, rest): Exact) {
        let upper = |value: f64| f64::from_bits(value.to_bits() & 0xffff_ffff_fc00_0000);
        let (high, factor_high) = (upper(self.0), upper(factor));
        let (low, factor_low) = (self.0 - high, factor - factor_high);
        let product = high * factor_high;
        let cross = high * factor_low + low * factor_high;
        let sum = product + cross;
        let lost = product - sum + cross + low * factor_low;
        let lost = self.0 * rest + self.1 * factor + lost;
        self.0 = {
            let first = sum + lost;
            self.1 = sum - first;
            first
        };
        self.1 += lost;
    }
}

/// The decimal form of a positive number: digits without trailing zeros, and the position of the decimal point.
struct Decimal {
    digits: Vec<u8>,
    point: i64,
}

/// Maximum number of digits of a number in SQLite.
const DIGITS_MAX: i64 = 26;

/// Rounds to a number of digits (`Round::Digits`) or of decimal places (`Round::Places`), as `sqlite3FpDecode` does.
enum Round {
    Digits(i64),
    Places(i64),
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both parts are between 0 and 2^64 here"
)]
fn decimal(value: f64, round: &Round) -> Decimal {
    let mut pair = Pair(value, 0.0);
    let mut exponent = 0;
    let limits = [
        (100, 9.223_372_036_854_774e118, 9.223_372_036_854_775e-83),
        (10, 9.223_372_036_854_774e28, 9.223_372_036_854_775e7),
        (1, 9.223_372_036_854_775e18, 9.223_372_036_854_775e17),
    ];
    let is_large = pair.0 > 9.223_372_036_854_775e18;
    for ((step, above, below), (_, up, down)) in limits.into_iter().zip(POWERS) {
        while is_large && pair.0 > above {
            exponent += step;
            pair.multiply(down);
        }
        while !is_large && pair.0 < below {
            exponent -= step;
            pair.multiply(up);
        }
    }
    let whole = if pair.1 < 0.0 {
        (pair.0 as u64).wrapping_sub(-pair.1 as u64)
    } else {
        (pair.0 as u64).wrapping_add(pair.1 as u64)
    };
    let mut digits: Vec<u8> = whole.to_string().into_bytes();
    let count = i64::try_from(digits.len()).unwrap_or_default();
    let mut point = count + exponent;
    let mut keep = match *round {
        Round::Digits(keep) => keep,
        Round::Places(places) => point + places,
    };
    let rounds_up = |digits: &[u8], at: usize| digits.get(at).is_some_and(|digit| *digit >= b'5');
    if keep == 0 && rounds_up(&digits, 0) {
        digits.insert(0, b'0');
        point += 1;
        keep = 1;
    }
    if keep > 0 && keep < count {
        let keep = usize::try_from(keep.min(DIGITS_MAX)).unwrap_or_default();
        let up = rounds_up(&digits, keep);
        digits.truncate(keep);
        if up {
            point += i64::from(carry(&mut digits));
        }
    }
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    Decimal { digits, point }
}

/// Adds one to the last digit. True if that added a digit.
fn carry(digits: &mut Vec<u8>) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return false;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
    true
}

/// The digits as text, `point` of them before the decimal point.
fn decimal_text(digits: &[u8], point: i64) -> String {
    let digit = |at: i64| {
        let found = usize::try_from(at).ok().and_then(|at| digits.get(at));
        char::from(found.copied().unwrap_or(b'0'))
    };
    let mut text: String = (0..point.max(0)).map(digit).collect();
    if text.is_empty() {
        text.push('0');
    }
    text.push('.');
    let end = i64::try_from(digits.len()).unwrap_or_default();
    text.extend((point..end.max(point + 1)).map(digit));
    text
}

/// A real number as text with 15 digits (`%!.15g`).
pub fn real_text(value: f64, budget: &mut Budget) -> Result<String, BudgetExceeded> {
    if value == 0.0 || value.is_nan() {
        return Ok("0.0".to_owned());
    }
    let sign = if value < 0.0 { "-" } else { "" };
    if value.is_infinite() {
        return Ok(format!("{sign}Inf"));
    }
    budget.spend(DIGITS_WORK)?;
    let Decimal { digits, point } = decimal(value.abs(), &Round::Digits(15));
    let exponent = point - 1;
    if (-4..=14).contains(&exponent) {
        return Ok(format!("{sign}{}", decimal_text(&digits, point)));
    }
    let mut text = format!("{sign}{}e", decimal_text(&digits, 1));
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    // Writing to a String cannot fail.
    write!(text, "{exponent_sign}{:02}", exponent.abs()).ok();
    Ok(text)
}

/// A number rounded to `places` decimal places (`round()`).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the range check ensures that the number fits"
)]
pub fn rounded(value: f64, places: i64, budget: &mut Budget) -> Result<f64, BudgetExceeded> {
    let places = places.clamp(0, 30);
    if !(-4_503_599_627_370_496.0..=4_503_599_627_370_496.0).contains(&value) {
        return Ok(value);
    }
    if places == 0 {
        let half = if value < 0.0 { -0.5 } else { 0.5 };
        return Ok((value + half) as i64 as f64);
    }
    if value == 0.0 {
        return Ok(0.0);
    }
    budget.spend(2 * DIGITS_WORK)?;
    let Decimal { digits, point } = decimal(value.abs(), &Round::Places(places));
    let text = decimal_text(&digits, point);
    // Drops the digits after the last place, which are zero after rounding.
    let places = usize::try_from(places).unwrap_or_default();
    let kept = text.find('.').map_or(text.len(), |at| at + 1 + places);
    let (rounded, _) = read_real(text.get(..kept).unwrap_or(&text));
    Ok(if value < 0.0 { -rounded } else { rounded })
}

/// Converts a real number to an integer, clamped to 64 bits (`sqlite3RealToI64`).
#[expect(
    clippy::cast_possible_truncation,
    reason = "the range checks ensure that the number fits"
)]
pub fn real_to_integer(value: f64) -> i64 {
    if value < -9.223_372_036_854_775e18 {
        return i64::MIN;
    }
    if value > 9.223_372_036_854_775e18 {
        return i64::MAX;
    }
    value as i64
}
