//! Pages of lists.

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub offset: usize,
    pub limit: usize,
}

/// The longest list of workers, and of failure groups.
pub const LISTED_MAX: usize = 10_000;
