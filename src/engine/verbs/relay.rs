//! The Relay verbs. `next` is the shared claim (`verbs/claim.rs`).

pub mod complete;
pub mod dead_letter;
pub mod delete;
pub mod enqueue;
pub mod heartbeat;
pub mod requeue;

use crate::engine::model::job::QueueKey;
use crate::engine::unit_of_work::Needs;

fn needs_of_jobs<'a>(jobs: impl IntoIterator<Item = (&'a QueueKey, &'a String)>) -> Needs {
    let jobs = jobs.into_iter();
    Needs {
        in_queues: jobs
            .map(|(queue, id)| (queue.clone(), id.clone()))
            .collect(),
        ..Needs::default()
    }
}
