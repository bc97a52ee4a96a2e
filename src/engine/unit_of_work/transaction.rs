//! How a group of verbs is run: load, work, write, commit, answer.

pub mod request;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::engine::cache;
use crate::engine::clock::{Clock, Time};
use crate::engine::error::{Error, Result};
use crate::engine::events;
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::empty_queues::EmptyQueues;
use crate::engine::maintenance::tasks::{self, MaintenanceTask};
use crate::engine::model::job::{JobKey, QueueId};

use crate::engine::peers::Peers;

use crate::engine::maintenance::{fold_series, prune};
use crate::engine::subscriptions::Subscriptions;
use crate::engine::unit_of_work::commit_times::CommitTimes;
use crate::engine::unit_of_work::job_cache::JobCache;
use crate::engine::unit_of_work::spawn;
use crate::engine::unit_of_work::time_series;
use crate::engine::unit_of_work::{Audit, Seqs, Shared, UnitOfWork, Wanted};
use crate::store::{Connection, Group, Statement, StoreError};
pub use request::{Task, Verb, WriteRequest};

/// How many servers may number what they insert without meeting.
const SERVERS_MAX: i64 = 1_024;

/// After so many groups the oldest events are dropped.
const DROP_EVENTS_EVERY: u64 = 1_000;

/// Workers that were seen, and when. Written with the next group that writes anyway, so that asking
/// an empty queue for work costs no write.
pub type SeenWorkers = Mutex<HashMap<String, Time>>;

/// The engine's side of group commit.
pub struct Runner {
    pub shared: Shared,
    pub clock: Arc<Clock>,
    pub seen: Arc<SeenWorkers>,
    pub subscriptions: Arc<Subscriptions>,
    pub changes: watch::Sender<u64>,
    pub commits: Arc<CommitTimes>,
    pub clients_tell_time: bool,
    /// The other servers on the database, where there may be some.
    pub peers: Arc<Peers>,
    /// Whether the upkeep is ours to do.
    pub leads: Arc<AtomicBool>,
    pub last_seq: i64,
    /// What is in memory is as of this revision of the database.
    pub revision: i64,
    /// Whether we have looked what others have changed.
    pub has_noticed: bool,
    /// How many groups have been written; old events go with every so many.
    pub groups: u64,
    /// Queues that have, or had, recurring jobs.
    pub recurring_in: HashSet<QueueId>,
    pub aged: Aging,
    pub held: JobCache,
    pub idle: EmptyQueues,
}

/// When it was seen last to what is old.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aging {
    /// The day on which old statistics were dropped.
    pruned_on: Option<i64>,
    /// The hour in which old minutes became hours.
    folded_in: Option<i64>,
}

impl Group for Runner {
    type Request = WriteRequest;

    fn items(step: &WriteRequest) -> usize {
        step.items
    }

    fn is_alone(step: &WriteRequest) -> bool {
        step.now.is_some()
            || step.needs.oldest.is_some()
            || step.actor.is_some()
            || step.task.chore().is_some()
    }

    fn adds(step: &WriteRequest) -> bool {
        step.needs.adds
    }

