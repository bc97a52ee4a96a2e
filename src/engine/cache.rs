//! Data that every request needs and that the server therefore caches: queues, options, tracked jobs, tokens, and which
//! queues have recurring jobs. The database has a revision, which each change of these data increments, and for each
//! kind of data the revision of its last change. So a server that knows an earlier revision reads only the kinds that
//! have changed since ([`Refresh`]), and only the queues that were written or deleted.
//!
//! On a shared database, a transaction that changes cached data commits only if the revision is still the one that this
//! server knew at the beginning. So when the change is applied to the caches, they contain all earlier changes, and an
//! older read cannot replace it.

pub mod refresh;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use crate::engine::Engine;
use crate::engine::cache::refresh::Refresh;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::config::Config;
use crate::engine::model::job::QueueId;
use crate::engine::model::queue::{Queue, Queues};
use crate::engine::model::tracked::Tracked;
use crate::engine::subscriptions::Subscriptions;
use crate::engine::tokens::{TokenChange, Tokens};
use crate::engine::unit_of_work::transaction::Runner;
use crate::store::{Connection, Readers, Statement, StoreError};

/// The caches and settings, shared by all transactions and reads of a server.
#[derive(Clone, Default)]
pub struct Caches {
    pub queues: Arc<Queues>,
    pub config: Arc<Config>,
    pub tracked: Arc<Tracked>,
    pub tokens: Arc<Tokens>,
    /// Queues that have or had recurring jobs.
    recurring_in: Arc<Mutex<Arc<HashSet<QueueId>>>>,
    /// The database revision that the caches above have at least reached. Held while a change is applied.
    revision: Arc<Mutex<i64>>,
    /// Whether the database has lost commits, and the writer has not taken that into account yet.
    lost_history: Arc<AtomicBool>,
    /// [`EngineSettings::released_bytes_max`](crate::engine::EngineSettings).
    pub released_bytes_max: Option<usize>,
}

/// What a transaction changes in the caches.
#[derive(Default)]
pub struct CacheChanges {
    /// Whether everything except for tokens is deleted.
    pub flushes: bool,
    pub queues: Vec<Queue>,
    pub deleted_queues: Vec<QueueId>,
    pub changed_options: Vec<(String, Option<String>)>,
    pub tracking: HashMap<String, Option<Time>>,
    pub tokens: Vec<TokenChange>,
    pub recurring_in: HashSet<QueueId>,
}

impl Caches {
    pub fn new(released_bytes_max: Option<usize>) -> Caches {
        Caches {
            released_bytes_max,
            ..Caches::default()
        }
    }

