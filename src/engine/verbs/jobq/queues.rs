//! Queues: create and delete.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{QueueId, QueueKey};
use crate::engine::model::queue::Queue;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::jobq::changes::known;

/// The longest name of a queue, in characters.
const NAME_CHARS_MAX: usize = 255;

/// Why no queue can have this name.
pub fn flaw_of_queue_name(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("the name is empty")
    } else if name.chars().count() > NAME_CHARS_MAX {
        Some("the name is longer than 255 characters")
    } else if name.contains('\0') {
        Some("the name contains NUL")
    } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
        Some("the name must not be a number; it could be mistaken for an ID")
    } else {
        None
    }
}

impl Engine {
    /// Makes a queue of this name.
    ///
    /// # Errors
    /// [`Error::QueueExists`].
    pub async fn create_queue(&self, name: &str) -> Result<QueueId> {
        let key = QueueKey::jobq(name);
        self.write(Needs::default(), None, 1, move |work| {
            create_queue(work, &key)
        })
        .await
    }

    /// Deletes a queue with all that is in it.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub async fn delete_queue(&self, queue: &Arc<Queue>) -> Result<()> {
        let queue = Arc::clone(queue);
        self.write(Needs::default(), None, 1, move |work| {
            delete_queue(work, &queue)
        })
        .await
    }
}

/// Makes a queue. Its number.
///
/// # Errors
/// [`Error::QueueExists`].
pub fn create_queue(work: &mut UnitOfWork, queue: &QueueKey) -> Result<QueueId> {
    if work.queue(queue).is_some() {
        let name = queue.name.clone();
        return Err(Error::QueueExists { name });
    }
    Ok(work.queue_for(queue))
}

/// Deletes a queue with all that is in it: from now on nobody finds it, and its name is free. Upkeep drops what
/// was in it, and then the queue.
///
/// # Errors
/// [`Error::NoSuchQueue`].
pub fn delete_queue(work: &mut UnitOfWork, queue: &Queue) -> Result<()> {
    known(work, queue)?;
    work.change_queue(Queue {
        key: QueueKey {
            namespace: format!("expunged {}", queue.id),
            ..queue.key.clone()
        },
        forgotten: true,
        ..queue.clone()
    });
    Ok(())
}
