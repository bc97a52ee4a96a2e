//! Flush: deletes all jobs, queues, options and statistics, of all protocols.

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::maintenance::SystemTask;

/// Transactions that delete a part each, before the last one deletes what is left. Clients that add jobs meanwhile
/// cannot prolong a flush beyond that.
const PARTS_MAX: usize = 20_000;

impl Engine {
    /// Deletes all jobs, queues, options and statistics, including what other requests add meanwhile.
    pub async fn flush(&self) -> Result<()> {
        let engine = self.clone();
        // A task, so that a client that disconnects does not leave half of the data.
        let flushing = tokio::spawn(async move {
            for _ in 0..PARTS_MAX {
                if engine.run_system_task(SystemTask::FlushPart).await? == 0 {
                    break;
                }
            }
            engine.run_system_task(SystemTask::Flush).await.map(drop)
        });
        flushing.await.map_err(|_| Error::Unavailable)?
    }
}
