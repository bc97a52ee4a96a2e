//! Verbs for operators: queues, workers, options, tokens, sessions, bulk operations.

pub mod flush;
pub mod operations;
pub mod options;
pub mod queues;
pub mod saved_searches;
pub mod scripts;
pub mod sessions;
pub mod tokens;
pub mod workers;
