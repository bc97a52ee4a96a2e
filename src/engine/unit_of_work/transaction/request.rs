//! Requests to the writer, which are grouped into transactions.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::engine::audit::Actor;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::maintenance::SystemTask;
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::memory::HeldUntilDone;
use crate::store::StoreError;
use crate::traces::Trace;

/// A write of one caller.
pub struct WriteRequest {
    pub needs: Needs,
    /// The client's time, if it applies. Such a request has a transaction of its own.
    pub now: Option<Time>,
    /// What it costs a transaction: 1 for each job, and more for bytes, tags and dependencies.
    pub weight: usize,
    /// What it loaded when it was too large together with others, in the same units.
    pub loaded_weight: usize,
    pub task: Box<dyn Task>,
    /// The actor, if the change is to be audited. Such a request has a transaction of its own.
    pub actor: Option<Arc<Actor>>,
    /// The trace that it belongs to.
    pub trace: Trace,
    /// Until it has ended, even if the caller has disconnected or was told that it takes too long.
    pub held: HeldUntilDone,
}

impl WriteRequest {
    /// Runs the verbs of the request.
    pub fn run(&mut self, work: &mut UnitOfWork) {
        work.trace.clone_from(&self.trace);
        self.task.run(work);
    }
}

/// The error of requests that are too large together. From now on, each weighs at least twice as much, and at least
/// what `weight` returns for it: the weight of what it has loaded. So the same group does not form again, and a request
/// that is put back each time soon runs alone.
pub fn too_large(
    requests: &mut [WriteRequest],
    mut weight: impl FnMut(&WriteRequest) -> usize,
) -> StoreError {
    for request in requests {
        let twice = request.weight.saturating_mul(2).max(1);
        request.loaded_weight = weight(request);
        request.weight = request.loaded_weight.max(twice);
    }
    StoreError::TransactionTooLarge
}

/// What a request runs, and how it responds.
pub trait Task: Send {
    /// Runs the verbs, or reads the result of the system task, and keeps the result. Called again if the transaction is
    /// repeated.
    fn run(&mut self, work: &mut UnitOfWork);

    /// The system task to run instead of verbs.
    fn system_task(&self) -> Option<SystemTask> {
        None
    }

    /// Whether the caller has disconnected.
    fn is_abandoned(&self) -> bool {
        false
    }

    /// Sends the result to the caller, or the error that prevented the commit.
    fn respond(self: Box<Self>, outcome: Result<()>);
}

/// A verb as a task, or several for the items of one request.
pub struct Verb<F, T> {
    pub verb: F,
    pub result: Option<Result<T>>,
    pub sender: oneshot::Sender<Result<T>>,
}

impl<F, T> Task for Verb<F, T>
where
    F: FnMut(&mut UnitOfWork) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, work: &mut UnitOfWork) {
        self.result = Some((self.verb)(work));
    }

    fn is_abandoned(&self) -> bool {
        self.sender.is_closed()
    }

    fn respond(self: Box<Self>, outcome: Result<()>) {
        let result = match outcome {
            Ok(()) => self
                .result
                .unwrap_or(Err(Error::Store("the verb was not run".to_owned()))),
            Err(error) => Err(error),
        };
        // Fails if the caller has disconnected. The change is committed nevertheless.
        drop(self.sender.send(result));
    }
}