    async fn run(
        &mut self,
        connection: &mut Connection,
        steps: &mut [WriteRequest],
    ) -> Result<(), StoreError> {
        // Servers that add edges at the same time might close a circle together, each seeing half of it.
        let strict = steps.iter().any(|step| !step.needs.reach.is_empty());
        let seqs = self.begin(connection, strict).await?;
        let now = steps.iter().find_map(|step| step.now);
        let now = now.unwrap_or_else(|| self.clock.now());
        let has_subscribers = self.subscriptions.any() || self.peers.any();
        let mut work = UnitOfWork::new(now, &self.shared, has_subscribers, seqs);
        work.audit = Audit::of_first(steps);
        work.revision = self.peers.share().then_some(self.revision);
        let chore = steps.iter().find_map(|step| step.task.chore());
        let mut writes = match &chore {
            Some(chore) => {
                let writes = self.attend_to(chore, connection, &mut work).await?;
                steps.iter_mut().for_each(|step| step.task.run(&mut work));
                writes
            }
            None => {
                self.prime(&mut work, steps);
                let writes = run_named(connection, &mut work, steps).await?;
                let (shared, recurring_in) = (self.peers.share(), &self.recurring_in);
                run_claims(connection, &mut work, steps, writes, recurring_in, shared).await?
            }
        };
        // Where clients tell the time upkeep leaves qless alone; what is old goes with a completion, as in qless-core.
        let retires = work.completed && self.clients_tell_time;
        if retires {
            connection.run(std::mem::take(&mut writes)).await?;
            tasks::retire(connection, &mut work).await?;
        }
        let ages = retires || matches!(chore, Some(SystemTask::Upkeep(MaintenanceTask::Age)));
        let aged = if ages {
            self.age(connection, &mut work).await?
        } else {
            self.aged
        };
        if self.groups.is_multiple_of(DROP_EVENTS_EVERY) && chore.is_none() {
            writes.push(events::drop_old());
        }
        let flush = matches!(chore, Some(SystemTask::Flush));
        let revised = flush || work.changes_what_is_kept();
        writes.extend(work.closing_writes(self.peers.number));
        let seen = if flush {
            HashMap::new()
        } else {
            self.seen_before(&work)
        };
        let written = !writes.is_empty();
        let save_seen = !seen.is_empty() && (written || chore.is_some());
        if save_seen {
            writes.push(tasks::save_seen(&seen, self.clients_tell_time));
        }
        let began = Instant::now();
        connection.commit_with(writes).await?;
        if written {
            self.commits.took(began);
        }
        if let Some(chore) = &chore {
            self.attended(chore, connection).await?;
        }
        // Where servers share the database the next group finds out by itself, and reads what is there again.
        if revised && !self.peers.share() {
            self.revision += 1;
        }
        self.aged = aged;
        self.groups += 1;
        self.committed(work, if save_seen { HashMap::new() } else { seen }, written);
        Ok(())
    }

