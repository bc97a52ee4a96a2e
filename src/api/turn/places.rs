//! Names of queues, from the engine's side to the page's and back.

use super::super::views::{Api, Place};
use super::QUEUES_SUGGESTED;
use crate::engine::{Engine, Protocol, QueueId, QueueKey};

/// The queue that a page names.
pub fn key(place: &Place) -> QueueKey {
    QueueKey {
        protocol: match place.api {
            Api::Qless => Protocol::Qless,
            Api::Lmstfy => Protocol::Lmstfy,
            Api::Relay => Protocol::Relay,
            Api::Jobq => Protocol::Jobq,
        },
        namespace: place.namespace.clone(),
        name: place.name.clone(),
    }
}

/// How pages name the queue.
pub fn place(key: &QueueKey) -> Place {
    Place {
        api: match key.protocol {
            Protocol::Relay => Api::Relay,
            Protocol::Jobq => Api::Jobq,
            Protocol::Qless => Api::Qless,
            Protocol::Lmstfy => Api::Lmstfy,
        },
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

/// The queue with that number; one without a name if it has gone.
pub fn place_of(engine: &Engine, queue: QueueId) -> Place {
    let known = engine.known_queues().by_id(queue);
    known.map_or_else(Place::default, |queue| place(&queue.key))
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
