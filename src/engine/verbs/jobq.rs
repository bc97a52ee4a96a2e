//! The Jobq verbs.

pub mod advance;
pub mod append;
pub mod candidates;
pub mod changes;
pub mod create;
pub mod delete;
pub mod poll;
pub mod queues;
