//! The shared types: jobs, queues, histories, options, recurring jobs.

pub mod config;
pub mod history;
pub mod job;
pub mod job_rows;
pub mod queue;
pub mod recurring;
