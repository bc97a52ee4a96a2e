//! One batch of a bulk operation: what its transaction does.

use std::sync::Arc;

use crate::budget::Budget;
use crate::engine::model::job::{Job, JobKey, Protocol, QLESS_SCOPE};
use crate::engine::model::queue::Queue;
use crate::engine::operations::lookahead::FoundJob;
use crate::engine::operations::payloads::PayloadResults;
use crate::engine::operations::undo::RemovedJob;
use crate::engine::operations::{
    JOBS_MAX, Operation, OperationState, UNDO_BYTES_MAX, UNDO_JOBS_MAX, apply,
};
use crate::engine::queries::search::matching::facts_of;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::search::Search;

/// The work, in steps and bytes, to check whether the jobs of a batch still match, while other writes wait.
const MATCH_WORK_MAX: u64 = 20_000_000;

const GONE: &str = "the job no longer exists";
const CHANGED: &str = "the job changed and no longer matches the search";
const RESTLESS: &str = "the job changes too often to compare its payload with the search";

/// Whether the action is applied, or why not.
type Decision = Result<(), String>;

/// The work of one transaction.
pub struct Batch {
    pub id: i64,
    /// The version of the operation's row as read. If it has changed, nothing is done.
    pub version: i64,
    pub search: Option<Search>,
    /// Which conditions on their payloads hold, if the search has any.
    pub payloads: Option<PayloadResults>,
    /// Whether the first job is skipped if it has changed again.
    pub gives_up: bool,
    pub targets: Vec<FoundJob>,
    pub processed_down_to: i64,
    pub is_last: bool,
}

impl Batch {
    pub fn needs(&self, operation: &Operation) -> Needs {
        let mut needs = Needs {
            operation: Some(self.id),
            bodies: true,
            deletes: operation.action.removes(),
            divisible: self.targets.len() > 1,
            ..Needs::default()
        };
        let targets = self.targets.iter();
        for (key, queue) in targets.filter_map(|target| target.key_and_queue.as_ref()) {
            needs.jobs.push(key.clone());
            // A dead Relay job that is enqueued again gets this key, which may be in use.
            if queue.protocol == Protocol::Relay && key.scope < QLESS_SCOPE {
                needs.in_queues.push((queue.clone(), key.id.clone()));
            }
        }
        needs
    }

    /// Runs the batch, up to the first job whose payload must be matched again. Returns the number of jobs that it
    /// processed; `None` if the operation has changed since it was read.
    pub fn run(&self, work: &mut UnitOfWork) -> Option<usize> {
        let now = work.now;
        let (operation, version) = work.operations.get(self.id)?;
        if version != self.version || operation.state != OperationState::Running {
            return None;
        }
        let mut operation = operation.clone();
        operation.started_at.get_or_insert(now);
        let decided = self.decide(work);
        let (processed, is_all) = (decided.len(), decided.len() == self.targets.len());
        if processed == 0 && !is_all {
            return Some(0);
        }
        let last = decided.last().map(|(target, _)| target.seq);
        match self.run_each(work, &mut operation, decided) {
            Some(error) => {
                operation.end(OperationState::Failed, now);
                operation.error = Some(error);
            }
            None if is_all => {
                operation.processed_down_to = self.processed_down_to;
                if self.is_last {
                    operation.end(OperationState::Done, now);
                }
            }
            None => operation.processed_down_to = last.unwrap_or(operation.processed_down_to),
        }
        work.operations.set(operation);
        Some(processed)
    }

    /// Whether the action is to be applied to each target, or the reason to skip it. Ends before the first one that
    /// must be looked at again, because it has changed since its payload was matched, or the budget is exceeded.
    fn decide(&self, work: &UnitOfWork) -> Vec<(&FoundJob, Decision)> {
        let mut budget = Budget::new(MATCH_WORK_MAX);
        let mut decided = Vec::with_capacity(self.targets.len());
        for target in &self.targets {
            let is_first = decided.is_empty();
            let Some(decision) = self.decision(work, target, is_first, &mut budget) else {
                break;
            };
            decided.push((target, decision));
        }
        decided
    }

    fn decision(
        &self,
        work: &UnitOfWork,
        target: &FoundJob,
        is_first: bool,
        budget: &mut Budget,
    ) -> Option<Decision> {
        let gone = || Some(Err(GONE.to_owned()));
        let Some((key, job, queue)) = find(work, target) else {
            return gone();
        };
        let is_deleted = queue.forgotten && queue.key.protocol == Protocol::Jobq;
        if is_deleted || job.is_expired(work.now) {
            return gone();
        }
        let Some(search) = &self.search else {
            return Some(Ok(()));
        };
        let is_tracked = key.scope == QLESS_SCOPE && work.is_tracked(&key.id);
        let facts = facts_of(job, &queue, is_tracked, work.now);
        let version = work.unchanged_version(key);
        let known = self
            .payloads
            .as_ref()
            .and_then(|it| it.get(job.seq, version));
        let matches = match known {
            Some(Ok(results)) => search
                .matches_with_results(&facts, work.now.0, results, budget)
                .map(Some),
            Some(Err(spent)) => Err(*spent),
            None => search.matches_without_payload(&facts, work.now.0, budget),
        };
        match matches {
            Ok(Some(true)) => Some(Ok(())),
            Ok(Some(false)) => Some(Err(CHANGED.to_owned())),
            Ok(None) => (is_first && self.gives_up).then(|| Err(RESTLESS.to_owned())),
            // The budget of a batch is enough for most jobs alone.
            Err(_) if !is_first => None,
            Err(spent) => Some(Err(format!("cannot be compared with the search: {spent}"))),
        }
    }

