//! Delete: removes a record.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::queue::Queue;
use crate::engine::model::record::key;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::verbs::jobq::changes::{check_queue, needs_of_record};

impl Engine {
    /// Deletes a record, and returns whether it existed.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`](crate::engine::Error::NoSuchQueue).
    pub async fn delete_record(&self, queue: &Arc<Queue>, id: i64) -> Result<bool> {
        let (needs, queue) = (needs_of_record(queue, id, 0), Arc::clone(queue));
        self.write(needs, None, 1, move |work| delete(work, &queue, id))
            .await
    }
}

/// Deletes a record, and returns whether it existed.
///
/// # Errors
/// [`Error::NoSuchQueue`](crate::engine::Error::NoSuchQueue).
pub fn delete(work: &mut UnitOfWork, queue: &Queue, id: i64) -> Result<bool> {
    check_queue(work, queue)?;
    let key = key(queue, id);
    let exists = work.job(&key).is_some();
    if exists {
        work.remove(&key);
    }
    Ok(exists)
}
