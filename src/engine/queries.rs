//! Read-only queries of committed data. Before a query of statistics or events, the deferred ones are stored, which
//! waits for the writer for up to 500 ms (`Engine::store_deferred`). Other queries never wait for the writer.

use crate::engine::consistency::CheckPermit;
use std::sync::Arc;

use crate::engine::clock::Time;
use crate::engine::model::job::QueueId;
use crate::engine::queries::kept_reads::KeptReads;
use crate::engine::queries::record_labels::LabelCounts;
use crate::engine::queries::shared_read::SharedReads;

pub mod about;
pub mod batch_size;
pub mod busiest;
pub mod chart_actions;
pub mod dead_letter;
pub mod due;
pub mod evaluate;
pub mod events;
pub mod failure_times;
pub mod failures;
pub mod import;
pub mod job_lists;
pub mod job_pages;
pub mod jobs;
pub mod kept_reads;
pub mod lmstfy;
pub mod names;
pub mod operations;
pub mod queue_workers;
pub mod queues;
pub mod record_batches;
pub mod record_labels;
pub mod record_queues;
pub mod records;
pub mod recurring;
pub mod search;
pub mod series;
pub mod shared_read;
pub mod stats;
pub mod tags;
pub mod tracked;
pub mod workers;

/// What requests share so that long reads do not run several times at once.
#[derive(Debug, Default)]
pub struct LongReads {
    pub check_permit: CheckPermit,
    /// The most used tags, with their numbers of jobs.
    pub ranked_tags: KeptReads<(), Arc<[(String, i64)]>>,
    /// The labels of large queues.
    pub labels: KeptReads<QueueId, Arc<[LabelCounts]>>,
    pub last_failure: KeptReads<(), Option<Time>>,
    pub shared: SharedReads,
}
