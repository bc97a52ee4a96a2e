//! Converts between queue keys of the engine and queue references of pages.

use crate::engine::{Engine, Protocol, QueueId, QueueKey};
use crate::ui::model::queue_ref::QueueRef;

/// Maximum number of suggested names of queues.
pub const QUEUES_SUGGESTED: usize = 200;

/// The engine's key of a queue.
pub fn key(queue_ref: &QueueRef) -> QueueKey {
    QueueKey {
        protocol: queue_ref.protocol,
        namespace: queue_ref.namespace.clone(),
        name: queue_ref.name.clone(),
    }
}

/// The reference of a queue.
pub fn queue_ref(key: &QueueKey) -> QueueRef {
    QueueRef {
        protocol: key.protocol,
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

/// The queue with this ID; an empty reference if it no longer exists.
pub fn queue_of(engine: &Engine, queue: QueueId) -> QueueRef {
    let known = engine.known_queues().by_id(queue);
    known.map_or_else(QueueRef::default, |queue| queue_ref(&queue.key))
}

/// Suggested queue names. Only qless queues, because jobs cannot be moved to another protocol.
pub fn queue_names(engine: &Engine) -> Vec<String> {
    let mut known = engine.known_queues().unordered();
    known.retain(|queue| queue.key.protocol == Protocol::Qless && !queue.forgotten);
    if known.len() > QUEUES_SUGGESTED {
        known.select_nth_unstable_by(QUEUES_SUGGESTED, |a, b| a.key.name.cmp(&b.key.name));
        known.truncate(QUEUES_SUGGESTED);
    }
    let names = known.iter().map(|queue| queue.key.name.clone());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
