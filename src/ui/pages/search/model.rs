//! The view models of the search.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::state::EffectiveState;

/// A saved search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRow {
    pub name: String,
    pub text: String,
    pub who: String,
}

/// What the page shows beside the search field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchesView {
    pub saved: Vec<SavedRow>,
    /// Suggestions for the search field.
    pub suggested: Vec<String>,
}

/// A quoted term of a search.
pub fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', r#"\""#))
}

/// The search for the jobs of a queue in a state.
pub fn search_of_queue(queue: &QueueRef, state: EffectiveState) -> String {
    let api = queue.protocol.as_str();
    let mut text = format!(
        "state:{} api:{api} queue:{}",
        state.as_str(),
        in_quotes(&queue.name)
    );
    if !queue.namespace.is_empty() {
        text.push_str(&format!(" ns:{}", in_quotes(&queue.namespace)));
    }
    text
}

/// The order of search results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SearchOrder {
    /// Newest first.
    #[default]
    Newest,
    /// Lowest priority number first.
    Priority,
    /// Fewest retries left first.
    Retries,
    /// By the time in the column *When*, earliest first.
    Time,
    Queue,
    Class,
    State,
}

impl SearchOrder {
    pub const ALL: [SearchOrder; 7] = [
        SearchOrder::Newest,
        SearchOrder::Priority,
        SearchOrder::Retries,
        SearchOrder::Time,
        SearchOrder::Queue,
        SearchOrder::Class,
        SearchOrder::State,
    ];

    /// The name in addresses; empty for the default.
    pub fn as_str(self) -> &'static str {
        match self {
            SearchOrder::Newest => "",
            SearchOrder::Priority => "priority",
            SearchOrder::Retries => "retries",
            SearchOrder::Time => "time",
            SearchOrder::Queue => "queue",
            SearchOrder::Class => "class",
            SearchOrder::State => "state",
        }
    }

    /// The order with this name; the default if there is none.
    pub fn parse(text: &str) -> SearchOrder {
        let found = SearchOrder::ALL.into_iter().find(|it| it.as_str() == text);
        found.unwrap_or_default()
    }

    /// Sorts jobs that are newest first.
    pub fn sort(self, jobs: &mut [JobRow]) {
        match self {
            SearchOrder::Newest => {}
            SearchOrder::Priority => jobs.sort_by(|a, b| a.priority.total_cmp(&b.priority)),
            SearchOrder::Retries => jobs.sort_by_key(|job| job.remaining),
            SearchOrder::Time => jobs.sort_by_key(|job| job.state_time),
            SearchOrder::Queue => jobs.sort_by(|a, b| a.queue_ref.cmp(&b.queue_ref)),
            SearchOrder::Class => jobs.sort_by(|a, b| a.klass.cmp(&b.klass)),
            SearchOrder::State => jobs.sort_by_key(|job| job.state.as_str()),
        }
    }
}

/// The part of the results that a page shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchPosition {
    /// The number of the job after which a page in the default order starts.
    pub after: Option<i64>,
    pub order: SearchOrder,
    /// The number of jobs before a page in another order.
    pub offset: usize,
}

/// A search and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchView {
    /// As typed.
    pub text: String,
    pub outcome: Outcome,
}

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// The search is invalid.
    Invalid(SearchError),
    Found(Box<SearchResults>),
}

/// The invalid part of a search: the characters `from..to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchError {
    pub from: usize,
    pub to: usize,
    /// Why it is invalid.
    pub why: String,
}

/// A term of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// Its meaning in words.
    pub description: String,
    /// The search without it.
    pub without: String,
}

/// The results of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchResults {
    pub terms: Vec<Term>,
    /// In the order of the page.
    pub jobs: Vec<JobRow>,
    /// The number of jobs that were sorted; `None` in the default order.
    #[serde(default)]
    pub sorted: Option<usize>,
    /// Jobs whose ID equals the whole search.
    pub exact: Vec<JobRow>,
    /// The number of jobs that were read.
    pub searched: usize,
    /// The approximate number of jobs that the search has to consider: all, or the ones that its index finds.
    pub total: i64,
    /// The position of the next page; `None` if there are no more jobs.
    pub next: Option<i64>,
    /// Whether the search stopped at its limit of jobs to read, of work or of time.
    pub is_limited: bool,
    /// The creation time of the last job that was checked.
    pub searched_back_to: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_preserve_any_name() {
        assert_eq!(in_quotes(r#"a "b" \ *"#), r#""a \"b\" \\ *""#);
    }
}
