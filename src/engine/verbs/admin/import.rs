//! Import: adds the jobs of another installation in any state, with their histories, as `switchyard import` reads them.
//! Existing jobs and recurring jobs are not changed, so an import that was interrupted can be run again.

use std::collections::HashMap;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::tasks::save_seen;
use crate::engine::model::body::Body;
use crate::engine::model::job::{
    Failure, Job, JobKey, LMSTFY_SCOPE, NAME_BYTES_MAX, Protocol, QLESS_SCOPE, QueueKey, State,
    invalid_name_reason,
};
use crate::engine::model::queue::{Pause, Queue};
use crate::engine::model::recurring::Recurring;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;
use crate::engine::verbs::qless::depend::{release_if_ready, unmet_dependencies};
use crate::engine::verbs::qless::fail::MESSAGE_BYTES_MAX;
use crate::engine::verbs::qless::recurring::check_body;
use crate::engine::verbs::qless::tag;
use crate::engine::verbs::qless::track::TRACKED_MAX;

/// The number of children that an imported recurring job has had at most, which leaves room to count further ones.
const CHILDREN_MAX: i64 = i64::MAX / 2;

/// A job to import. Its insertion number, queue and dependencies are set when it is added.
#[derive(Clone, Debug)]
pub struct Import {
    pub queue: QueueKey,
    pub job: Job,
}

impl Import {
    /// A waiting job that was created at `at`, with no retries.
    pub fn new(queue: QueueKey, id: String, body: Body, at: Time) -> Import {
        let scope = match queue.protocol {
            Protocol::Lmstfy => LMSTFY_SCOPE,
            Protocol::Qless | Protocol::Relay | Protocol::Jobq => QLESS_SCOPE,
        };
        let job = Job {
            body,
            ..Job::new(JobKey { scope, id }, at)
        };
        Import { queue, job }
    }

    /// Cuts the texts that no API would accept, so that lists and claims can rely on their limits: those of the
    /// failure, and the history. Forgets a job from which it was made if that has no valid ID.
    fn cut_texts(&mut self) {
        let job = &mut self.job;
        if let Some(failure) = &mut job.failure {
            cut(&mut failure.group, NAME_BYTES_MAX);
            cut(&mut failure.worker, NAME_BYTES_MAX);
            cut(&mut failure.message, MESSAGE_BYTES_MAX);
        }
        let is_valid = |id: &String| invalid_name_reason(id, NAME_BYTES_MAX).is_none();
        job.spawned_from = job.spawned_from.take().filter(is_valid);
        job.history.shorten(usize::MAX);
    }
}

