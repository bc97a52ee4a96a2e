//! Pages of lists.

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub offset: usize,
    pub limit: usize,
}

/// Workers, and failure groups, of one list.
pub const LISTED_MAX: usize = 10_000;
