//! `LIKE`: `%` matches any text, `_` one character. ASCII letters match regardless of case.

use std::str::Chars;

use crate::budget::{Budget, BudgetExceeded};

/// Whether a text matches a pattern. Backtracks only to the last `%`, so the number of steps, which are spent, is at
/// most the product of both lengths.
pub fn is_like(text: &str, pattern: &str, budget: &mut Budget) -> Result<bool, BudgetExceeded> {
    // Both texts end at their first NUL, as in SQLite. A search ahead for NUL would be work without payment.
    let next = |chars: &mut Chars<'_>| chars.next().filter(|char| *char != '\0');
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // The positions to resume from if the text after the last `%` does not match here.
    let mut last = None;
    let mut steps = 0;
    loop {
        steps += 1;
        if steps == 1_024 {
            budget.spend(steps)?;
            steps = 0;
        }
        let mut rest = pattern.clone();
        let wanted = next(&mut rest);
        if wanted == Some('%') {
            last = Some((rest.clone(), text.clone()));
            pattern = rest;
            continue;
        }
        let mut ahead = text.clone();
        let is_fitting = match (wanted, next(&mut ahead)) {
            (None, None) => {
                budget.spend(steps)?;
                return Ok(true);
            }
            (Some(wanted), Some(char)) => wanted == '_' || wanted.eq_ignore_ascii_case(&char),
            _ => false,
        };
        if is_fitting {
            (pattern, text) = (rest, ahead);
            continue;
        }
        // Extends the match of the last `%` by one character.
        let retry = last.take().and_then(|(after, mut from)| {
            next(&mut from)?;
            Some((after, from))
        });
        let Some((after, from)) = retry else {
            budget.spend(steps)?;
            return Ok(false);
        };
        last = Some((after.clone(), from.clone()));
        (pattern, text) = (after, from);
    }
}
