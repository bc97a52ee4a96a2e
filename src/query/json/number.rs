//! Compares JSON numbers exactly, without computing their values.

/// The sign of a number, and its digits before and after the decimal point.
struct Exact<'t> {
    is_negative: bool,
    whole: &'t str,
    fraction: &'t str,
}

/// Whether two JSON numbers have the same value. 0 and -0 are equal.
pub fn are_equal(one: &str, two: &str) -> bool {
    if one == two {
        return true;
    }
    let (first, first_exponent) = parts(one);
    let (second, second_exponent) = parts(two);
    if is_zero(&first) || is_zero(&second) {
        return is_zero(&first) && is_zero(&second);
    }
    let (Some(first_scale), Some(second_scale)) = (
        scale(&first, first_exponent),
        scale(&second, second_exponent),
    ) else {
        return false;
    };
    first.is_negative == second.is_negative
        && first_scale == second_scale
        && significant(&first).eq(significant(&second))
}

/// The digits before and after the decimal point, and the exponent.
fn parts(number: &str) -> (Exact<'_>, &str) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exact = Exact {
        is_negative: whole.starts_with('-'),
        whole: whole.trim_start_matches('-'),
        fraction,
    };
    (exact, exponent)
}

fn digits<'e>(exact: &'e Exact<'_>) -> impl DoubleEndedIterator<Item = u8> + 'e {
    exact.whole.bytes().chain(exact.fraction.bytes())
}

fn is_zero(exact: &Exact<'_>) -> bool {
    digits(exact).all(|digit| digit == b'0')
}

/// The digits without leading and trailing zeros.
fn significant<'e>(exact: &'e Exact<'_>) -> impl Iterator<Item = u8> + 'e {
    let length = exact.whole.len() + exact.fraction.len();
    let end = digits(exact)
        .rev()
        .take_while(|digit| *digit == b'0')
        .count();
    let kept = digits(exact).take(length.saturating_sub(end));
    kept.skip_while(|digit| *digit == b'0')
}

/// The exponent of the significant digits; `None` if it is too long to compute.
fn scale(exact: &Exact<'_>, exponent: &str) -> Option<i128> {
    let (is_negative, size) = match exponent.strip_prefix('-') {
        Some(size) => (true, size),
        None => (false, exponent.trim_start_matches('+')),
    };
    let size = size.trim_start_matches('0');
    if size.len() > 18 {
        return None;
    }
    let size: i128 = if size.is_empty() {
        0
    } else {
        size.parse().ok()?
    };
    let end = digits(exact)
        .rev()
        .take_while(|digit| *digit == b'0')
        .count();
    let size = if is_negative { -size } else { size };
    Some(size + i128::try_from(end).ok()? - i128::try_from(exact.fraction.len()).ok()?)
}
