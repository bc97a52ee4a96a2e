//! Put: creates a job, or moves an existing one to a queue.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::events::LogEvent;
use crate::engine::model::body::Body;
use crate::engine::model::job::{JobKey, QueueKey};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::ItemResults;
use crate::engine::verbs::leases::announce_lost_lease;
use crate::engine::verbs::lifecycle::{enter_queue, generated_id, leave_queue, new_job};
use crate::engine::verbs::qless::depend::unmet_dependencies;
use crate::engine::verbs::qless::tag;

/// A job to put. Fields that are `None` keep their value on an existing job and have their default on a new one.
#[derive(Clone, Debug, Default)]
pub struct Put {
    /// Generated (32 hex digits) if `None`.
    pub id: Option<String>,
    /// JSON text, stored verbatim.
    pub body: String,
    pub klass: Option<String>,
    /// Seconds before the job becomes available; 0 or less means now.
    pub delay: Option<f64>,
    /// Lower numbers run first.
    pub priority: Option<f64>,
    pub tags: Option<Vec<String>>,
    /// Attempts after the first.
    pub retries: Option<i64>,
    /// IDs of jobs to depend on; complete and missing ones are ignored.
    pub depends: Option<Vec<String>>,
}

/// [`put()`] or [`requeue()`].
type PutVerb = fn(&mut UnitOfWork, &QueueKey, &Put, &Body, &str) -> Result<String>;

impl Engine {
    /// Puts jobs into `queue` on behalf of the worker `client`. Returns each job's ID.
    ///
    /// # Errors
    /// [`Error::TooMany`] queues.
    pub async fn put(
        &self,
        queue: QueueKey,
        jobs: Vec<Put>,
        client: String,
        now: Option<Time>,
    ) -> ItemResults<String> {
        self.put_each(queue, jobs, client, now, put).await
    }

    /// Puts existing jobs into `queue` on behalf of the worker `client`. Returns each job's ID.
    ///
    /// # Errors
    /// [`Error::TooMany`] queues.
    pub async fn requeue(
        &self,
        queue: QueueKey,
        jobs: Vec<Put>,
        client: String,
        now: Option<Time>,
    ) -> ItemResults<String> {
        self.put_each(queue, jobs, client, now, requeue).await
    }

    async fn put_each(
        &self,
        queue: QueueKey,
        jobs: Vec<Put>,
        client: String,
        now: Option<Time>,
        verb: PutVerb,
    ) -> ItemResults<String> {
        let room = self.reserve_room([&queue])?;
        let jobs = jobs.into_iter().map(with_body).collect();
        let writes = || {
            self.apply_in_batches(jobs, now, need_with_body, move |work, (job, body)| {
                verb(work, &queue, job, body, &client)
            })
        };
        room.hold(writes).await
    }
}

/// Moves the body of a job into a form that is not copied in the transaction, because other writes wait for it.
fn with_body(mut job: Put) -> (Put, Body) {
    let body = Body::from(std::mem::take(&mut job.body));
    (job, body)
}

fn need_with_body(needs: &mut Needs, (job, body): &(Put, Body)) {
    need_of_put(needs, job);
    needs.bytes += body.bytes();
}

pub fn need_of_put(needs: &mut Needs, job: &Put) {
    needs.jobs.extend(job.id.iter().map(JobKey::qless));
    needs.depends(job.depends.as_deref().unwrap_or_default());
    needs.tags(job.tags.as_deref().unwrap_or_default());
    needs.replaces_tags |= job.tags.is_some();
    needs.replaces_dependencies |= job.depends.is_some();
    needs.bytes += job.body.len();
    needs.adds_jobs = true;
}

/// Puts a new job into `queue` on behalf of the worker `client`, or moves the existing job of this ID there, which ends
/// its lease and resets its retries; a failed job no longer counts as failed. `body` replaces the body of `put`.
/// Returns the ID.
///
/// # Errors
/// [`Error::DependencyCycle`] if it would depend on itself; [`Error::TooMany`] tags or dependencies.
pub fn put(
    work: &mut UnitOfWork,
    queue: &QueueKey,
    put: &Put,
    body: &Body,
    client: &str,
) -> Result<String> {
    let tags = tag::of_new_job(put.tags.as_deref().unwrap_or_default())?;
    let key = JobKey::qless(put.id.clone().unwrap_or_else(|| generated_id(work.now)));
    let depends = match &put.depends {
        Some(ids) => Some(unmet_dependencies(work, &key, ids)?),
        None => None,
    };
    let queue_id = work.get_or_create_queue(queue);
    let mut loser = None;
    if work.job(&key).is_some() {
        loser = leave_queue(work, &key).filter(|worker| worker != client);
    } else {
        let job = new_job(work, &key);
        work.insert(job);
    }
    if let Some(job) = work.job_mut(&key) {
        job.body = body.clone();
        if put.klass.is_some() {
            job.klass.clone_from(&put.klass);
        }
        job.priority = put.priority.unwrap_or(job.priority);
        job.retries = put.retries.unwrap_or(job.retries);
        if put.tags.is_some() {
            job.set_tags(tags);
        }
        job.queue = queue_id;
    }
    if let Some(depends) = depends {
        work.set_dependencies(&key, &depends);
    }
    enter_queue(work, &key, &queue.name, put.delay.unwrap_or(0.0));
    announce_put(work, &key, &queue.name, loser.as_deref());
    Ok(key.id)
}

/// Like [`put`], but fails if the job does not exist.
///
/// # Errors
/// Those of [`put`], and [`Error::NoSuchJob`].
pub fn requeue(
    work: &mut UnitOfWork,
    queue: &QueueKey,
    job: &Put,
    body: &Body,
    client: &str,
) -> Result<String> {
    let id = job.id.clone().unwrap_or_default();
    if work.job(&JobKey::qless(&id)).is_none() {
        return Err(Error::NoSuchJob { id });
    }
    put(work, queue, job, body, client)
}

/// Publishes the put, and notifies the worker that loses the job.
pub fn announce_put(work: &mut UnitOfWork, key: &JobKey, queue: &str, loser: Option<&str>) {
    work.events.log(&LogEvent::Put { id: &key.id, queue });
    if let Some(worker) = loser {
        announce_lost_lease(work, key, worker);
    }
    work.publish_tracked("put", key);
}
