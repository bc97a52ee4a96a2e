//! Converts between queue keys of the engine and queue references of pages.

use crate::engine::{Engine, Protocol, QueueId, QueueKey};
use crate::ui::model::queue_ref::QueueRef;

/// Names of queues that a form suggests.
pub const QUEUES_SUGGESTED: usize = 200;

/// The queue that a page names.
pub fn key(queue_ref: &QueueRef) -> QueueKey {
    QueueKey {
        protocol: queue_ref.protocol,
        namespace: queue_ref.namespace.clone(),
        name: queue_ref.name.clone(),
    }
}

/// How pages name the queue.
pub fn queue_ref(key: &QueueKey) -> QueueRef {
    QueueRef {
        protocol: key.protocol,
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

/// The queue with that number; one without a name if it has gone.
pub fn queue_of(engine: &Engine, queue: QueueId) -> QueueRef {
    let known = engine.known_queues().by_id(queue);
    known.map_or_else(QueueRef::default, |queue| queue_ref(&queue.key))
}

/// Names of qless's queues to choose from. Nothing can be moved to another protocol.
pub fn queue_names(engine: &Engine) -> Vec<String> {
    let known = engine.known_queues().all();
    let mut names: Vec<String> = known
        .into_iter()
        .filter(|queue| queue.key.protocol == Protocol::Qless && !queue.forgotten)
        .map(|queue| queue.key.name.clone())
        .collect();
    names.sort();
    names.truncate(QUEUES_SUGGESTED);
    names
}
