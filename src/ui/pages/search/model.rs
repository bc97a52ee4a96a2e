//! The view models of the search.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;

/// A search that somebody has saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRow {
    pub name: String,
    pub text: String,
    pub who: String,
}

/// What stands beside the box of the search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchesView {
    pub saved: Vec<SavedRow>,
    /// Searches that the box suggests.
    pub suggested: Vec<String>,
}

/// A text in quotes, as a search takes it.
pub fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', r#"\""#))
}

/// A search and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchView {
    /// As it was written.
    pub text: String,
    pub outcome: Outcome,
}

/// What came of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// It was not understood, so nothing was searched.
    Mistaken(Mistaken),
    Found(Box<Finds>),
}

/// What could not be understood: characters `from..to`, from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mistaken {
    pub from: usize,
    pub to: usize,
    /// What would be right.
    pub why: String,
}

/// A term of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chip {
    /// What it means.
    pub told: String,
    /// The search without it.
    pub without: String,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finds {
    pub chips: Vec<Chip>,
    /// Newest first.
    pub jobs: Vec<JobRow>,
    /// Those whose whole id the search is.
    pub exact: Vec<JobRow>,
    pub looked_at: usize,
    /// Among about how many jobs.
    pub among: i64,
    /// Where the search goes on, if there may be more.
    pub next: Option<i64>,
    /// It stopped because it had looked at as many jobs, or for as long, as it may.
    pub is_cut: bool,
    /// When the last job was put that was looked at.
    pub down_to: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_in_a_search_as_it_is() {
        assert_eq!(in_quotes(r#"a "b" \ *"#), r#""a \"b\" \\ *""#);
    }
}
