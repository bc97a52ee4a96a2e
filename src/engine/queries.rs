//! Reads. They see what has been committed, and never wait for the writer.

pub mod about;
pub mod batch_size;
pub mod due;
pub mod evaluate;
pub mod failure_times;
pub mod job_lists;
pub mod lmstfy;
pub mod names;
pub mod queues;
pub mod record_labels;
pub mod records;
pub mod search;
pub mod series;
pub mod stats;
