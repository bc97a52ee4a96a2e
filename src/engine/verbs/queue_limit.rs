//! The maximum number of queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::Either;

use crate::engine::error::{Error, Result};
use crate::engine::model::job::QueueKey;
use crate::engine::{Engine, EngineSettings};
use crate::memory::holding;

/// The default of [`EngineSettings::max_queues`](crate::engine::EngineSettings::max_queues).
pub const MAX_QUEUES: u32 = 100_000;

/// The `what` of [`Error::TooMany`] if there are too many queues. Protocols recognize the error by it.
pub const QUEUES: &str = "queues";

/// The maximum weight of queues ([`QueueKey::weight`]), and that of the queues that running requests create.
pub struct QueueLimit {
    max: usize,
    reserved: Arc<AtomicUsize>,
}

impl QueueLimit {
    pub fn of(settings: &EngineSettings) -> QueueLimit {
        let max = settings.max_queues.unwrap_or(MAX_QUEUES);
        QueueLimit {
            max: usize::try_from(max).unwrap_or(usize::MAX),
            reserved: Arc::default(),
        }
    }
}

impl Engine {
    /// Reserves room for those of the queues that do not exist. For requests that create queues, before they change
    /// anything. Each server counts its own requests, so servers that share a database can together exceed the limit by
    /// the queues that they create at the same time.
    ///
    /// # Errors
    /// [`Error::TooMany`].
    pub fn reserve_room<'a>(
        &self,
        queues: impl IntoIterator<Item = &'a QueueKey>,
    ) -> Result<ReservedRoom> {
        let (new, known) = self.known_queues().weight_of_new(queues.into_iter());
        let all = Arc::clone(&self.0.queue_limit.reserved);
        let before = match new {
            0 => 0,
            new => all.fetch_add(new, Ordering::Relaxed),
        };
        // Dropped at once if there is no room.
        let room = ReservedRoom { all, new };
        let max = self.0.queue_limit.max;
        match new == 0 || known + before + new <= max {
            true => Ok(room),
            false => Err(Error::TooMany { what: QUEUES, max }),
        }
    }
}

/// Room for the queues that a request creates.
#[must_use]
pub struct ReservedRoom {
    /// The weight of the queues for which all requests together have reserved room.
    all: Arc<AtomicUsize>,
    new: usize,
}

impl ReservedRoom {
    /// Runs the writes of the request. The room is released when they have ended, even if the client disconnects.
    pub fn hold<F: Future>(self, writes: impl FnOnce() -> F) -> impl Future<Output = F::Output> {
        match self.new {
            0 => Either::Left(writes()),
            // A write is queued by the call.
            _ => Either::Right(Box::pin(holding(self, async { writes().await }))),
        }
    }
}

impl Drop for ReservedRoom {
    fn drop(&mut self) {
        if self.new > 0 {
            self.all.fetch_sub(self.new, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::engine_without_tasks;

    #[tokio::test]
    async fn a_queue_with_a_long_name_counts_more() {
        let engine = engine_without_tasks().await;
        for (bytes, weight) in [(255, 1), (256, 2), (1_020, 4)] {
            let before = engine.known_queues().weight();
            // Jobq limits the number of characters.
            let name = format!("{}{}", "🚚".repeat(bytes / 4), "x".repeat(bytes % 4));
            engine.create_queue(&name).await.unwrap();
            assert_eq!(engine.known_queues().weight() - before, weight, "{bytes}");
        }
        engine.close().await;
    }
}
