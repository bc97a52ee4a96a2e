//! Queues in a transaction: lookup, creation, changes.

use std::sync::Arc;

use crate::engine::model::job::{JobKey, QueueId, QueueKey};
use crate::engine::model::queue::Queue;
use crate::engine::unit_of_work::UnitOfWork;

impl UnitOfWork {
    /// The queue including the changes of this transaction.
    pub fn queue(&self, key: &QueueKey) -> Option<Arc<Queue>> {
        if let Some(id) = self.changed_keys.get(key) {
            return self.changed_queues.get(id).cloned().map(Arc::new);
        }
        let is_as_before = |queue: &Arc<Queue>| !self.changed_queues.contains_key(&queue.id);
        self.queues.get(key).filter(is_as_before)
    }

    /// The key of a job in this queue, if the queue exists.
    pub fn key_in(&self, queue: &QueueKey, id: &str) -> Option<JobKey> {
        let scope = self.queue(queue)?.id;
        let id = id.to_owned();
        Some(JobKey { scope, id })
    }

    /// The ID of a queue, which is created or listed again if necessary.
    pub fn get_or_create_queue(&mut self, key: &QueueKey) -> QueueId {
        if let Some(queue) = self.queue(key) {
            if queue.forgotten {
                self.change_queue(Queue {
                    forgotten: false,
                    first_seen: self.now,
                    ..(*queue).clone()
                });
            }
            return queue.id;
        }
        let last = self.changed_queues.last_key_value().map(|(id, _)| id + 1);
        let id = last.unwrap_or_default().max(self.queues.next_id());
        self.change_queue(Queue {
            id,
            key: key.clone(),
            first_seen: self.now,
            pause: None,
            forgotten: false,
        });
        id
    }

    /// Stores a new or changed queue.
    pub fn change_queue(&mut self, queue: Queue) {
        let (id, key) = (queue.id, queue.key.clone());
        let before = self.changed_queues.insert(id, queue);
        if let Some(before) = before.filter(|before| before.key != key) {
            self.changed_keys.remove(&before.key);
        }
        self.changed_keys.insert(key, id);
    }

    /// Stores the queue as it is, so that other servers read it again.
    pub fn touch_queue(&mut self, id: QueueId) {
        let unchanged = self.queue_by_id(id);
        if let Some(queue) = unchanged.filter(|_| !self.changed_queues.contains_key(&id)) {
            self.change_queue((*queue).clone());
        }
    }

    /// The queue before the changes of this transaction.
    pub fn queue_by_id(&self, id: QueueId) -> Option<Arc<Queue>> {
        self.queues.by_id(id)
    }

    /// Up to `max` queues whose pause has ended, before the changes of this transaction.
    pub fn ended_pauses(&self, max: usize) -> Vec<Arc<Queue>> {
        self.queues.ended_pauses(self.now, max)
    }

    /// Deletes an empty queue.
    pub fn delete_queue(&mut self, id: QueueId) {
        self.deleted_queues.push(id);
    }

    /// The name of a queue; empty if it does not exist.
    pub fn queue_name(&self, id: QueueId) -> String {
        self.queue_key(id).map(|key| key.name).unwrap_or_default()
    }

    pub fn queue_key(&self, id: QueueId) -> Option<QueueKey> {
        match self.changed_queues.get(&id) {
            Some(queue) => Some(queue.key.clone()),
            None => self.queues.by_id(id).map(|queue| queue.key.clone()),
        }
    }
}
