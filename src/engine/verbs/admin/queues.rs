//! Queues: pause, resume, forget.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::events::LogEvent;
use crate::engine::model::job::{Protocol, QueueKey};
use crate::engine::model::queue::{Pause, Queue};
use crate::engine::unit_of_work::{Needs, UnitOfWork};

/// Queues that one transaction pauses or resumes, or whose pauses it ends.
pub const PAUSE_BATCH: usize = 250;

/// A pause that a user of the dashboard begins or changes.
#[derive(Clone, Debug, Default)]
pub struct NewPause {
    /// Up to [`PAUSE_REASON_CHARS_MAX`](crate::engine::PAUSE_REASON_CHARS_MAX) characters; may be empty.
    pub reason: Arc<str>,
    /// The user.
    pub by: Arc<str>,
    /// When the queue resumes; `None` if it is paused until it is resumed.
    pub until: Option<Time>,
}

impl NewPause {
    /// Whether it has neither a reason nor an end.
    fn is_plain(&self) -> bool {
        self.reason.is_empty() && self.until.is_none()
    }
}

impl Engine {
    /// Pauses a queue until it is resumed, so that its jobs cannot be claimed, or resumes it. For clients of the
    /// queue's API; the reason of a pause remains.
    ///
    /// # Errors
    /// [`TooMany`](crate::engine::Error) queues.
    pub async fn pause(&self, queue: QueueKey, paused: bool, now: Option<Time>) -> Result<()> {
        let room = self.reserve_room([&queue])?;
        let write = || {
            self.write(Needs::default(), now, 1, move |work| {
                let new = NewPause::default();
                pause(work, &queue, paused.then_some(&new));
                Ok(())
            })
        };
        room.hold(write).await
    }

    /// Pauses queues, replaces the reason and the end of pauses, or resumes queues (`None`), in batches. Returns how
    /// many queues it changed.
    ///
    /// # Errors
    /// [`TooMany`](crate::engine::Error) queues.
    pub async fn pause_queues(
        &self,
        queues: &[QueueKey],
        new: Option<NewPause>,
        now: Option<Time>,
    ) -> Result<usize> {
        let room = self.reserve_room(queues)?;
        let writes = async || {
            let mut changed = 0;
            for batch in queues.chunks(PAUSE_BATCH) {
                let (batch, new) = (batch.to_vec(), new.clone());
                changed += self
                    .write(Needs::default(), now, batch.len(), move |work| {
                        let each = batch.iter();
                        Ok(each.filter(|key| pause(work, key, new.as_ref())).count())
                    })
                    .await?;
            }
            Ok(changed)
        };
        room.hold(writes).await
    }

    /// Hides a queue until a job is put into it. Its jobs remain.
    pub async fn forget_queue(&self, queue: QueueKey, now: Option<Time>) -> Result<()> {
        self.write(Needs::default(), now, 1, move |work| {
            forget(work, &queue);
            Ok(())
        })
        .await
    }
}

/// Pauses a queue, changes its pause, or resumes it (`None`). A queue that does not exist is created, but hidden until
/// a job is put into it. Returns whether anything changed.
pub fn pause(work: &mut UnitOfWork, key: &QueueKey, new: Option<&NewPause>) -> bool {
    if work.queue(key).is_none() {
        work.get_or_create_queue(key);
        forget(work, key);
    }
    let Some(queue) = work.queue(key) else {
        return false;
    };
    let before = queue.pause_at(work.now);
    let after = new.map(|new| changed(before, new, work.now));
    if after == queue.pause {
        return false;
    }
    let (id, was_paused) = (queue.id, before.is_some());
    let until = after.as_ref().and_then(|pause| pause.until);
    let is_paused = after.is_some();
    work.change_queue(Queue {
        pause: after,
        ..(*queue).clone()
    });
    // The log of events belongs to qless.
    let queue = (key.protocol == Protocol::Qless).then_some(key.name.as_str());
    match (was_paused, is_paused, queue) {
        (false, true, Some(queue)) => work.events.log(&LogEvent::Paused { queue }),
        (_, false, Some(queue)) => work.events.log(&LogEvent::Unpaused { queue }),
        _ => {}
    }
    if !is_paused {
        work.wake_all(id);
    }
    if let Some(until) = until {
        work.available_at(id, until);
    }
    true
}

/// The pause after `new`. A plain one keeps the reason of the pause that lasts already.
fn changed(before: Option<&Pause>, new: &NewPause, now: Time) -> Pause {
    match before {
        Some(before) if new.is_plain() => Pause {
            until: None,
            ..before.clone()
        },
        _ => Pause {
            since: before.map_or(Some(now), |before| before.since),
            until: new.until,
            reason: new.reason.clone(),
            by: new.by.clone(),
        },
    }
}

/// Removes pauses that have ended, up to [`PAUSE_BATCH`]. Claims do not wait for this; it makes the end visible to
/// other readers of the database, and publishes it.
pub fn end_pauses(work: &mut UnitOfWork) {
    for queue in work.ended_pauses(PAUSE_BATCH) {
        pause(work, &queue.key, None);
        work.affected_rows += 1;
    }
}

/// Hides the queue until a job is put into it. Its jobs remain.
pub fn forget(work: &mut UnitOfWork, key: &QueueKey) {
    if let Some(queue) = work.queue(key) {
        work.change_queue(Queue {
            forgotten: true,
            ..(*queue).clone()
        });
    }
}
