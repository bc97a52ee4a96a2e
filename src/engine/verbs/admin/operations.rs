//! Bulk operations: count, start, stop, undo.

use std::cmp::Reverse;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, JobKey, QueueKey};
use crate::engine::operations::rows;
use crate::engine::operations::undo::RemovedJob;
use crate::engine::operations::{
    ACTIVE_MAX, COUNT_LIMITS, JobAction, JobSelection, NewOperation, Operation, OperationError,
    OperationEstimate, OperationState, SAMPLES, SELECTED_JOBS_MAX,
};
use crate::engine::queries::search::Hit;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::qless::cancel::cancel;
use crate::memory::holding;
use crate::search::Search;
use crate::store::Statement;

/// Selected jobs whose sizes and tags are read at once: each can have 512 KB of tags.
const SIZED_AT_ONCE: usize = 16;

impl Engine {
    /// Counts the jobs an operation would apply to. A search counts up to 1,000,000 jobs, for up to 2 s.
    pub async fn estimate_operation(
        &self,
        action: &JobAction,
        selection: &JobSelection,
    ) -> Result<Result<OperationEstimate, OperationError>> {
        self.refresh_cache().await?;
        let (now, queues) = (self.now(None), self.visible_queues());
        let mut estimate = OperationEstimate::default();
        let mut newest = Vec::new();
        let mut on_match = |hit: Hit<'_>| {
            estimate.add_job(action, hit.job, &hit.queue.key, hit.bytes, now);
            if newest.len() < SAMPLES {
                newest.push(hit.job.seq);
            }
        };
        let search = match selection {
            JobSelection::Jobs(numbers) if numbers.len() > SELECTED_JOBS_MAX => {
                return Ok(Err(OperationError::TooManyJobs));
            }
            JobSelection::Jobs(numbers) => {
                let mut numbers = numbers.clone();
                numbers.sort_unstable_by_key(|number| Reverse(*number));
                for some in numbers.chunks(SIZED_AT_ONCE) {
                    for (job, bytes) in self.jobs_with_sizes(some).await? {
                        if let Some(queue) = queues.get(&job.queue)
                            && !job.is_expired(now)
                        {
                            let job = &job;
                            on_match(Hit { job, queue, bytes });
                        }
                    }
                }
                estimate.samples = self.job_summaries(&newest, &queues, now).await?;
                return Ok(Ok(estimate));
            }
            JobSelection::Search(text) => match Search::parse(text) {
                Ok(search) => search,
                Err(mistake) => return Ok(Err(mistake.into())),
            },
        };
        let scan = self.scan_matching(&search, &queues, None, COUNT_LIMITS, now, &mut on_match);
        estimate.is_lower_bound = scan.await?.is_cut;
        estimate.samples = self.job_summaries(&newest, &queues, now).await?;
        Ok(Ok(estimate))
    }

    /// Creates an operation and returns its ID. It runs in the background, with up to three others at a time.
    ///
    /// # Errors
    /// [`Error::TooMany`] queues.
    pub async fn start_operation(&self, new: NewOperation) -> Result<Result<i64, OperationError>> {
        match &new.selection {
            JobSelection::Jobs(numbers) if numbers.len() > SELECTED_JOBS_MAX => {
                return Ok(Err(OperationError::TooManyJobs));
            }
            JobSelection::Jobs(numbers) if numbers.is_empty() => {
                return Ok(Err(OperationError::NoJobs));
            }
            JobSelection::Jobs(_) => {}
            JobSelection::Search(text) => {
                if let Err(mistake) = Search::parse(text) {
                    return Ok(Err(mistake.into()));
                }
            }
        }
        if let JobAction::Move { queue } = &new.action {
            let _room = self.reserve_room([&QueueKey::qless(queue)])?;
        }
        let adding = self.operation_runner().lock_additions().await;
        let active = self.readers().rows(Statement::new(rows::COUNT_ACTIVE, []));
        if active.await?.first().map_or(Ok(0), |row| row.int(0))? >= ACTIVE_MAX {
            return Ok(Err(OperationError::TooManyOperations));
        }
        let id = async {
            self.write(Needs::default(), None, 1, move |work| {
                let id = work.next_seq();
                let operation = initial_operation(id, work.now, &new);
                work.operations.add(operation);
                Ok(id)
            })
            .await
        };
        let id = holding(adding, id).await?;
        self.operation_runner().wake();
        Ok(Ok(id))
    }

    /// Cancels a qless job and keeps it, so that the operation with the returned ID can be undone.
    ///
    /// # Errors
    /// [`Error::NoSuchJob`], and those of [`Engine::cancel`].
    pub async fn cancel_with_undo(&self, key: JobKey, who: String) -> Result<i64> {
        let needs = Needs {
            jobs: vec![key.clone()],
            bodies: true,
            ..Needs::default()
        };
        let cancel = move |work: &mut UnitOfWork| cancel_with_undo(work, &key, &who);
        self.write(needs, None, 1, cancel).await
    }

    /// Stops a running operation. Changes made so far remain.
    pub async fn stop_operation(&self, id: i64) -> Result<Result<(), OperationError>> {
        self.change_operation(id, |operation, now| {
            if operation.state != OperationState::Running {
                return Err(OperationError::Ended);
            }
            operation.end(OperationState::Stopped, now);
            Ok(())
        })
        .await
    }

    /// Begins to undo an operation. Its jobs are restored in the background.
    pub async fn undo_operation(&self, id: i64) -> Result<Result<(), OperationError>> {
        let done = self.change_operation(id, |operation, now| {
            if !operation.can_be_undone(now) {
                return Err(OperationError::TooLate);
            }
            operation.state = OperationState::Undoing;
            Ok(())
        });
        let done = done.await?;
        self.operation_runner().wake();
        Ok(done)
    }
}

