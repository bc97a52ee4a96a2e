//! Operations: one thing that is done to many jobs. Each is a row that goes on with its batches: a batch is one
//! group, in which the verb is run on some hundred jobs and the row says how far it has come, so nothing is done
//! twice or left out whenever the server ends. `run.rs` is what goes on of its own accord, `act.rs` what is done to one
//! job, `undo.rs` how what was removed comes back.

pub mod apply;
pub mod changes;
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
pub use rows::{COLUMNS, load, operation, tidy};
pub use run::OperationRunner;

/// How many jobs one operation concerns at the most.
pub const JOBS_MAX: i64 = 10_000_000;

/// Of how many jobs, and of how many bytes of them, what an operation removes is kept. Where there is more nothing is.
pub const UNDO_JOBS_MAX: i64 = 100_000;

const UNDO_BYTES_MAX: i64 = 64 << 20;

/// For how long after its end an operation can be undone.
const UNDO_S: f64 = 30.0;

/// Operations that have not ended, running or waiting for their turn.
pub const ACTIVE_MAX: i64 = 100;

/// Jobs that are named one by one.
pub const LISTED_MAX: usize = 1_000;

/// How far it is counted before it is asked whether that is meant.
pub const COUNT_REACH: SearchLimits = SearchLimits {
    jobs: usize::MAX,
    looked_at: 1_000_000,
    time: std::time::Duration::from_secs(2),
};

/// Jobs that are shown of those that are counted.
pub const SAMPLES: usize = 3;

/// What is done to each job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum Action {
    /// Failed and dead jobs are put back to work.
    Retry,
    /// Jobs are cancelled or deleted.
    Cancel,
    /// Jobs of qless are put into the queue of that name.
    Move { queue: String },
    /// Jobs of qless get another priority.
    Priority { priority: f64 },
    /// Jobs of qless get a tag.
    Tag { tag: String },
    /// A tag is taken off jobs of qless.
    Untag { tag: String },
    /// The events of jobs of qless become public.
    Track,
    /// They are public no longer.
    Untrack,
}

impl Action {
    /// Whether it removes jobs.
    pub fn removes(&self) -> bool {
        matches!(self, Action::Cancel)
    }
}

/// To which jobs it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// All that fit the text of a search, when it is made and when it is their turn.
    Search(String),
    /// Those with these numbers ([`Job::seq`]).
    Jobs(Vec<i64>),
}

/// How far an operation is; the codes are those of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Also while it waits for its turn.
    Running = 1,
    Done = 2,
    /// Ended by somebody in the middle.
    Cancelled = 3,
    /// Ended in the middle because it could not go on.
    Failed = 4,
    Undoing = 5,
    Undone = 6,
}

impl Stage {
    const ALL: [Stage; 6] = [
        Stage::Running,
        Stage::Done,
        Stage::Cancelled,
        Stage::Failed,
        Stage::Undoing,
        Stage::Undone,
    ];

    pub fn is_active(self) -> bool {
        matches!(self, Stage::Running | Stage::Undoing)
    }
}

/// An operation as it stands in the database.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its place in the order of insertion: what was put later is not touched.
    pub id: i64,
    pub created_at: Time,
    /// Who asked for it.
    pub who: String,
    pub action: Action,
    pub subject: Subject,
    pub stage: Stage,
    /// Jobs, as they were counted when it was made; if not all could be counted, there may be more.
    pub total: i64,
    pub is_least: bool,
    /// Jobs of this number and above have been seen to.
    pub down_to: i64,
    pub done: i64,
    pub skipped: i64,
    /// How many of those it removed are there again, and how many could not be restored.
    pub restored: i64,
    pub lost: i64,
    /// What it removes is kept for a while.
    pub keeps: bool,
    pub kept_bytes: i64,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// Until when it can be undone.
    pub undo_until: Option<Time>,
    /// Why it failed.
    pub why: Option<String>,
}

impl Operation {
    /// Whether it can be undone at `now`.
    pub fn can_be_undone(&self, now: Time) -> bool {
        let is_over = !self.stage.is_active() && self.stage != Stage::Undone;
        is_over && self.undo_until.is_some_and(|until| until > now)
    }

    /// Ends it at this moment.
    pub(in crate::engine) fn end(&mut self, stage: Stage, now: Time) {
        self.stage = stage;
        self.ended_at = Some(now);
        let kept = self.keeps && self.done > 0;
        self.undo_until = kept.then(|| now.plus_seconds(UNDO_S));
    }
}

/// An operation that somebody asks for.
#[derive(Clone, Debug)]
pub struct NewOperation {
    pub who: String,
    pub action: Action,
    pub subject: Subject,
    /// EventKind [`Engine::count`] said of it.
    pub counted: OperationEstimate,
}

/// What an operation would concern.
#[derive(Clone, Debug, Default)]
pub struct OperationEstimate {
    pub jobs: i64,
    /// Of these, to how many the action can be done, as they stand now.
    pub able: i64,
    /// What is written in them, about.
    pub bytes: i64,
    /// There may be more.
    pub is_least: bool,
    /// The newest of them.
    pub samples: Vec<Job>,
}

impl OperationEstimate {
    /// Whether what is removed of them can be kept.
    pub fn can_be_kept(&self) -> bool {
        !self.is_least && self.jobs <= UNDO_JOBS_MAX && self.bytes <= UNDO_BYTES_MAX
    }

    pub(in crate::engine) fn meet(
        &mut self,
        action: &Action,
        job: &Job,
        queue: &QueueKey,
        bytes: i64,
        now: Time,
    ) {
        self.jobs += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.able += i64::from(apply::is_able(
            action,
            queue.protocol,
            job.effective_state(now),
        ));
    }
}

/// Why nothing became of a wish about operations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    #[error("the operation no longer exists")]
    Missing,
    #[error("the operation has already ended")]
    Ended,
    #[error("the operation can no longer be undone")]
    TooLate,
    #[error("too many operations are running or queued; the limit is {ACTIVE_MAX}")]
    TooMany,
    #[error("too many jobs are selected; the limit is {LISTED_MAX}")]
    TooLong,
    #[error("the search is invalid: {0}")]
    Mistaken(#[from] crate::search::Mistake),
    #[error("no jobs are selected")]
    Nobody,
}

/// A job to which an operation did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// [`Job::seq`].
    pub job: i64,
    /// Where it was, and its id, if that is known.
    pub place: Option<(QueueKey, String)>,
    pub why: String,
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
        for (jobs, bytes, is_least, expected) in [
            (99_999, 67_108_863, false, true),
            (100_000, 67_108_864, false, true),
            (100_001, 1, false, false),
            (1, 67_108_865, false, false),
            (1, 1, true, false),
        ] {
            let counted = OperationEstimate {
                jobs,
                bytes,
                is_least,
                ..OperationEstimate::default()
            };
            assert_eq!(counted.can_be_kept(), expected, "{jobs} {bytes}");
        }
    }
}
