//! Queues: pause, resume, forget.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::events::LogEvent;
use crate::engine::model::job::QueueKey;
use crate::engine::model::queue::Queue;
use crate::engine::unit_of_work::{Needs, UnitOfWork};

impl Engine {
    /// Pauses a queue, so that its jobs cannot be claimed, or resumes it.
    ///
    /// # Errors
    /// [`TooMany`](crate::engine::Error) queues.
    pub async fn pause(&self, queue: QueueKey, paused: bool, now: Option<Time>) -> Result<()> {
        self.check_room([&queue])?;
        self.write(Needs::default(), now, 1, move |work| {
            pause(work, &queue, paused);
            Ok(())
        })
        .await
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

/// Pauses or resumes a queue. A queue that does not exist is created, but hidden until a job is put into it.
pub fn pause(work: &mut UnitOfWork, key: &QueueKey, paused: bool) {
    if work.queue(key).is_none() {
        work.get_or_create_queue(key);
        forget(work, key);
    }
    let Some(queue) = work.queue(key).filter(|queue| queue.paused != paused) else {
        return;
    };
    let id = queue.id;
    work.change_queue(Queue {
        paused,
        ..(*queue).clone()
    });
    let queue = key.name.as_str();
    if paused {
        work.events.log(&LogEvent::Paused { queue });
    } else {
        work.events.log(&LogEvent::Unpaused { queue });
        work.wake_all(id);
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
