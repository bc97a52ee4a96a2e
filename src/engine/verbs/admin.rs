//! The verbs of the dashboard.

pub mod saved_searches;
pub mod sessions;
