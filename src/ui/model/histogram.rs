//! The buckets of daily histograms.

pub use crate::engine::{daily_bucket, daily_bucket_end};
