//! How a group of verbs is run: load, work, write, commit, answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{oneshot, watch};

use super::clock::{Clock, Time};
use super::config::Config;
use super::error::{Error, Result};
use super::held::Held;
use super::job::QueueId;
use super::keep;
use super::queues::Queues;
use super::work::{Needs, Work};
use crate::store::{Connection, Group, Statement, StoreError};

/// Workers that were seen, and when. Written with the next group that writes anyway, so that asking
/// an empty queue for work costs no write.
pub type Seen = Mutex<HashMap<String, Time>>;

/// One write of a caller.
pub struct Step {
    pub needs: Needs,
    /// The client's time, where it decides. Such a step has a group of its own.
    pub now: Option<Time>,
    pub items: usize,
    pub task: Box<dyn Task>,
}

/// What a step does, and how it is answered.
pub trait Task: Send {
    /// Runs the verbs, and keeps the result. Called again if the group has to be run again.
    fn run(&mut self, work: &mut Work);

    /// Statements to run instead of a verb: upkeep, and emptying everything.
    fn chore(&self) -> Option<Chore> {
        None
    }

    /// Gives the result to the caller, or the error that kept the group from being committed.
    fn answer(self: Box<Self>, outcome: Result<()>);
}

/// What the server does of its own accord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chore {
    /// Start what is due, drop what is old: a bounded batch of each.
    Upkeep,
    /// Forget everything.
    Flush,
}

/// A verb (or several, for the items of one request) as a task.
pub struct Verb<F, T> {
    pub verb: F,
    pub result: Option<Result<T>>,
    pub tell: oneshot::Sender<Result<T>>,
}

