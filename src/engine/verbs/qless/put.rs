//! Put: a new job, or an old one moved.

use std::collections::HashSet;

use uuid::{NoContext, Timestamp, Uuid};

use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::events::Said;
use crate::engine::model::history::{History, What};
use crate::engine::model::job::{Job, JobKey, QueueKey, State};
use crate::engine::unit_of_work::Work;
use crate::engine::verbs::qless::tag;

/// Tries after the first that a new job has (qless-core, Put).
const RETRIES: i64 = 5;

/// A job to be put. What is `None` stays as it is on a job that exists, and has its default on a new one.
#[derive(Clone, Debug, Default)]
pub struct Put {
    /// Made up (32 hex digits) if there is none.
    pub id: Option<String>,
    /// As it was written.
    pub body: String,
    pub klass: Option<String>,
    /// Seconds before the job becomes available; 0 or less means now.
    pub delay: Option<f64>,
    /// Lowest first.
    pub priority: Option<f64>,
    pub tags: Option<Vec<String>>,
    /// Tries after the first.
    pub retries: Option<i64>,
    /// Ids of jobs to wait for; those that are complete or not there are passed over.
    pub depends: Option<Vec<String>>,
}

/// Puts a job into `queue` for `client`, or moves the job that has this id there: its lease is lost, its
/// retries start anew, its failure is undone. Returns its id.
///
/// # Errors
/// [`Error::DependencyCycle`] if it would wait for itself; [`Error::TooMany`] tags.
pub fn put(work: &mut Work, queue: &QueueKey, put: &Put, client: &str) -> Result<String> {
    let tags = tag::added(&[], put.tags.as_deref().unwrap_or_default())?;
    let key = JobKey::qless(put.id.clone().unwrap_or_else(|| made_up_id(work.now)));
    let depends = match &put.depends {
        Some(ids) => Some(unmet(work, &key, ids)?),
        None => None,
    };
    let queue_id = work.queue_for(queue);
    let mut loser = None;
    if work.job(&key).is_some() {
        loser = leave(work, &key).filter(|worker| worker != client);
    } else {
        let job = new_job(work, &key);
        work.insert(job);
    }
    if let Some(job) = work.job_mut(&key) {
        job.body.clone_from(&put.body);
        if put.klass.is_some() {
            job.klass.clone_from(&put.klass);
        }
        job.priority = put.priority.unwrap_or(job.priority);
        job.retries = put.retries.unwrap_or(job.retries);
        if put.tags.is_some() {
            job.tags = tags;
        }
        job.queue = queue_id;
    }
    if let Some(depends) = depends {
        work.set_dependencies(&key, depends);
    }
    enter(work, &key, &queue.name, put.delay.unwrap_or(0.0));
    announce(work, &key, &queue.name, loser.as_deref());
    Ok(key.id)
}

/// Says that the job was put, and to the worker that had it that it has lost it.
pub fn announce(work: &mut Work, key: &JobKey, queue: &str, loser: Option<&str>) {
    work.events.log(&Said::Put { id: &key.id, queue });
    if let Some(worker) = loser {
        lock_lost(work, key, worker);
    }
    work.tell("put", key);
}

/// Says, to the worker first, that it has lost the job.
pub fn lock_lost(work: &mut Work, key: &JobKey, worker: &str) {
    let said = Said::LockLost {
        id: &key.id,
        worker,
    };
    work.events.worker(worker, &said);
    work.events.log(&said);
}

/// [`put`], of a job that is there.
///
/// # Errors
/// Those of [`put`], and [`Error::NoSuchJob`].
pub fn requeue(work: &mut Work, queue: &QueueKey, job: &Put, client: &str) -> Result<String> {
    let id = job.id.clone().unwrap_or_default();
    if work.job(&JobKey::qless(&id)).is_none() {
        return Err(Error::NoSuchJob { id });
    }
    put(work, queue, job, client)
}

/// 32 hex digits: the time and then chance. What is put together stands together in the index of ids, so
/// that a group of puts writes one page of it and not one each.
pub fn made_up_id(now: Time) -> String {
    let seconds = u64::try_from(now.whole_seconds()).unwrap_or_default();
    let nanos = u32::try_from(now.0.rem_euclid(1_000_000) * 1_000).unwrap_or_default();
    Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanos))
        .simple()
        .to_string()
}

