//! The types that the engine shares, and their rows.

pub mod body;
pub mod config;
pub mod constants;
pub mod cron;
pub mod damage;
pub mod dependency_rows;
pub mod history;
pub mod job;
pub mod job_columns;
pub mod job_rows;
pub mod long_bodies;
pub mod neighbor_rows;
pub mod page;
pub mod queue;
pub mod record;
pub mod recurring;
pub mod state;
pub mod tracked;
