//! Stored texts of jobs that cannot be parsed: tags and histories. Reading one logs the job, and writing the job keeps
//! the stored text. The consistency check finds and replaces them (`consistency/texts.rs`).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// A text of a job that can be damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Text {
    Tags,
    History,
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Text::Tags => "tags",
            Text::History => "history",
        })
    }
}

/// The texts that have been logged: lists read the same jobs again and again.
static LOGGED: Mutex<BTreeSet<(i64, Text)>> = Mutex::new(BTreeSet::new());

/// Maximum number of texts in [`LOGGED`]. Beyond that, all are forgotten.
const LOGGED_MAX: usize = 1_000;

/// Logs that the text of the job with this number and ID cannot be parsed, once until [`forget`].
pub fn report(text: Text, seq: i64, id: &str) {
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.len() >= LOGGED_MAX {
        logged.clear();
    }
    if logged.insert((seq, text)) {
        tracing::error!(
            job = id,
            seq,
            "the stored {text} of a job cannot be read; the consistency check can repair it"
        );
    }
}

/// Forgets which texts have been logged, after a repair.
pub fn forget() {
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    logged.clear();
}
