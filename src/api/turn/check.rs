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
    let (found, mended) = engine.mend(None).await?;
    Ok(told(found.len(), mended))
}

fn told(found: usize, mended: usize) -> String {
    let problems = |n: usize| if n == 1 { "problem" } else { "problems" };
    match found - mended.min(found) {
        0 if found == 0 => "There was nothing to mend: all agrees.".to_owned(),
        0 => format!("Mended {found} {}; all agrees now.", problems(found)),
        left => format!(
            "Mended {mended} of {found} {}; {left} are there still. Check again to see them.",
            problems(found)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_said() {
        assert_eq!(told(0, 0), "There was nothing to mend: all agrees.");
        assert_eq!(told(1, 1), "Mended 1 problem; all agrees now.");
        assert_eq!(
            told(5, 3),
            "Mended 3 of 5 problems; 2 are there still. Check again to see them."
        );
    }
}
