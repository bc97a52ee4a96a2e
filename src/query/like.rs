//! `LIKE`: `%` stands for anything, `_` for one character, and ASCII letters for both their cases.

use super::value::until_nul;

/// Whether a text is like a pattern. Goes back to the last `%` only, so the steps it takes, which are spent, are at
/// most the product of both lengths.
pub fn is_like<E>(
    text: &str,
    pattern: &str,
    mut spend: impl FnMut(usize) -> Result<(), E>,
) -> Result<bool, E> {
    let mut text = until_nul(text).chars();
    let mut pattern = until_nul(pattern).chars();
    // Where to go on if what follows the last `%` does not fit here.
    let mut last = None;
    let mut steps = 0;
    loop {
        steps += 1;
        if steps == 1_024 {
            spend(steps)?;
            steps = 0;
        }
        let mut rest = pattern.clone();
        let wanted = rest.next();
        if wanted == Some('%') {
            last = Some((rest.clone(), text.clone()));
            pattern = rest;
            continue;
        }
        let mut ahead = text.clone();
        let is_fitting = match (wanted, ahead.next()) {
            (None, None) => {
                spend(steps)?;
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
            from.next()?;
            Some((after, from))
        });
        let Some((after, from)) = retry else {
            spend(steps)?;
            return Ok(false);
        };
        last = Some((after.clone(), from.clone()));
        (pattern, text) = (after, from);
    }
}
