//! The consistency check, as the dashboard shows it.

use super::super::views::{CheckView, CheckedKind};
use crate::engine::{Engine, Result};

/// Problems of one kind that are shown as sentences.
const SENTENCES_SHOWN: usize = 50;

/// Compares everything that is kept twice. Reads the whole database.
pub async fn check(engine: &Engine) -> Result<CheckView> {
    let when = engine.now(None).0;
    let mut kinds: Vec<CheckedKind> = Vec::new();
    for problem in engine.check(None).await? {
        if kinds.last().is_none_or(|last| last.kind != problem.kind) {
            kinds.push(CheckedKind {
                kind: problem.kind.to_owned(),
                total: 0,
                sentences: Vec::new(),
            });
        }
        if let Some(kind) = kinds.last_mut() {
            kind.total += 1;
            if kind.sentences.len() < SENTENCES_SHOWN {
                kind.sentences.push(problem.message);
            }
        }
    }
    Ok(CheckView { when, kinds })
}

/// Checks and sets right. Says what came of it.
pub async fn mend(engine: &Engine) -> Result<String> {
    let (found, mended) = engine.repair(None).await?;
    Ok(told(found.len(), mended))
}

fn told(found: usize, mended: usize) -> String {
    let problems = |n: usize| {
        if n == 1 {
            "inconsistency"
        } else {
            "inconsistencies"
        }
    };
    match found - mended.min(found) {
        0 if found == 0 => "No inconsistencies found. Nothing to repair.".to_owned(),
        0 => format!(
            "Fixed {found} {}. The database is now consistent.",
            problems(found)
        ),
        left => format!(
            "Fixed {mended} of {found} {}. {left} remain. Run the check again to see them.",
            problems(found)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_said() {
        assert_eq!(told(0, 0), "No inconsistencies found. Nothing to repair.");
        assert_eq!(
            told(1, 1),
            "Fixed 1 inconsistency. The database is now consistent."
        );
        assert_eq!(
            told(5, 3),
            "Fixed 3 of 5 inconsistencies. 2 remain. Run the check again to see them."
        );
    }
}
