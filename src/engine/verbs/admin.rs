//! Verbs for operators: queues, workers, options, tokens, sessions, alerts, bulk operations, imports.

pub mod alerts;
pub mod flush;
pub mod import;
pub mod mutes;
pub mod operations;
pub mod options;
pub mod queues;
pub mod saved_searches;
pub mod scripts;
pub mod sessions;
pub mod tokens;
pub mod workers;
