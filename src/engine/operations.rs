//! Bulk operations: one action on many jobs. Each is a row that is updated with every batch: a batch is one transaction
//! that applies the action to up to 500 jobs and stores the progress, so a restart neither repeats nor skips jobs.
//! `run.rs` runs operations in the background, `batch.rs` one batch, `payloads.rs` matches payloads before the transaction, `apply.rs`
//! applies the action to one job, and `undo.rs` restores removed jobs.

pub mod apply;
pub mod batch;
pub mod changes;
pub mod lookahead;
pub mod payloads;
pub mod rows;
pub mod run;
pub mod undo;

use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, QueueKey};
use crate::engine::queries::search::SearchLimits;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
pub use changes::OperationChanges;
pub use rows::{COLUMNS, delete_old, load, operation};
pub use run::OperationRunner;

/// Jobs in one operation.
pub const JOBS_MAX: i64 = 10_000_000;

/// Maximum number of removed jobs that an operation keeps for undo. If it removes more, it keeps none.
pub const UNDO_JOBS_MAX: i64 = 100_000;

/// Maximum size of the removed jobs that an operation keeps for undo. If they are larger, it keeps none.
const UNDO_BYTES_MAX: i64 = 64 << 20;

/// Seconds after its end during which an operation can be undone.
const UNDO_S: f64 = 30.0;

/// How long removed jobs are kept beyond that: longer than the transaction that begins an undo.
const UNDO_GRACE_S: f64 = 5.0;

/// Operations that run or wait for their turn.
pub const ACTIVE_MAX: i64 = 100;

/// Jobs that are selected one by one.
pub const SELECTED_JOBS_MAX: usize = 1_000;

/// Limits of the count that is shown before an operation is confirmed.
pub const COUNT_LIMITS: SearchLimits = SearchLimits {
    jobs: usize::MAX,
    scanned: 1_000_000,
    time: std::time::Duration::from_secs(2),
};

/// Example jobs shown with the count.
pub const SAMPLES: usize = 3;

/// The action applied to each job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum JobAction {
    /// Retry failed and dead jobs.
    Retry,
    /// Cancel or delete jobs.
    Cancel,
    /// Move qless jobs to the queue of that name.
    Move { queue: String },
    /// Set the priority of qless jobs.
    Priority { priority: f64 },
    /// Add a tag to qless jobs.
    Tag { tag: String },
    /// Remove a tag from qless jobs.
    Untag { tag: String },
    /// Replace a tag of qless jobs with another one.
    #[serde(rename = "rename_tag")]
    RenameTag { from: String, to: String },
    /// Track qless jobs.
    Track,
    /// Stop tracking qless jobs.
    Untrack,
    /// End the leases of running qless jobs.
    TimeOut,
    /// Retry one job, perhaps with another payload or after a delay.
    #[serde(rename = "retry_by_hand")]
    EditAndRetry,
    /// Complete one job without a worker.
    Complete,
}

impl JobAction {
    /// Whether the action removes jobs.
    pub fn removes(&self) -> bool {
        matches!(self, JobAction::Cancel)
    }
}

/// The jobs an operation applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobSelection {
    /// All jobs that were added before the operation and match the search text when it reaches them.
    Search(String),
    /// The jobs with these numbers ([`Job::seq`]).
    Jobs(Vec<i64>),
}

/// The state of an operation. The values are stored in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationState {
    /// Running, or waiting for its turn.
    Running = 1,
    Done = 2,
    /// Stopped by a user before it was complete.
    Stopped = 3,
    /// Stopped by an error before it was complete.
    Failed = 4,
    Undoing = 5,
    Undone = 6,
}

impl OperationState {
    const ALL: [OperationState; 6] = [
        OperationState::Running,
        OperationState::Done,
        OperationState::Stopped,
        OperationState::Failed,
        OperationState::Undoing,
        OperationState::Undone,
    ];

