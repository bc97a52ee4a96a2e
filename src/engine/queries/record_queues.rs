//! Jobq queues.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Protocol, QueueKey};
use crate::engine::model::queue::Queue;

impl Engine {
    /// The queues, by ID.
    pub async fn record_queues(&self) -> Result<Vec<Arc<Queue>>> {
        self.refresh_cache().await?;
        let mut queues = self.known_queues().unordered();
        queues.retain(|queue| queue.key.protocol == Protocol::Jobq && !queue.forgotten);
        queues.sort_unstable_by_key(|queue| queue.id);
        Ok(queues)
    }

    /// The queue with this ID or name. The result identifies this queue even if it is deleted and its name is used
    /// again.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub async fn record_queue(&self, name: &str) -> Result<Arc<Queue>> {
        let known = || {
            let queues = self.known_queues();
            // Queue names are never numbers.
            let queue = if name.bytes().all(|byte| byte.is_ascii_digit()) {
                queues.by_id(name.parse().unwrap_or_default())
            } else {
                queues.get(&QueueKey::jobq(name))
            };
            queue.filter(|queue| queue.key.protocol == Protocol::Jobq && !queue.forgotten)
        };
        if let Some(queue) = known() {
            return Ok(queue);
        }
        // Another server may have just created it.
        self.refresh_cache().await?;
        known().ok_or_else(|| Error::NoSuchQueue {
            name: name.to_owned(),
        })
    }
}