pub fn new_job(work: &mut Work, key: &JobKey) -> Job {
    Job {
        seq: work.next_seq(),
        key: key.clone(),
        queue: 0,
        state: State::Waiting,
        priority: 0.0,
        ready_at: work.now,
        since: work.now,
        lease: None,
        retries: RETRIES,
        remaining: RETRIES,
        klass: None,
        tags: Vec::new(),
        history: History::default(),
        failure: None,
        body: String::new(),
        created_at: work.now,
        spawned_from: None,
        expires_at: None,
        attributes: None,
        timeout_s: None,
        work_state: None,
        updated_at: None,
        dependencies: Vec::new(),
        dependents: Vec::new(),
    }
}

/// Jobs that one job may wait for, and that may wait for one. What changes all of them shares a transaction.
const EDGES_MAX: usize = 10_000;

/// Of the jobs that `key` is to wait for, those that are there and not complete.
///
/// # Errors
/// [`Error::DependencyCycle`]; [`Error::TooMany`] of them, or one that has too many dependents already.
pub fn unmet(work: &Work, key: &JobKey, ids: &[String]) -> Result<Vec<String>> {
    if work.would_wait_for_itself(key, ids) {
        return Err(Error::DependencyCycle { id: key.id.clone() });
    }
    let is_unmet = |id: &String| {
        work.job(&JobKey {
            scope: key.scope,
            id: id.clone(),
        })
        .is_some_and(|job| job.state != State::Complete)
    };
    let mut seen = HashSet::new();
    let unmet = ids
        .iter()
        .filter(|id| is_unmet(id) && seen.insert(id.as_str()));
    let unmet: Vec<String> = unmet.cloned().collect();
    check_edges(unmet.len(), "dependencies of one job")?;
    for id in &unmet {
        let need = JobKey {
            scope: key.scope,
            id: id.clone(),
        };
        let dependents = work.job(&need).map(|job| job.dependents.as_slice());
        let dependents = dependents.unwrap_or_default();
        // Most have far fewer, and need no search for one that is there already.
        if dependents.len() >= EDGES_MAX && !dependents.contains(&key.id) {
            check_edges(dependents.len() + 1, "dependents of one job")?;
        }
    }
    Ok(unmet)
}

/// Refuses more edges at a job than [`EDGES_MAX`].
pub fn check_edges(edges: usize, what: &'static str) -> Result<()> {
    if edges > EDGES_MAX {
        return Err(Error::TooMany {
            what,
            max: EDGES_MAX,
        });
    }
    Ok(())
}

/// Takes the job out of where it is: whatever lease or failure it has is undone. Returns the worker that has
/// lost it by this, unless it was told already.
pub fn leave(work: &mut Work, key: &JobKey) -> Option<String> {
    if let Some(job) = work.job(key)
        && let (State::Failed, Some(failure)) = (job.state, &job.failure)
    {
        let (queue, at) = (job.queue, failure.at);
        // The statistics of a day that is past keeping are gone, and must not come back.
        if at.day() > work.past_keeping("stats-history") {
            work.tally.failure_undone(queue, at);
        }
    }
    let lease = work.job_mut(key)?.lease.take()?;
    (!lease.warned).then_some(lease.worker)
}

/// Lets the job enter its queue anew: it waits, is scheduled, or depends on others.
pub fn enter(work: &mut Work, key: &JobKey, queue_name: &str, delay: f64) {
    let now = work.now;
    if let Some(job) = work.job_mut(key) {
        job.history.push(What::Put, now, Some(queue_name), None);
        job.remaining = job.retries;
        place(job, now, delay);
        let queue = job.queue;
        work.tally.put(queue, now);
    }
}

/// Sets the state in which a job that left another waits to be claimed.
pub fn place(job: &mut Job, now: Time, delay: f64) {
    job.lease = None;
    job.since = now;
    job.ready_at = if delay > 0.0 {
        now.plus_seconds(delay)
    } else {
        now
    };
    job.state = if !job.dependencies.is_empty() {
        State::Depends
    } else if job.ready_at > now {
        State::Scheduled
    } else {
        State::Waiting
    };
}