    pub fn is_active(self) -> bool {
        matches!(self, OperationState::Running | OperationState::Undoing)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            OperationState::Running => "running",
            OperationState::Done => "done",
            OperationState::Stopped => "stopped",
            OperationState::Failed => "failed",
            OperationState::Undoing => "undoing",
            OperationState::Undone => "undone",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// From the same sequence as [`Job::seq`], so jobs with a higher number were added later and are not affected.
    pub id: i64,
    pub created_at: Time,
    /// The user who started it.
    pub who: String,
    pub action: JobAction,
    pub selection: JobSelection,
    pub state: OperationState,
    /// The number of jobs when it was created; a lower bound if `is_lower_bound`.
    pub total: i64,
    pub is_lower_bound: bool,
    /// Jobs with this number or a higher one have been processed.
    pub processed_down_to: i64,
    pub done: i64,
    pub skipped: i64,
    /// The numbers of removed jobs that were restored and that could not be restored.
    pub restored: i64,
    pub not_restored: i64,
    /// Whether removed jobs are kept for undo.
    pub keeps_removed: bool,
    pub removed_bytes: i64,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// The end of the period in which it can be undone.
    pub undo_until: Option<Time>,
    /// The error, if it failed.
    pub error: Option<String>,
}

impl Operation {
    /// Whether it can be undone at `now`.
    pub fn can_be_undone(&self, now: Time) -> bool {
        let is_over = !self.state.is_active() && self.state != OperationState::Undone;
        is_over && self.undo_until.is_some_and(|until| until > now)
    }

    /// Ends the operation at `now`.
    pub(in crate::engine) fn end(&mut self, state: OperationState, now: Time) {
        self.state = state;
        self.ended_at = Some(now);
        let has_removed = self.keeps_removed && self.done > 0;
        self.undo_until = has_removed.then(|| now.plus_seconds(UNDO_S));
    }
}

/// A bulk operation to create.
#[derive(Clone, Debug)]
pub struct NewOperation {
    pub who: String,
    pub action: JobAction,
    pub selection: JobSelection,
    /// The estimate that the user confirmed.
    pub estimate: OperationEstimate,
}

/// The jobs an operation would apply to.
#[derive(Clone, Debug, Default)]
pub struct OperationEstimate {
    pub jobs: i64,
    /// How many of them the action is possible for in their current state.
    pub applicable: i64,
    /// Their approximate size in bytes.
    pub bytes: i64,
    /// The count is a lower bound.
    pub is_lower_bound: bool,
    /// The newest of the jobs.
    pub samples: Vec<Job>,
}

impl OperationEstimate {
    /// Whether the jobs can be kept for undo.
    pub fn can_be_kept(&self) -> bool {
        !self.is_lower_bound && self.jobs <= UNDO_JOBS_MAX && self.bytes <= UNDO_BYTES_MAX
    }

    pub(in crate::engine) fn add_job(
        &mut self,
        action: &JobAction,
        job: &Job,
        queue: &QueueKey,
        bytes: i64,
        now: Time,
    ) {
        self.jobs += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.applicable += i64::from(apply::is_applicable(
            action,
            queue.protocol,
            job.effective_state(now),
        ));
    }
}

/// Why a request about an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    #[error("the operation no longer exists")]
    Missing,
    #[error("the operation has already ended")]
    Ended,
    #[error("the operation can no longer be undone")]
    TooLate,
    #[error("too many operations are running or queued; the limit is {ACTIVE_MAX}")]
    TooManyOperations,
    #[error("too many jobs are selected; the limit is {SELECTED_JOBS_MAX}")]
    TooManyJobs,
    #[error("the search is invalid: {0}")]
    InvalidSearch(#[from] crate::search::SyntaxError),
    #[error("no jobs are selected")]
    NoJobs,
}

/// A job that an operation skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// [`Job::seq`].
    pub job: i64,
    /// Its queue and ID, if known.
    pub queue_and_id: Option<(QueueKey, String)>,
    pub reason: String,
}

impl Engine {
    pub(in crate::engine) async fn change_operation(
        &self,
        id: i64,
        change: impl Fn(&mut Operation, Time) -> Result<(), OperationError> + Send + 'static,
    ) -> Result<Result<(), OperationError>> {
        let needs = Needs {
            operation: Some(id),
            ..Needs::default()
        };
        self.write(needs, None, 1, move |work: &mut UnitOfWork| {
            let now = work.now;
            let Some((operation, _)) = work.operations.get(id) else {
                return Ok(Err(OperationError::Missing));
            };
            let mut changed = operation.clone();
            let done = change(&mut changed, now);
            if done.is_ok() {
                work.operations.set(changed);
            }
            Ok(done)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_of_100000_jobs_and_64_mib_can_be_kept() {
        for (jobs, bytes, is_lower_bound, expected) in [
            (99_999, 67_108_863, false, true),
            (100_000, 67_108_864, false, true),
            (100_001, 1, false, false),
            (1, 67_108_865, false, false),
            (1, 1, true, false),
        ] {
            let estimate = OperationEstimate {
                jobs,
                bytes,
                is_lower_bound,
                ..OperationEstimate::default()
            };
            assert_eq!(estimate.can_be_kept(), expected, "{jobs} {bytes}");
        }
    }
}
