//! What a group is made of.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::engine::audit::Actor;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::maintenance::SystemTask;
use crate::engine::unit_of_work::{Needs, UnitOfWork};

/// One write of a caller.
pub struct WriteRequest {
    pub needs: Needs,
    /// The client's time, where it decides. Such a step has a group of its own.
    pub now: Option<Time>,
    pub items: usize,
    pub task: Box<dyn Task>,
    /// Who does it, if the audit is to know. Such a step has a group of its own.
    pub actor: Option<Arc<Actor>>,
}

/// What a step does, and how it is answered.
pub trait Task: Send {
    /// Runs the verbs, or looks what has become of the chore, and keeps the result. Called again if the group
    /// has to be run again.
    fn run(&mut self, work: &mut UnitOfWork);

    /// Statements to run instead of a verb: upkeep, and emptying everything.
    fn system_task(&self) -> Option<SystemTask> {
        None
    }

    /// Whether the caller has hung up.
    fn is_abandoned(&self) -> bool {
        false
    }

    /// Gives the result to the caller, or the error that kept the group from being committed.
    fn answer(self: Box<Self>, outcome: Result<()>);
}

/// A verb (or several, for the items of one request) as a task.
pub struct Verb<F, T> {
    pub verb: F,
    pub result: Option<Result<T>>,
    pub tell: oneshot::Sender<Result<T>>,
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
        self.tell.is_closed()
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let result = match outcome {
            Ok(()) => self
                .result
                .unwrap_or(Err(Error::Store("the verb was not run".to_owned()))),
            Err(error) => Err(error),
        };
        // The caller may have hung up; what it asked for has been done all the same.
        drop(self.tell.send(result));
    }
}
