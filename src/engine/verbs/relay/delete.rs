//! Delete: removes jobs in any state.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::QueueKey;
use crate::engine::unit_of_work::{Needs, UnitOfWork};

impl Engine {
    /// Deletes jobs of a queue, in any state. Returns how many existed.
    pub async fn delete(&self, queue: QueueKey, ids: Vec<String>) -> Result<usize> {
        let of = queue.clone();
        let need = move |needs: &mut Needs, id: &String| {
            needs.in_queues.push((of.clone(), id.clone()));
            needs.deletes = true;
        };
        let delete = move |work: &mut UnitOfWork, id: &String| Ok(delete(work, &queue, id));
        let gone = self.apply_in_batches(ids, None, need, delete).await?;
        Ok(gone.iter().filter(|gone| matches!(gone, Ok(true))).count())
    }
}

/// Deletes a job, in any state. Returns whether it existed.
pub fn delete(work: &mut UnitOfWork, queue: &QueueKey, id: &str) -> bool {
    let key = work.key_in(queue, id);
    let Some(key) = key.filter(|key| work.job(key).is_some()) else {
        return false;
    };
    work.remove(&key);
    true
}
