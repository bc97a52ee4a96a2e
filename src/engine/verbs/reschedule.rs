//! Reschedule: changes when a scheduled job is due. For all protocols whose jobs can be scheduled.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{JobKey, Protocol, QueueId, QueueKey, State};
use crate::engine::unit_of_work::{Needs, UnitOfWork};

impl Engine {
    /// Makes a scheduled job of the queue due after `delay_s` seconds. Returns whether the job was scheduled.
    ///
    /// # Errors
    /// [`Error::NoSuchJob`].
    pub async fn reschedule(
        &self,
        queue: &QueueKey,
        id: &str,
        delay_s: f64,
        now: Option<Time>,
    ) -> Result<bool> {
        self.refresh_cache().await?;
        let missing = || Error::NoSuchJob { id: id.to_owned() };
        let of = self.known_queues().get(queue).ok_or_else(missing)?.id;
        let key = match queue.protocol {
            Protocol::Qless => JobKey::qless(id),
            Protocol::Lmstfy => JobKey::lmstfy(id),
            Protocol::Relay | Protocol::Jobq => JobKey {
                scope: of,
                id: id.to_owned(),
            },
        };
        let mut needs = Needs::default();
        needs.job(&key);
        needs.keeps_dependencies = true;
        self.write(needs, now, 1, move |work| {
            reschedule(work, &key, of, delay_s)
        })
        .await
    }
}

/// Makes a scheduled job due after `delay_s` seconds. Returns whether the job was scheduled.
///
/// # Errors
/// [`Error::NoSuchJob`].
pub fn reschedule(
    work: &mut UnitOfWork,
    key: &JobKey,
    queue: QueueId,
    delay_s: f64,
) -> Result<bool> {
    let now = work.now;
    let missing = || Error::NoSuchJob { id: key.id.clone() };
    let found = work.job(key).filter(|job| job.queue == queue);
    let found = found.ok_or_else(missing)?;
    if found.state != State::Scheduled || found.ready_at <= now {
        return Ok(false);
    }
    let job = work.job_mut(key).ok_or_else(missing)?;
    job.ready_at = now.plus_seconds(delay_s.max(0.0));
    if job.ready_at <= now {
        job.state = State::Waiting;
        job.since = now;
    }
    Ok(true)
}
