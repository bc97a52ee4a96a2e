//! Flush: deletes everything.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::maintenance::Chore;

impl Engine {
    /// Forgets everything.
    pub async fn flush(&self) -> Result<()> {
        self.chore(Chore::Flush).await.map(drop)
    }
}
