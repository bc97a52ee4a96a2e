//! Workers: forget one.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::unit_of_work::Needs;

impl Engine {
    /// Hides the worker until it is active again. It keeps its jobs.
    pub async fn forget_worker(&self, worker: &str, now: Option<Time>) -> Result<()> {
        let worker = worker.to_owned();
        self.write(Needs::default(), now, 1, move |work| {
            work.forget_worker(&worker);
            Ok(())
        })
        .await
    }
}
