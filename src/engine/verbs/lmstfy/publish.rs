//! lmstfy's way in and out: publish and acknowledge.

use crate::engine::model::history::What;
use crate::engine::model::job::{JobKey, LMSTFY_SCOPE, QueueKey, State};
use crate::engine::unit_of_work::Work;
use crate::engine::unit_of_work::counters::Kind;
use crate::engine::verbs::lmstfy::respawn::is_in;
use crate::engine::verbs::qless::put::{made_up_id, new_job, place};

/// What stands before the id of a job whose publisher uses attributes, as in lmstfy's own versioned ids.
const VERSION: &str = "1";

/// A job to be published.
#[derive(Clone, Debug)]
pub struct Publish {
    /// The bytes in base64.
    pub body: String,
    /// Seconds before it becomes available.
    pub delay_s: u32,
    /// Seconds from now until it ends, wherever it is; 0 for never.
    pub ttl_s: u32,
    /// How many times it may be consumed; at least 1.
    pub tries: u16,
    /// Whether its publisher uses attributes.
    pub versioned: bool,
    /// The JSON text of an object.
    pub attributes: Option<String>,
}

/// Publishes a job. Returns its id, which may be the name of a queue for replies.
pub fn publish(work: &mut Work, queue: &QueueKey, publish: &Publish) -> String {
    let now = work.now;
    let made_up = made_up_id(now);
    let id = match publish.versioned {
        true => format!("{VERSION}{made_up}"),
        false => made_up,
    };
    let key = JobKey {
        scope: LMSTFY_SCOPE,
        id: id.clone(),
    };
    let queue_id = work.queue_for(queue);
    let mut job = new_job(work, &key);
    job.queue = queue_id;
    job.retries = i64::from(publish.tries) - 1;
    job.remaining = job.retries;
    job.body.clone_from(&publish.body);
    job.attributes.clone_from(&publish.attributes);
    job.expires_at = ends_after(work, publish.ttl_s);
    job.history.push(What::Put, now, Some(&queue.name), None);
    place(&mut job, now, f64::from(publish.delay_s));
    work.insert(job);
    work.tally.put(queue_id, now);
    id
}

/// When a job ends that has so many seconds to live.
pub fn ends_after(work: &Work, ttl_s: u32) -> Option<crate::engine::Time> {
    (ttl_s > 0).then(|| work.now.plus_seconds(f64::from(ttl_s)))
}

/// The job will never be consumed again, whatever its state; it is gone. Whether it was in this queue.
pub fn acknowledge(work: &mut Work, queue: &QueueKey, key: &JobKey) -> bool {
    if !is_in(work, queue, key) {
        return false;
    }
    if let Some(job) = work.job(key)
        && job.state == State::Running
    {
        let (queue, ran) = (job.queue, work.now.seconds_since(job.since));
        work.tally.duration(queue, Kind::Run, ran, work.now);
    }
    work.remove(key);
    true
}
