//! Runs the consistency check.

use crate::engine::{Engine, Result};
use crate::ui::pages::check::model::{CheckView, CheckedKind};

/// Maximum number of inconsistencies of one kind that the page lists.
const SENTENCES_SHOWN: usize = 50;

/// Compares all derived data with its source. Reads the whole database.
pub async fn load_check(engine: &Engine) -> Result<CheckView> {
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
