//! Create: adds a record.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::history::EventKind;
use crate::engine::model::job::State;
use crate::engine::model::queue::Queue;
use crate::engine::model::record::{Record, key, stored_state};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::jobq::changes::{RecordMemory, check_queue, no_such_queue};
use crate::engine::verbs::lifecycle::new_job;

impl Engine {
    /// Adds a record. `payload` and `state` are JSON text without whitespace.
    ///
    /// # Errors
    /// [`NoSuchQueue`, `Busy`](crate::engine::Error).
    pub async fn create_record(
        &self,
        queue: &Arc<Queue>,
        payload: String,
        state: String,
    ) -> Result<Record> {
        let needs = Needs {
            reserves_record_id_in: Some(queue.id),
            bytes: payload.len() + state.len(),
            adds_jobs: true,
            ..Needs::default()
        };
        let queue = Arc::clone(queue);
        // Before the transaction, because a client that gets no response would create it again.
        let bytes = payload.len() + state.len();
        RecordMemory::default().reserve(bytes, true).await?;
        self.write(needs, None, 1, move |work| {
            create(work, &queue, &payload, &state)
        })
        .await
    }
}

/// Adds a record.
///
/// # Errors
/// [`Error::NoSuchQueue`](crate::engine::Error::NoSuchQueue).
pub fn create(work: &mut UnitOfWork, queue: &Queue, payload: &str, state: &str) -> Result<Record> {
    check_queue(work, queue)?;
    // `None` if another server has deleted the queue.
    let id = work.next_record_id(queue.id);
    let id = id.ok_or_else(|| no_such_queue(queue))?;
    let (now, key) = (work.next_tick(), key(queue, id));
    let mut job = new_job(work, &key);
    job.queue = queue.id;
    job.state = State::Record;
    job.body = payload.into();
    job.work_state = stored_state(state);
    job.created_at = now;
    job.since = now;
    job.updated_at = Some(now);
    let trace = work.trace.traceparent();
    job.history
        .push(EventKind::Created, now, None, trace.as_deref());
    let record = Record::of(&job);
    work.insert(job);
    work.counters.put(queue.id, work.now);
    Ok(record)
}
