//! Queues: pause, resume, forget.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::events::LogEvent;
use crate::engine::model::job::QueueKey;
use crate::engine::model::queue::Queue;
use crate::engine::unit_of_work::{Needs, UnitOfWork};

impl Engine {
    /// Pauses a queue, so that nobody gets a job of it, or lets it go on.
    pub async fn pause(&self, queue: QueueKey, paused: bool, now: Option<Time>) -> Result<()> {
        self.write(Needs::default(), now, 1, move |work| {
            pause(work, &queue, paused);
            Ok(())
        })
        .await
    }

    /// The queue is not listed any more until something is put into it. What is in it stays.
    pub async fn forget_queue(&self, queue: QueueKey, now: Option<Time>) -> Result<()> {
        self.write(Needs::default(), now, 1, move |work| {
            forget(work, &queue);
            Ok(())
        })
        .await
    }
}

/// Pauses a queue, or lets it go on. One that is not known is not listed before something is put into it.
pub fn pause(work: &mut UnitOfWork, key: &QueueKey, paused: bool) {
    if work.queue(key).is_none() {
        work.queue_for(key);
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

/// The queue is not listed any more, until something is put into it. What is in it stays.
pub fn forget(work: &mut UnitOfWork, key: &QueueKey) {
    if let Some(queue) = work.queue(key) {
        work.change_queue(Queue {
            forgotten: true,
            ..(*queue).clone()
        });
    }
}
