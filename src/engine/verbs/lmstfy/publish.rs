//! Publish: adds a job to a queue.

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::EventKind;
use crate::engine::model::job::{JobKey, LMSTFY_SCOPE, QueueKey};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::lifecycle::{generated_id, new_job, set_available};
use crate::engine::verbs::lmstfy::acknowledge::acknowledge;
use crate::engine::verbs::needs_of_jobs;

/// The prefix of the ID of a job whose publisher uses attributes, as in lmstfy's own versioned IDs.
const VERSION: &str = "1";

/// A job to publish.
#[derive(Clone, Debug)]
pub struct Publish {
    /// Base64.
    pub body: String,
    /// Seconds before it becomes available.
    pub delay_s: u32,
    /// The time to live in seconds, after which the job is deleted unless it is dead; 0 for no limit.
    pub ttl_s: u32,
    /// How many times it may be consumed; at least 1.
    pub tries: u16,
    /// Whether the publisher uses attributes.
    pub versioned: bool,
    /// The JSON text of an object.
    pub attributes: Option<String>,
}

impl Engine {
    /// Publishes jobs, all or none, and returns their IDs.
    ///
    /// # Errors
    /// [`TooMany`](crate::engine::Error) queues.
    pub async fn publish(&self, queue: QueueKey, jobs: Vec<Publish>) -> Result<Vec<String>> {
        let room = self.reserve_room([&queue])?;
        let needs = Needs {
            bytes: jobs.iter().map(|job| job.body.len()).sum(),
            adds_jobs: true,
            ..Needs::default()
        };
        let write = || {
            self.write(needs, None, jobs.len(), move |work| {
                let publish = |job| publish(work, &queue, job);
                Ok(jobs.iter().map(publish).collect())
            })
        };
        room.hold(write).await
    }

    /// Publishes a job and returns its ID. Deletes the job `id`, if the queue has it.
    ///
    /// # Errors
    /// [`TooMany`](Error) queues; [`Full`](Error) if the disk is full and the queue does not have the job.
    pub async fn republish(&self, queue: QueueKey, id: &str, job: Publish) -> Result<String> {
        let room = self.reserve_room([&queue])?;
        let key = JobKey::lmstfy(id);
        // One job in place of the deleted one needs no extra disk space, so `adds_jobs` is not set.
        let mut needs = needs_of_jobs([&key]);
        needs.bytes = job.body.len();
        let write = || {
            self.write(needs, None, 1, move |work| {
                if !acknowledge(work, &queue, &key) && work.is_disk_full {
                    return Err(Error::Full);
                }
                Ok(publish(work, &queue, &job))
            })
        };
        room.hold(write).await
    }
}

/// Publishes a job and returns its ID, which clients may use as the name of a queue for replies.
pub fn publish(work: &mut UnitOfWork, queue: &QueueKey, publish: &Publish) -> String {
    let now = work.now;
    let generated = generated_id(now);
    let id = match publish.versioned {
        true => format!("{VERSION}{generated}"),
        false => generated,
    };
    let key = JobKey {
        scope: LMSTFY_SCOPE,
        id: id.clone(),
    };
    let queue_id = work.get_or_create_queue(queue);
    let mut job = new_job(work, &key);
    job.queue = queue_id;
    job.retries = i64::from(publish.tries) - 1;
    job.remaining = job.retries;
    job.body = publish.body.as_str().into();
    job.attributes.clone_from(&publish.attributes);
    job.expires_at = expires_at_for(work, publish.ttl_s);
    let trace = work.trace.traceparent();
    job.history
        .push(EventKind::Put, now, Some(&queue.name), trace.as_deref());
    set_available(&mut job, now, f64::from(publish.delay_s));
    work.insert(job);
    work.counters.put(queue_id, now);
    id
}

/// The expiry time of a job with this time to live; `None` for 0.
pub fn expires_at_for(work: &UnitOfWork, ttl_s: u32) -> Option<crate::engine::Time> {
    (ttl_s > 0).then(|| work.now.plus_seconds(f64::from(ttl_s)))
}
