//! Append: adds a client's event to a record's log.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::history::EventKind;
use crate::engine::model::queue::Queue;
use crate::engine::model::record::Record;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::verbs::jobq::changes::{
    CLIENT_LIMITS, change_with_log, find_record, needs_of_record,
};

impl Engine {
    /// Appends a client's event, which is JSON text without whitespace, to the log of a record.
    ///
    /// # Errors
    /// [`NoSuchQueue`, `NoSuchJob`, `LogFull`](crate::engine::Error).
    pub async fn append_event(&self, queue: &Arc<Queue>, id: i64, event: String) -> Result<Record> {
        let (needs, queue) = (needs_of_record(queue, id, event.len()), Arc::clone(queue));
        self.write(needs, None, 1, move |work| append(work, &queue, id, &event))
            .await
    }
}

/// Appends a client's event.
///
/// # Errors
/// [`NoSuchQueue`, `NoSuchJob`, `LogFull`](crate::engine::Error).
pub fn append(work: &mut UnitOfWork, queue: &Queue, id: i64, event: &str) -> Result<Record> {
    let (key, _) = find_record(work, queue, id)?;
    change_with_log(work, &key, &CLIENT_LIMITS, |job, now| {
        job.history.push(EventKind::Event, now, None, Some(event));
    })
}
