//! The view models of the tags.

use serde::{Deserialize, Serialize};

use crate::ui::model::job::JobRow;
use crate::ui::model::paging::Neighbors;

/// A tag, and the number of jobs that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagRow {
    pub tag: String,
    pub jobs: i64,
}

/// A tag and a page of its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagView {
    pub tag: TagRow,
    pub jobs: Vec<JobRow>,
    pub neighbors: Neighbors,
}

/// A page of the tags, most used first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagsView {
    pub tags: Vec<TagRow>,
    /// Whether there are more tags after this page.
    pub more: bool,
}