    /// The database revision of the caches. Their data is at least as new.
    pub fn revision(&self) -> i64 {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, i64> {
        self.revision.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the database has lost commits since the last call.
    fn take_lost_history(&self) -> bool {
        self.lost_history.swap(false, Ordering::Relaxed)
    }

    /// Queues that have or had recurring jobs, now.
    pub fn recurring_in(&self) -> Arc<HashSet<QueueId>> {
        Arc::clone(&self.lock_recurring_in())
    }

    fn lock_recurring_in(&self) -> MutexGuard<'_, Arc<HashSet<QueueId>>> {
        self.recurring_in
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies what a transaction has changed and committed with a new revision, unless a refresh has already read it.
    /// `began_with` is the revision at the beginning, if the database is shared. Returns the qless queues of which more
    /// jobs may be claimed now.
    pub fn apply(&self, changes: CacheChanges, began_with: Option<i64>) -> Vec<String> {
        let mut known = self.lock();
        let revision = began_with.unwrap_or(*known) + 1;
        let is_known = *known >= revision;
        let mut limited = Vec::new();
        for (option, value) in changes.changed_options {
            let queue = match is_known {
                true => Config::limited_queue(&option),
                false => self.config.apply(&option, value),
            };
            limited.extend(queue.map(str::to_owned));
        }
        if is_known {
            return limited;
        }
        if changes.flushes {
            self.queues.clear();
            self.config.clear();
            self.tracked.clear();
            *self.lock_recurring_in() = Arc::default();
        }
        for queue in changes.queues {
            self.queues.add(queue);
        }
        for (id, since) in changes.tracking {
            self.tracked.apply(&id, since);
        }
        for change in changes.tokens {
            self.tokens.apply(change);
        }
        let deleted = changes.deleted_queues;
        if !changes.recurring_in.is_empty() || !deleted.is_empty() {
            let mut recurring_in = self.lock_recurring_in();
            let recurring_in = Arc::make_mut(&mut recurring_in);
            recurring_in.extend(changes.recurring_in);
            recurring_in.retain(|id| !deleted.contains(id));
        }
        deleted.into_iter().for_each(|id| self.queues.remove(id));
        *known = revision;
        limited
    }
}

impl Runner {
    /// With SQLite only `switchyard token` writes while the server runs, so only maintenance checks the revision.
    /// Returns the statement that acknowledges the change to the command. The first check always acknowledges: a change
    /// made while the server started has been loaded with everything else, and its command waits for an acknowledgment
    /// too.
    pub async fn check_revision(
        &mut self,
        connection: &mut Connection,
    ) -> Result<Option<Statement>, StoreError> {
        if self.peers.is_shared() {
            return Ok(None);
        }
        let answers = connection.read(vec![Statement::new(STATE, [])]).await?;
        let row = answers.first().and_then(|answer| answer.rows.first());
        let row = row.ok_or(StoreError::Corrupt("no state"))?;
        let (revision, noticed) = (row.int(0)?, row.int(1)?);
        let is_first = !std::mem::replace(&mut self.has_reported_revision, true);
        if revision != self.caches.revision() {
            self.refresh(connection, Refresh::of_everything()).await?;
        } else if !is_first || noticed >= revision {
            return Ok(None);
        }
        let noticed = self.caches.revision().into();
        Ok(Some(Statement::new(NOTICED, [noticed])))
    }

    /// Applies what other servers have changed in cached data, if the database has another revision than the caches.
    pub(in crate::engine) async fn catch_up(
        &mut self,
        connection: &mut Connection,
        revision: i64,
    ) -> Result<(), StoreError> {
        let known = self.caches.revision();
        if known != revision {
            self.refresh(connection, Refresh::since(known)).await?;
        }
        // A read outside the writer may have noticed it. The database assigns the versions of lost commits again, so
        // they no longer show whether a cached job has changed.
        if self.caches.take_lost_history() {
            self.job_cache.clear();
        }
        Ok(())
    }

    /// Reads what has changed, or everything, and applies it to the caches.
    pub(in crate::engine) async fn refresh(
        &mut self,
        connection: &mut Connection,
        mut refresh: Refresh,
    ) -> Result<(), StoreError> {
        while let Some(statements) = refresh.next_statements() {
            refresh.take(connection.read(statements).await?)?;
        }
        refresh.apply(&self.caches, &self.subscriptions)
    }
}

impl Engine {
    /// Applies what other servers have changed in cached data.
    pub(in crate::engine) async fn refresh_cache(&self) -> Result<()> {
        let caches = &self.0.caches;
        // Before the database is read: a lower revision that is read afterwards means that it has lost commits.
        let known = caches.revision();
        let Some(fresh) = self.readers().status().await? else {
            return Ok(());
        };
        self.0.clock.synchronize(fresh.now);
        if fresh.revision == known {
            return Ok(());
        }
        // In a task, because a request may not be polled for long, and others wait for the same lock.
        let (engine, fresh) = (self.for_task(), fresh.revision);
        let applying = tokio::spawn(async move { engine.apply_changes(known, fresh).await });
        applying.await.map_err(|_| Error::Unavailable)?
    }

    /// Reads what has changed since the revision `known`, and applies it, unless the caches have the revision `fresh` by
    /// then.
    async fn apply_changes(&self, known: i64, fresh: i64) -> Result<()> {
        let caches = &self.0.caches;
        let _refreshing = self.0.peers.refreshing.lock().await;
        let now_known = caches.revision();
        // Another read has applied it.
        if known < fresh && fresh <= now_known {
            return Ok(());
        }
        let mut refresh = Refresh::since(now_known);
        while let Some(statements) = refresh.next_statements() {
            // Not as a guest, who would wait for the reads of others: every request waits for this one.
            refresh.take(self.0.readers.read_keyed(statements).await?)?;
        }
        Ok(refresh.apply(caches, self.subscriptions())?)
    }

    /// The current time, which is not before the time of anything that any server has committed before this call. The
    /// clocks of servers that share a database differ by the time that a reading of its clock takes.
    pub(in crate::engine) async fn shared_now(&self) -> Result<Time> {
        self.refresh_cache().await?;
        Ok(self.now(None))
    }

    /// Waits until the server that also has the database open, if any, has applied our changes. Returns false if it has
    /// not within 10 s.
    pub async fn wait_until_noticed(&self) -> Result<bool> {
        let Some(owner) = &self.0.file_owner else {
            return Ok(true);
        };
        let read_state = async || {
            let rows = self.readers().keyed_rows(Statement::new(STATE, [])).await?;
            let row = rows.first().ok_or(StoreError::Corrupt("no state"))?;
            Ok::<_, StoreError>((row.int(0)?, row.int(1)?))
        };
        let (revision, _) = read_state().await?;
        for poll in 1..=POLLS_MAX {
            if read_state().await?.1 >= revision {
                return Ok(true);
            }
            // Rarely, because this briefly takes the lock, which can keep a server from starting.
            if poll % POLLS_PER_OWNER_CHECK == 0 && owner.has_closed() {
                return Ok(true);
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(false)
    }
}

/// Reads everything when the server starts.
pub async fn load(caches: &Caches, readers: &Readers) -> Result<(), StoreError> {
    let mut refresh = Refresh::of_everything();
    while let Some(statements) = refresh.next_statements() {
        refresh.take(readers.read(statements).await?)?;
    }
    refresh.apply(caches, &Subscriptions::default())
}

/// Interval and number of checks by [`Engine::wait_until_noticed`]. Maintenance runs twice per second.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const POLLS_MAX: u32 = 500;

/// Checks between two tests whether the server still runs.
const POLLS_PER_OWNER_CHECK: u32 = 50;

const STATE: &str = "SELECT revision, noticed FROM state WHERE id = 1";

const NOTICED: &str = "UPDATE state SET noticed = $1 WHERE id = 1";

#[cfg(test)]
mod tests;
