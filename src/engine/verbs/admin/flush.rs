//! Flush: deletes everything.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::maintenance::SystemTask;

impl Engine {
    /// Deletes all data.
    pub async fn flush(&self) -> Result<()> {
        self.run_system_task(SystemTask::Flush).await.map(drop)
    }
}
