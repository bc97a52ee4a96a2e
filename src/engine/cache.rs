//! Data that every request needs and that the server therefore caches: queues, options, tracked jobs, tokens, and which
//! queues have recurring jobs. The cache is reloaded when the database's revision changes, which happens when other
//! servers, or `switchyard token`, change any of it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::config::{self, Config};
use crate::engine::model::job::QueueId;
use crate::engine::model::queue::{self, Queues};
use crate::engine::model::recurring;
use crate::engine::model::tracked::{self, Tracked};
use crate::engine::subscriptions::Subscriptions;
use crate::engine::tokens::{self, Tokens};
use crate::engine::unit_of_work::transaction::Runner;
use crate::store::{Connection, Statement, StatementResult, StoreError};

/// The caches and settings, shared by all transactions and reads of a server.
#[derive(Clone, Default)]
pub struct Shared {
    pub queues: Arc<Queues>,
    pub config: Arc<Config>,
    pub tracked: Arc<Tracked>,
    pub tokens: Arc<Tokens>,
    /// The database revision that the caches above have at least reached.
    pub revision: Arc<Mutex<i64>>,
    /// [`Options::released_bytes_max`](crate::engine::Options).
    pub released_bytes_max: Option<usize>,
}

impl Shared {
    pub fn new(released_bytes_max: Option<usize>) -> Shared {
        Shared {
            released_bytes_max,
            ..Shared::default()
        }
    }
}

/// The statements that read everything. The revision is read first, so the rest is at least as new as the revision.
pub fn all() -> Vec<Statement> {
    [
        REVISION,
        queue::ALL,
        config::ALL,
        tracked::ALL,
        tokens::ALL,
        recurring::QUEUES,
    ]
    .map(|sql| Statement::new(sql, []))
    .into()
}

/// The statements that read the changes after a revision, provided that only queues have changed.
pub fn since(revision: i64) -> Vec<Statement> {
    vec![
        Statement::new(REVISION, []),
        Statement::new(queue::SINCE, [revision.into()]),
    ]
}

/// Applies the result of [`since`]. `None` if more than queues has changed: the caller must reload everything.
pub fn apply_changes(
    shared: &Shared,
    since: i64,
    answers: &[StatementResult],
) -> Result<Option<i64>, StoreError> {
    let [state, queues] = answers else {
        return Err(StoreError::Corrupt("no state"));
    };
    let state = state.rows.first().ok_or(StoreError::Corrupt("no state"))?;
    let (revision, others) = (state.int(0)?, state.int(2)?);
    if others > since {
        return Ok(None);
    }
    let mut known = shared
        .revision
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if revision >= *known {
        shared.queues.update(&queues.rows)?;
        *known = revision;
    }
    Ok(Some(revision))
}

/// The database revision of the cache. Its data is at least as new.
pub fn revision(shared: &Shared) -> i64 {
    *shared
        .revision
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// The result of [`reload`].
pub struct Reloaded {
    pub revision: i64,
    /// The queues with recurring jobs.
    pub recurring_in: HashSet<QueueId>,
}

/// Replaces the cache with the result of [`all`], unless the cache has a later revision: concurrent reads may finish
/// out of order.
pub fn reload(
    shared: &Shared,
    subscriptions: &Subscriptions,
    answers: Vec<StatementResult>,
) -> Result<Reloaded, StoreError> {
    let mut answers = answers.into_iter().map(|answer| answer.rows);
    let mut next = || answers.next().unwrap_or_default();
    let state = next();
    let state = state.first().ok_or(StoreError::Corrupt("no state"))?;
    let (revision, last_deleted_queue) = (state.int(0)?, state.int(1)?);
    let (queues, config, tracked, tokens) = (next(), next(), next(), next());
    let recurring_in: Result<_, StoreError> = next().iter().map(|row| row.int(0)).collect();
    let mut known = shared
        .revision
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let mut tokens_differ = false;
    if revision >= *known {
        shared.queues.reload(&queues, last_deleted_queue)?;
        shared.config.reload(&config)?;
        shared.tracked.reload(&tracked)?;
        tokens_differ = shared.tokens.reload(&tokens)?;
        *known = revision;
    }
    drop(known);
    if tokens_differ {
        // A poll whose token was revoked must check again.
        subscriptions.wake_all();
    }
    Ok(Reloaded {
        revision,
        recurring_in: recurring_in?,
    })
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
        if revision != self.revision {
            self.reload_cache(connection).await?;
        } else if !is_first || noticed >= revision {
            return Ok(None);
        }
        Ok(Some(Statement::new(NOTICED, [self.revision.into()])))
    }
}

impl Engine {
    /// Waits until the server that also has the database open, if any, has applied our changes. Returns false if it has
    /// not within 10 s.
    pub async fn wait_until_noticed(&self) -> Result<bool> {
        let Some(owner) = &self.0.file_owner else {
            return Ok(true);
        };
        let read_state = async || {
            let rows = self.readers().rows(Statement::new(STATE, [])).await?;
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

/// Interval and number of checks by [`Engine::wait_until_noticed`]. Maintenance runs twice per second.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const POLLS_MAX: u32 = 500;

/// Checks between two tests whether the server still runs.
const POLLS_PER_OWNER_CHECK: u32 = 50;

const REVISION: &str = "SELECT revision, last_gone_queue, others_revision FROM state WHERE id = 1";

const STATE: &str = "SELECT revision, noticed FROM state WHERE id = 1";

const NOTICED: &str = "UPDATE state SET noticed = $1 WHERE id = 1";
