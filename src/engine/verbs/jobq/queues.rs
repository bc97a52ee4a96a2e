//! Queues: create and delete.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{QueueId, QueueKey};
use crate::engine::model::queue::Queue;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::jobq::changes::check_queue;

/// The longest queue name, in characters.
const NAME_CHARS_MAX: usize = 255;

/// Why the queue name is invalid; `None` if it is valid.
pub fn invalid_queue_name_reason(name: &str) -> Option<&'static str> {
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
    /// Creates a queue.
    ///
    /// # Errors
    /// [`Error::QueueExists`]; [`Error::TooMany`] queues.
    pub async fn create_queue(&self, name: &str) -> Result<QueueId> {
        let key = QueueKey::jobq(name);
        let room = self.reserve_room([&key])?;
        let write = || {
            self.write(Needs::default(), None, 1, move |work| {
                create_queue(work, &key)
            })
        };
        room.hold(write).await
    }

    /// Deletes a queue and its records.
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

/// Creates a queue and returns its ID.
///
/// # Errors
/// [`Error::QueueExists`].
pub fn create_queue(work: &mut UnitOfWork, queue: &QueueKey) -> Result<QueueId> {
    if work.queue(queue).is_some() {
        let name = queue.name.clone();
        return Err(Error::QueueExists { name });
    }
    Ok(work.get_or_create_queue(queue))
}

/// Deletes a queue and its records: they are hidden at once, and the name is free. Maintenance deletes the records and
/// then the queue.
///
/// # Errors
/// [`Error::NoSuchQueue`].
pub fn delete_queue(work: &mut UnitOfWork, queue: &Queue) -> Result<()> {
    check_queue(work, queue)?;
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
