//! `LIKE`: `%` stands for anything, `_` for one character, and ASCII letters for both their cases.

use std::str::Chars;

use crate::budget::{Budget, Spent};

/// Whether a text is like a pattern. Goes back to the last `%` only, so the steps it takes, which are spent, are at
/// most the product of both lengths.
pub fn is_like(text: &str, pattern: &str, work: &mut Budget) -> Result<bool, Spent> {
    // Both end at their first NUL, as SQLite's do; it is not looked for ahead, as that would be free.
    let next = |chars: &mut Chars<'_>| chars.next().filter(|char| *char != '\0');
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // Where to go on if what follows the last `%` does not fit here.
    let mut last = None;
    let mut steps = 0;
    loop {
        steps += 1;
        if steps == 1_024 {
            work.spend(steps)?;
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
                work.spend(steps)?;
                return Ok(true);
            }
            (Some(wanted), Some(char)) => wanted == '_' || wanted.eq_ignore_ascii_case(&char),
            _ => false,
        };
        if is_fitting {
            (pattern, text) = (rest, ahead);
            continue;
        }
        // One character more goes to the last `%`.
        let retry = last.take().and_then(|(after, mut from)| {
            next(&mut from)?;
            Some((after, from))
        });
        let Some((after, from)) = retry else {
            work.spend(steps)?;
            return Ok(false);
        };
        last = Some((after.clone(), from.clone()));
        (pattern, text) = (after, from);
    }
}
