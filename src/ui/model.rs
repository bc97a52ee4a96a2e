//! View models that several pages show. Times are microseconds since 1970, UTC.

pub mod failure;
pub mod failure_link;
pub mod histogram;
pub mod job;
pub mod operation;
pub mod paging;
pub mod problem;
pub mod queue;
pub mod queue_ref;
pub mod queue_trend;
pub mod recurring;
pub mod series;
pub mod state;
pub mod worker;

/// Rows on one page of a list: about a screen, and pages stay below 60 kB.
pub const PAGE_ROWS: usize = 20;