/// Cancels the job, and adds an operation that has done so.
fn cancel_with_undo(work: &mut UnitOfWork, key: &JobKey, who: &str) -> Result<i64> {
    let missing = || Error::NoSuchJob { id: key.id.clone() };
    let job = work.job(key).cloned().ok_or_else(missing)?;
    let queue = work.queue_key(job.queue).ok_or_else(missing)?;
    cancel(work, std::slice::from_ref(key))?;
    let action = JobAction::Cancel;
    Ok(add_ended_operation(work, who, action, job, Some(queue)))
}

/// Adds an operation that has changed one job and ended. `before` is the job before. With its queue, the operation can
/// be undone. Returns its ID.
pub fn add_ended_operation(
    work: &mut UnitOfWork,
    who: &str,
    action: JobAction,
    before: Job,
    queue: Option<QueueKey>,
) -> i64 {
    let id = work.next_seq();
    let new = NewOperation {
        who: who.to_owned(),
        action,
        selection: JobSelection::Jobs(vec![before.seq]),
        estimate: OperationEstimate {
            jobs: 1,
            applicable: 1,
            ..OperationEstimate::default()
        },
    };
    let mut operation = initial_operation(id, work.now, &new);
    operation.started_at = Some(work.now);
    operation.done = 1;
    operation.keeps_removed = queue.is_some();
    if let Some(queue) = queue {
        operation.removed_bytes = (before.body.bytes() + before.history.as_text().len()) as i64;
        let removed = RemovedJob { queue, job: before };
        work.operations.keep_removed(id, 0, removed);
    }
    operation.end(OperationState::Done, work.now);
    work.operations.add(operation);
    id
}

/// The operation in its initial state.
fn initial_operation(id: i64, now: Time, new: &NewOperation) -> Operation {
    let estimate = &new.estimate;
    Operation {
        id,
        created_at: now,
        who: new.who.clone(),
        action: new.action.clone(),
        selection: new.selection.clone(),
        state: OperationState::Running,
        total: estimate.jobs,
        is_lower_bound: estimate.is_lower_bound,
        processed_down_to: id,
        done: 0,
        skipped: 0,
        restored: 0,
        not_restored: 0,
        keeps_removed: new.action.removes() && estimate.can_be_kept(),
        removed_bytes: 0,
        started_at: None,
        ended_at: None,
        undo_until: None,
        error: None,
    }
}