    /// Applies the action to each job. Returns the reason if the operation must end.
    fn run_each(
        &self,
        work: &mut UnitOfWork,
        operation: &mut Operation,
        mut open: Vec<(&FoundJob, Decision)>,
    ) -> Option<String> {
        // Jobs are canceled after their dependents that are canceled too.
        let removes = operation.action.removes();
        while !open.is_empty() {
            let (mut later, mut now): (Vec<_>, Vec<_>) =
                (open.into_iter()).partition(|(target, _)| removes && has_dependents(work, target));
            // The remaining jobs have dependents outside the batch: apply the action anyway.
            if now.is_empty() {
                std::mem::swap(&mut now, &mut later);
            }
            for (target, decision) in now {
                let error = self.run_one(work, operation, target, decision);
                if error.is_some() {
                    return error;
                }
            }
            open = later;
        }
        None
    }

    /// Applies the action to a job, or records why it was skipped. Returns the reason if the operation must end.
    fn run_one(
        &self,
        work: &mut UnitOfWork,
        operation: &mut Operation,
        target: &FoundJob,
        decision: Decision,
    ) -> Option<String> {
        if operation.done + operation.skipped >= JOBS_MAX {
            return Some("The operation stopped at its limit of 10,000,000 jobs.".to_owned());
        }
        let mut removed = None;
        let applied = match decision {
            Ok(()) => {
                removed = match self.removed_job(work, operation, target) {
                    Ok(removed) => removed,
                    Err(error) => return Some(error),
                };
                apply_to(work, operation, target)
            }
            skipped => skipped,
        };
        match applied {
            Ok(()) => {
                if let Some((removed, bytes)) = removed {
                    work.operations
                        .keep_removed(operation.id, operation.done, removed);
                    operation.removed_bytes += bytes;
                }
                operation.done += 1;
            }
            Err(reason) => {
                work.operations
                    .skip(operation.id, operation.skipped, target.skip(reason));
                operation.skipped += 1;
            }
        }
        None
    }

    /// The job before its removal, and its size in bytes, if it is to be kept for undo.
    fn removed_job(
        &self,
        work: &UnitOfWork,
        operation: &Operation,
        target: &FoundJob,
    ) -> Result<Option<(RemovedJob, i64)>, String> {
        let job = target
            .key_and_queue
            .as_ref()
            .and_then(|(key, _)| work.job(key));
        let Some(job) = job.filter(|_| operation.keeps_removed) else {
            return Ok(None);
        };
        let texts = [
            &*job.body,
            job.history.as_text(),
            job.work_state.as_deref().unwrap_or_default(),
        ];
        let bytes: i64 = texts.iter().map(|text| text.len() as i64).sum();
        // More jobs than were counted, although undo was promised for all.
        if operation.done >= UNDO_JOBS_MAX || operation.removed_bytes + bytes > UNDO_BYTES_MAX {
            return Err(
                "Stopped: more jobs matched than were counted, and undo cannot cover them. The jobs processed so far are \
                 canceled; the others are unchanged."
                    .to_owned(),
            );
        }
        let queue = work.queue_key(job.queue).ok_or(GONE)?;
        let job = job.clone();
        Ok(Some((RemovedJob { queue, job }, bytes)))
    }
}

/// The target's key, job and queue, unless another job has its ID by now.
fn find<'a>(
    work: &'a UnitOfWork,
    target: &'a FoundJob,
) -> Option<(&'a JobKey, &'a Job, Arc<Queue>)> {
    let (key, _) = target.key_and_queue.as_ref()?;
    let job = work.job(key).filter(|job| job.seq == target.seq)?;
    Some((key, job, work.queue_by_id(job.queue)?))
}

/// Applies the action to the target, unless the action on another one has removed it.
fn apply_to(work: &mut UnitOfWork, operation: &Operation, target: &FoundJob) -> Decision {
    let (key, _) = target.key_and_queue.as_ref().ok_or(GONE)?;
    let (.., queue) = find(work, target).ok_or(GONE)?;
    apply::apply(work, &operation.action, key, &queue)
}

/// Whether other jobs depend on this one.
fn has_dependents(work: &UnitOfWork, target: &FoundJob) -> bool {
    let job = target
        .key_and_queue
        .as_ref()
        .and_then(|(key, _)| work.job(key));
    job.is_some_and(|job: &Job| !job.dependents.is_empty())
}