fn cut(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

/// The dependencies of an imported job.
#[derive(Clone, Debug)]
pub struct ImportedDependencies {
    pub id: String,
    /// IDs of jobs; complete and missing ones are ignored.
    pub needs: Vec<String>,
}

/// A recurring job to import. Its insertion number and queue are set when it is added.
#[derive(Clone, Debug)]
pub struct ImportedRecurring {
    pub queue: QueueKey,
    pub recurring: Recurring,
}

/// A queue to import.
#[derive(Clone, Debug)]
pub struct ImportedQueue {
    pub key: QueueKey,
    pub first_seen: Time,
    pub paused: bool,
}

impl Engine {
    /// Adds jobs. Returns for each whether it was added; a job whose key exists is not. Texts of a failure or history
    /// that are longer than an API would accept are cut.
    ///
    /// # Errors
    /// For each job: [`TooMany`](crate::engine::Error::TooMany) tags.
    pub async fn import_jobs(&self, mut jobs: Vec<Import>) -> ItemResults<bool> {
        jobs.iter_mut().for_each(Import::cut_texts);
        let need = |needs: &mut Needs, import: &Import| {
            match import.queue.protocol {
                Protocol::Qless | Protocol::Lmstfy => needs.job(&import.job.key),
                Protocol::Relay | Protocol::Jobq => {
                    let id = import.job.key.id.clone();
                    needs.in_queues.push((import.queue.clone(), id));
                }
            }
            needs.tags(&import.job.tags);
            needs.bytes += import.job.text_bytes();
            needs.only_checks_existence = true;
            needs.adds_jobs = true;
        };
        self.apply_in_batches(jobs, None, need, add_job).await
    }

    /// Adds the dependencies of imported jobs that still wait for them. A job whose dependencies are all complete or
    /// missing becomes available.
    ///
    /// # Errors
    /// For each job: [`DependencyCycle` and `TooMany`](crate::engine::Error) dependencies or dependents.
    pub async fn import_dependencies(&self, jobs: Vec<ImportedDependencies>) -> ItemResults<()> {
        let need = |needs: &mut Needs, job: &ImportedDependencies| {
            needs.job(&JobKey::qless(&job.id));
            needs.depends(&job.needs);
        };
        self.apply_in_batches(jobs, None, need, add_dependencies)
            .await
    }

    /// Adds recurring jobs. Returns for each whether it was added; one whose ID exists is not. Numbers that an API would
    /// not accept are replaced by the nearest ones that it would.
    ///
    /// # Errors
    /// For each recurring job: [`TooMany`](crate::engine::Error::TooMany) tags or bytes.
    pub async fn import_recurring(&self, recurring: Vec<ImportedRecurring>) -> ItemResults<bool> {
        let need = |needs: &mut Needs, import: &ImportedRecurring| {
            needs.recurring.push(import.recurring.id.clone());
            needs.tags(&import.recurring.tags);
            needs.bytes += import.recurring.body.len();
            needs.adds_jobs = true;
        };
        self.apply_in_batches(recurring, None, need, add_recurring)
            .await
    }

    /// Creates each queue that does not exist, and pauses each queue that is paused in the source.
    pub async fn import_queues(&self, queues: Vec<ImportedQueue>) -> Result<()> {
        let add = |work: &mut UnitOfWork, queue: &ImportedQueue| {
            add_queue(work, queue);
            Ok(())
        };
        let added = self.apply_in_batches(queues, None, |_, _| {}, add).await?;
        added.into_iter().collect()
    }

    /// Tracks jobs, with the times since when they have been tracked. Returns for each whether it exists and the number
    /// of tracked jobs permits it.
    pub async fn import_tracked(&self, tracked: Vec<(String, Time)>) -> ItemResults<bool> {
        let need = |needs: &mut Needs, (id, _): &(String, Time)| {
            needs.job(&JobKey::qless(id));
            needs.only_checks_existence = true;
        };
        self.apply_in_batches(tracked, None, need, |work, (id, since)| {
            let exists = work.job(&JobKey::qless(id)).is_some();
            let track = exists && (work.is_tracked(id) || work.tracked_count() < TRACKED_MAX);
            if track {
                work.set_tracked(id, Some(*since));
            }
            Ok(track)
        })
        .await
    }

    /// Lists qless workers, with the times when they were last seen.
    pub async fn import_workers(&self, workers: HashMap<String, Time>) -> Result<()> {
        self.write(Needs::default(), None, 1, move |work| {
            work.add_statements((!workers.is_empty()).then(|| save_seen(&workers, false)));
            Ok(())
        })
        .await
    }

    /// Renews this server's registration on a shared database. Returns whether it is the only server. A command that
    /// was opened with [`EngineSettings::offline`](crate::engine::EngineSettings::offline) calls this regularly.
    pub async fn is_alone(&self) -> Result<bool> {
        self.run_system_task(SystemTask::CheckPeers).await?;
        Ok(!self.peers().any())
    }
}

/// Adds a job, unless its key exists. Returns whether it did.
///
/// # Errors
/// [`TooMany`](crate::engine::Error::TooMany) tags.
fn add_job(work: &mut UnitOfWork, import: &Import) -> Result<bool> {
    let tags = tag::of_new_job(&import.job.tags)?;
    let queue = work.get_or_create_queue(&import.queue);
    let mut job = import.job.clone();
    if matches!(import.queue.protocol, Protocol::Relay | Protocol::Jobq) {
        job.key.scope = queue;
    }
    if work.job(&job.key).is_some() {
        return Ok(false);
    }
    job.seq = work.next_seq();
    job.queue = queue;
    job.set_tags(tags);
    if let (State::Failed, Some(Failure { at, .. })) = (job.state, &job.failure)
        && at.day() > work.last_expired_day("stats-history")
    {
        work.counters.failure_restored(queue, *at);
    }
    work.insert(job);
    Ok(true)
}

fn add_dependencies(work: &mut UnitOfWork, job: &ImportedDependencies) -> Result<()> {
    let key = JobKey::qless(&job.id);
    let is_waiting = |job: &Job| job.state == State::Depends && job.dependencies.is_empty();
    if !work.job(&key).is_some_and(is_waiting) {
        return Ok(());
    }
    let unmet = unmet_dependencies(work, &key, &job.needs)?;
    work.set_dependencies(&key, &unmet);
    release_if_ready(work, &key);
    Ok(())
}

fn add_recurring(work: &mut UnitOfWork, import: &ImportedRecurring) -> Result<bool> {
    if work.recurring(&import.recurring.id).is_some() {
        return Ok(false);
    }
    check_body(&import.recurring.body)?;
    let tags = tag::of_new_job(&import.recurring.tags)?;
    let recurring = Recurring {
        seq: work.next_seq(),
        queue: work.get_or_create_queue(&import.queue),
        tags,
        children_count: import.recurring.children_count.clamp(0, CHILDREN_MAX),
        backlog: import.recurring.backlog.max(0),
        retries: import.recurring.retries.max(-1),
        ..import.recurring.clone()
    };
    work.set_recurring(&import.recurring.id, Some(recurring));
    Ok(true)
}

fn add_queue(work: &mut UnitOfWork, import: &ImportedQueue) {
    let is_new = work.queue(&import.key).is_none();
    let id = work.get_or_create_queue(&import.key);
    let Some(queue) = work.queue(&import.key).filter(|queue| queue.id == id) else {
        return;
    };
    let first_seen = match is_new {
        true => import.first_seen,
        false => queue.first_seen.min(import.first_seen),
    };
    let pause = queue
        .pause
        .clone()
        .or_else(|| import.paused.then(Pause::default));
    if first_seen != queue.first_seen || pause != queue.pause {
        work.change_queue(Queue {
            first_seen,
            pause,
            ..(*queue).clone()
        });
    }
}
