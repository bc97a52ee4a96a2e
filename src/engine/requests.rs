//! Passes requests to the writer and waits for their results.
//!
//! A request is queued at once. A boxed future is allocated only if the queue is full. So the futures of HTTP requests,
//! which move several times before they run, stay small.

use futures::future::BoxFuture;
use tokio::sync::oneshot;

use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::maintenance::{Done, SystemRequest, SystemTask};
use crate::engine::unit_of_work::transaction::{Verb, WriteRequest};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::{BYTES_PER_WEIGHT, Engine, WEIGHT_OF_CRON_SEARCH, write_timeout};
use crate::memory::hold_until_done;
use crate::store::StoreError;
use crate::traces::Trace;

impl Engine {
    /// Queues a verb at once. The result is that of the verb, after the commit.
    pub(in crate::engine) fn write<T: Send + 'static>(
        &self,
        needs: Needs,
        now: Option<Time>,
        weight: usize,
        verb: impl FnMut(&mut UnitOfWork) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        let (sender, receiver) = oneshot::channel();
        let task = Box::new(Verb {
            verb,
            result: None,
            sender,
        });
        let waiting = self.queue_request(WriteRequest {
            // Bytes, relations and searches bound a transaction too, not only the number of verbs.
            weight: weight
                + needs.bytes / BYTES_PER_WEIGHT
                + needs.relations
                + needs.searches * WEIGHT_OF_CRON_SEARCH,
            loaded_weight: 0,
            needs,
            now,
            task,
            actor: self.1.clone(),
            trace: Trace::current(),
            held: hold_until_done(),
        });
        let is_shared = self.readers().is_shared();
        async move {
            let written = written(waiting, receiver);
            if !is_shared {
                return written.await;
            }
            Box::pin(write_timeout::in_time(written)).await
        }
    }

    /// Runs a system task. Returns [`UnitOfWork::affected_rows`].
    pub(in crate::engine) async fn run_system_task(
        &self,
        system_task: SystemTask,
    ) -> Result<usize> {
        let done = self.submit_system_task(system_task, None).await?;
        Ok(done.affected_rows)
    }

    /// Runs a system task, at the client's time if it applies.
    pub(in crate::engine) async fn submit_system_task(
        &self,
        system_task: SystemTask,
        now: Option<Time>,
    ) -> Result<Done> {
        let (sender, receiver) = oneshot::channel();
        let is_limited = system_task.is_for_request() && self.readers().is_shared();
        let task = Box::new(SystemRequest {
            system_task,
            done: Done::default(),
            sender,
        });
        let waiting = self.queue_request(WriteRequest {
            needs: Needs::default(),
            now,
            weight: 1,
            loaded_weight: 0,
            task,
            actor: self.1.clone(),
            trace: Trace::NONE,
            held: hold_until_done(),
        });
        let written = written(waiting, receiver);
        match is_limited {
            true => write_timeout::in_time(written).await,
            false => written.await,
        }
    }

    /// Queues a request. If there is no room, returns a future that waits for room and then queues it.
    fn queue_request(
        &self,
        request: WriteRequest,
    ) -> Option<BoxFuture<'_, Result<(), StoreError>>> {
        let refused = self.0.writer.try_submit(request).err()?;
        Some(Box::pin(self.0.writer.submit(refused)))
    }
}

/// The result of a request, which `waiting` queues if it is not queued yet.
async fn written<T>(
    waiting: Option<BoxFuture<'_, Result<(), StoreError>>>,
    receiver: oneshot::Receiver<Result<T>>,
) -> Result<T> {
    if let Some(waiting) = waiting {
        waiting.await?;
    }
    receiver.await.map_err(|_| StoreError::Stopped)?
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use tokio::sync::Semaphore;

    use super::*;
    use crate::engine::engine_without_tasks;
    use crate::memory::{holding, of_request, reserve, reserved};

    #[tokio::test(flavor = "multi_thread")]
    async fn what_a_request_holds_is_released_when_its_writes_have_ended() {
        let engine = engine_without_tasks().await;
        let (open, gate) = mpsc::channel::<()>();
        let occupied = engine.write(Needs::default(), None, 1, move |_| {
            gate.recv().ok();
            Ok(())
        });
        let permits = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
        let before = reserved();
        let mut request = Box::pin(of_request(async {
            reserve(1_000).await.unwrap();
            let write = async { engine.write(Needs::default(), None, 1, |_| Ok(())).await };
            holding(permit, write).await
        }));
        assert!(futures::poll!(&mut request).is_pending());
        // The client disconnects.
        drop(request);
        assert_eq!(
            (permits.available_permits(), reserved() - before),
            (0, 1_000)
        );
        open.send(()).unwrap();
        occupied.await.unwrap();
        let later = engine.write(Needs::default(), None, 1, |_| Ok(()));
        later.await.unwrap();
        assert_eq!((permits.available_permits(), reserved() - before), (1, 0));
        engine.close().await;
    }
}