impl<F, T> Task for Verb<F, T>
where
    F: FnMut(&mut Work) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, work: &mut Work) {
        self.result = Some((self.verb)(work));
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

/// A chore as a task.
pub struct Duty {
    pub chore: Chore,
    pub tell: oneshot::Sender<Result<()>>,
}

impl Task for Duty {
    fn run(&mut self, _: &mut Work) {}

    fn chore(&self) -> Option<Chore> {
        Some(self.chore)
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        drop(self.tell.send(outcome));
    }
}

/// The engine's side of group commit.
pub struct Runner {
    pub queues: Arc<Queues>,
    pub config: Arc<Config>,
    pub clock: Arc<Clock>,
    pub seen: Arc<Seen>,
    pub changes: watch::Sender<u64>,
    pub clients_tell_time: bool,
    /// The number of this server, under which it keeps its counts.
    pub server: i64,
    pub next_seq: i64,
    pub held: Held,
}

impl Group for Runner {
    type Step = Step;

    fn items(step: &Step) -> usize {
        step.items
    }

    fn is_alone(step: &Step) -> bool {
        step.now.is_some() || step.needs.failures.is_some() || step.task.chore().is_some()
    }

    async fn run(
        &mut self,
        connection: &mut Connection,
        steps: &mut [Step],
    ) -> Result<(), StoreError> {
        let now = steps
            .iter()
            .find_map(|step| step.now)
            .unwrap_or_else(|| self.clock.now());
        let mut work = Work::new(
            now,
            Arc::clone(&self.queues),
            Arc::clone(&self.config),
            self.next_seq,
        );
        let chore = steps.iter().find_map(|step| step.task.chore());
        let mut writes = match chore {
            Some(Chore::Flush) => keep::flush(),
            Some(Chore::Upkeep) => {
                keep::upkeep(connection, &mut work).await?;
                Vec::new()
            }
            None => {
                self.prime(&mut work, steps);
                let writes = run_named(connection, &mut work, steps).await?;
                run_claims(connection, &mut work, steps, writes).await?
            }
        };
        if work.completed && self.clients_tell_time {
            // There is no upkeep; what is old goes with the completion, as in qless-core.
            connection.run(std::mem::take(&mut writes)).await?;
            keep::retire(connection, &mut work).await?;
        }
        writes.extend(work.closing_writes(self.server));
        let flush = chore == Some(Chore::Flush);
        let seen = if flush {
            HashMap::new()
        } else {
            self.seen_before(&work)
        };
        let written = !writes.is_empty();
        let save_seen = !seen.is_empty() && (written || chore.is_some());
        if save_seen {
            writes.push(keep::save_seen(&seen));
        }
        connection.commit_with(writes).await?;
        if flush {
            self.queues.clear();
            self.config.clear();
            self.held.clear();
        }
        self.committed(work, if save_seen { HashMap::new() } else { seen }, written);
        Ok(())
    }

    fn answer(&mut self, steps: Vec<Step>, outcome: Result<(), StoreError>) {
        if outcome.is_err() {
            self.held.clear();
        }
        let outcome = outcome.map_err(Error::from);
        for step in steps {
            step.task.answer(outcome.clone());
        }
    }
}

impl Runner {
    /// Puts under work what is at hand of the jobs that are named.
    fn prime(&mut self, work: &mut Work, steps: &[Step]) {
        for key in steps.iter().flat_map(|step| &step.needs.jobs) {
            if let Some((job, version)) = self.held.take(key) {
                work.prime(job, version);
            }
        }
    }

    /// Workers seen and not yet saved, those of this group included.
    fn seen_before(&self, work: &Work) -> HashMap<String, Time> {
        let mut seen = self
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        seen.extend(work.seen().iter().map(|worker| (worker.clone(), work.now)));
        seen
    }

    /// Takes over what the committed group has left, and says that something has changed.
    fn committed(&mut self, work: Work, unsaved: HashMap<String, Time>, written: bool) {
        let finished = work.finish();
        self.next_seq = finished.next_seq;
        for (job, version) in finished.held {
            self.held.keep(job, version);
        }
        for (option, value) in finished.settings {
            self.config.apply(&option, value);
        }
        for queue in finished.new_queues {
            self.queues.add(queue);
        }
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = unsaved;
        if written {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }
}

/// Loads the jobs that are named and runs the verbs on them; gives what is to be written.
async fn run_named(
    connection: &mut Connection,
    work: &mut Work,
    steps: &mut [Step],
) -> Result<Vec<Statement>, StoreError> {
    let failures = steps.iter().any(|step| step.needs.failures.is_some());
    let load = work.loading(steps.iter().map(|step| &step.needs));
    if !load.is_empty() {
        let answers = connection.look(load).await?;
        work.loaded(answers, failures)?;
    }
    if let Some(neighbours) = work.loading_neighbours() {
        let answers = connection.look(vec![neighbours]).await?;
        work.loaded(answers, false)?;
    }
    for step in steps.iter_mut().filter(|step| step.needs.claim.is_none()) {
        step.task.run(work);
    }
    Ok(work.job_writes())
}

/// Writes what the other verbs have changed, so that claims find it, then runs the claims.
/// Without claims it gives the writes back, to go with the commit.
async fn run_claims(
    connection: &mut Connection,
    work: &mut Work,
    steps: &mut [Step],
    mut writes: Vec<Statement>,
) -> Result<Vec<Statement>, StoreError> {
    let wanted = wanted(work, steps);
    if !wanted.is_empty() {
        let before = writes.len();
        writes.extend(work.loading_candidates(&wanted));
        let answers = if before == 0 {
            connection.look(writes).await?
        } else {
            connection.run(writes).await?
        };
        work.candidates_loaded(&wanted, answers.into_iter().skip(before))?;
        writes = Vec::new();
    }
    for step in steps.iter_mut().filter(|step| step.needs.claim.is_some()) {
        step.task.run(work);
    }
    writes.extend(work.job_writes());
    Ok(writes)
}

/// How many jobs of each queue the claims of the group want together.
fn wanted(work: &Work, steps: &[Step]) -> Vec<(QueueId, usize)> {
    let mut wanted: Vec<(QueueId, usize)> = Vec::new();
    for (queue, count) in steps.iter().filter_map(|step| step.needs.claim.as_ref()) {
        let Some(id) = work.queue(queue) else {
            continue;
        };
        match wanted.iter_mut().find(|(other, _)| *other == id) {
            Some((_, sum)) => *sum += count,
            None => wanted.push((id, *count)),
        }
    }
    wanted
}