    fn answer(&mut self, steps: Vec<WriteRequest>, outcome: Result<(), StoreError>) {
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
    /// Begins a transaction, and catches up with what other servers have changed. Where the order of
    /// insertion goes on: among several servers by the clock, and a server's number.
    async fn begin(
        &mut self,
        connection: &mut Connection,
        strict: bool,
    ) -> Result<Seqs, StoreError> {
        let Some(fresh) = connection.begin(strict).await? else {
            return Ok(Seqs {
                last: self.last_seq,
                step: 1,
            });
        };
        self.clock.follow(fresh.now);
        if self.revision != fresh.revision {
            self.catch_up(connection).await?;
        }
        let by_clock = fresh.now.saturating_mul(SERVERS_MAX) + self.peers.number % SERVERS_MAX;
        Ok(Seqs {
            last: self.last_seq.max(by_clock),
            step: SERVERS_MAX,
        })
    }

    /// Drops old statistics, once a day, and makes hours of old minutes, once an hour: a bounded batch of each, until
    /// that was all.
    async fn age(
        &self,
        connection: &mut Connection,
        work: &mut UnitOfWork,
    ) -> Result<Aging, StoreError> {
        let mut aged = self.aged;
        let hour = Some(time_series::minute(work.now).div_euclid(time_series::HOUR));
        if aged.folded_in != hour && fold_series::fold(connection, work).await? {
            aged.folded_in = hour;
        }
        let day = Some(work.now.day());
        if aged.pruned_on != day && prune::prune(connection, work, self.clients_tell_time).await? {
            aged.pruned_on = day;
        }
        Ok(aged)
    }

    /// Catches up with what has changed of that which is kept in memory.
    async fn catch_up(&mut self, connection: &mut Connection) -> Result<(), StoreError> {
        let answers = connection.look(cache::since(self.revision)).await?;
        match cache::take_in(&self.shared, self.revision, &answers)? {
            Some(revision) => self.revision = revision,
            None => self.take_over(connection).await?,
        }
        Ok(())
    }

    /// Reads again what is kept in memory.
    pub(in crate::engine) async fn take_over(
        &mut self,
        connection: &mut Connection,
    ) -> Result<(), StoreError> {
        let answers = connection.look(cache::all()).await?;
        let taken = cache::take_over(&self.shared, answers)?;
        self.revision = taken.revision;
        self.recurring_in = taken.recurring_in;
        if taken.tokens_differ {
            // Whoever waits with a token that has been revoked should look again.
            self.subscriptions.wake_all();
        }
        Ok(())
    }

    /// Puts under work what is at hand of the jobs that are named.
    fn prime(&mut self, work: &mut UnitOfWork, steps: &[WriteRequest]) {
        if self.peers.share() {
            // Another server may have given a job to somebody else meanwhile.
            return;
        }
        for step in steps {
            let keys: Vec<_> = work.keys_of(&step.needs).collect();
            for (scope, id) in keys {
                let id = id.to_owned();
                if let Some((job, version)) = self.held.take(&JobKey { scope, id }) {
                    work.prime(job, version);
                }
            }
        }
    }

    /// Workers seen and not yet saved, those of this group included.
    fn seen_before(&self, work: &UnitOfWork) -> HashMap<String, Time> {
        let mut seen = self
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for worker in work.forgotten_workers() {
            seen.remove(worker);
        }
        seen.extend(work.seen().iter().map(|worker| (worker.clone(), work.now)));
        seen
    }

    /// Takes over what the committed group has left, and says that something has changed.
    fn committed(&mut self, mut work: UnitOfWork, unsaved: HashMap<String, Time>, written: bool) {
        if work.ticks > 0 {
            self.clock.pass(work.tick());
        }
        let finished = work.finish();
        self.last_seq = finished.last_seq;
        if !self.peers.share() {
            // A verb that only looks at a job is not guarded by its version: nothing old may be at hand.
            for (key, job) in finished.running {
                match job {
                    Some((job, version)) => self.held.keep(job, version),
                    None => drop(self.held.take(&key)),
                }
            }
        }
        for (option, value) in finished.settings {
            self.shared.config.apply(&option, value);
            // What is kept for how long may have changed, and how many may run.
            self.aged.pruned_on = None;
            self.subscriptions.wake_all();
        }
        for queue in finished.changed_queues {
            self.shared.queues.add(queue);
        }
        for id in finished.gone_queues {
            self.shared.queues.remove(id);
        }
        for (id, since) in finished.tracking {
            self.shared.tracked.apply(&id, since);
        }
        if !finished.tokens.is_empty() {
            let tokens = finished.tokens.into_iter();
            tokens.for_each(|change| self.shared.tokens.apply(change));
            self.subscriptions.wake_all();
        }
        self.recurring_in.extend(finished.recurring_in);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = unsaved;
        let queue = |id| self.shared.queues.by_id(id);
        for (queue, n) in finished
            .wake_ups
            .iter()
            .filter_map(|(id, n)| Some((queue(*id)?, *n)))
        {
            self.subscriptions.wake(&queue.key, n);
        }
        for (queue, at) in finished
            .next_available
            .iter()
            .filter_map(|(id, at)| Some((queue(*id)?, *at)))
        {
            self.subscriptions.available_at(&queue.key, at);
        }
        if written {
            let touched = finished
                .wake_ups
                .keys()
                .chain(finished.next_available.keys());
            self.peers.tell(touched.copied());
            self.changes.send_modify(|changes| *changes += 1);
        }
    }
}

/// Loads the jobs that are named and runs the verbs on them; gives what is to be written.
async fn run_named(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    steps: &mut [WriteRequest],
) -> Result<Vec<Statement>, StoreError> {
    let numbers = work.numbers_wanted(steps.iter().map(|step| &step.needs));
    if !numbers.is_empty() {
        let answers = connection
            .run(vec![UnitOfWork::taking_numbers(&numbers)])
            .await?;
        work.numbers_taken(&numbers, answers)?;
    }
    let oldest = steps.iter().any(|step| step.needs.oldest.is_some());
    let load = work.loading(steps.iter().map(|step| &step.needs));
    if !load.is_empty() {
        let answers = connection.look(load).await?;
        work.loaded(answers, oldest)?;
    }
    let adds_edges = steps.iter().any(|step| !step.needs.reach.is_empty());
    if let Some(neighbours) =
        work.loading_neighbours(steps.iter().map(|step| &step.needs), adds_edges)
    {
        let answers = connection.look(vec![neighbours]).await?;
        work.neighbours_loaded(&answers, adds_edges)?;
    }
    if let Some(bodies) = work.loading_bodies(steps.iter().map(|step| &step.needs)) {
        let answers = connection.look(vec![bodies]).await?;
        work.bodies_loaded(&answers)?;
    }
    work.audit_begins();
    for step in steps.iter_mut().filter(|step| step.needs.claim.is_empty()) {
        step.task.run(work);
    }
    Ok(work.job_writes())
}

/// Writes what the other verbs have changed, so that claims find it, then runs the claims; those whose
/// caller has hung up take nothing. Without claims it gives the writes back, to go with the commit.
async fn run_claims(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    steps: &mut [WriteRequest],
    mut writes: Vec<Statement>,
    recurring_in: &HashSet<QueueId>,
    shared: bool,
) -> Result<Vec<Statement>, StoreError> {
    let claims =
        |step: &&mut WriteRequest| !step.needs.claim.is_empty() && !step.task.is_abandoned();
    let wanted = wanted(work, steps);
    // Where it is limited how many jobs run, servers count and claim one after the other.
    if shared && let Some(turn) = work.taking_turns(&wanted) {
        connection.run(vec![turn]).await?;
    }
    if !wanted.is_empty() {
        // On a full disk recurring jobs that are due stay due.
        let none = HashSet::new();
        let recurring_in = if connection.is_full() {
            &none
        } else {
            recurring_in
        };
        let before = writes.len();
        writes.extend(work.loading_candidates(&wanted, recurring_in));
        let answers = if before == 0 {
            connection.look(writes).await?
        } else {
            connection.run(writes).await?
        };
        let answers = answers.into_iter().skip(before);
        let due = work.candidates_loaded(&wanted, recurring_in, answers)?;
        if let Some(bodies) = work.loading_claimed_bodies() {
            let answers = connection.run(vec![bodies]).await?;
            work.bodies_loaded(&answers)?;
        }
        if !due.is_empty() {
            let due = spawn::planned(&wanted, due, work.now);
            let taken = UnitOfWork::loading_taken(&due);
            let answers = connection.run(vec![taken]).await?;
            let rows = answers.iter().flat_map(|answer| &answer.rows);
            let taken = rows.map(|row| row.text(0)).collect::<Result<_, _>>()?;
            work.spawn(&wanted, due, &taken);
        }
        writes = Vec::new();
    }
    for step in steps.iter_mut().filter(claims) {
        step.task.run(work);
    }
    writes.extend(work.job_writes());
    Ok(writes)
}

/// How many jobs of each queue the claims of the group want together.
fn wanted(work: &UnitOfWork, steps: &[WriteRequest]) -> Vec<(QueueId, usize)> {
    let mut wanted: Vec<(QueueId, usize)> = Vec::new();
    let mut places: HashMap<QueueId, usize> = HashMap::new();
    let all = steps.iter().flat_map(|step| &step.needs.claim);
    for Wanted {
        queue,
        count,
        paused_too,
    } in all
    {
        let Some(queue) = work
            .queue(queue)
            .filter(|queue| *paused_too || !queue.paused)
        else {
            continue;
        };
        let place = *places.entry(queue.id).or_insert(wanted.len());
        match wanted.get_mut(place) {
            Some((_, sum)) => *sum += count,
            None => wanted.push((queue.id, *count)),
        }
    }
    wanted
}

#[cfg(test)]
mod tests;
