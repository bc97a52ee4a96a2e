//! Workers: forget one.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::unit_of_work::Needs;

impl Engine {
    /// The worker is not listed any more until it shows itself. Jobs that it has stay with it.
    pub async fn forget_worker(&self, worker: &str, now: Option<Time>) -> Result<()> {
        let worker = worker.to_owned();
        self.write(Needs::default(), now, 1, move |work| {
            work.forget_worker(&worker);
            Ok(())
        })
        .await
    }
}
