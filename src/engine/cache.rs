//! What a server keeps in memory, because every request asks for it: queues, options, tracked jobs, tokens, and
//! in which queues there are recurring jobs. Each is read again when the revision has changed, which is how
//! servers that share a database, and `switchyard token` beside one, tell of what they have set.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::sleep;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::config;
use crate::engine::model::job::QueueId;
use crate::engine::model::queue;
use crate::engine::model::recurring;
use crate::engine::tokens;
use crate::engine::unit_of_work::Shared;
use crate::engine::unit_of_work::transaction::Runner;

use crate::engine::model::tracked;
use crate::store::{Answer, Connection, Statement, StoreError};

/// The statements that read everything. The revision comes first: what is read after it is as of this revision
/// or a later one.
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

/// The statements that read what has changed after a revision, if that is queues only.
pub fn since(revision: i64) -> Vec<Statement> {
    vec![
        Statement::new(REVISION, []),
        Statement::new(queue::SINCE, [revision.into()]),
    ]
}

/// Takes over what [`since`] has read. `None` if more has changed than queues: then everything is to be read.
pub fn take_in(shared: &Shared, since: i64, answers: &[Answer]) -> Result<Option<i64>, StoreError> {
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

/// What is in memory is as of this revision of the database, or a later one.
pub fn revision(shared: &Shared) -> i64 {
    *shared
        .revision
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// What has been taken over.
pub struct Reloaded {
    /// The revision that was read.
    pub revision: i64,
    /// The queues that have recurring jobs.
    pub recurring_in: HashSet<QueueId>,
    /// Whether other tokens are there than before.
    pub tokens_differ: bool,
}

/// Takes over what [`all`] has read; not if what is there was read at a later revision, for readers overtake
/// each other.
pub fn take_over(shared: &Shared, answers: Vec<Answer>) -> Result<Reloaded, StoreError> {
    let mut answers = answers.into_iter().map(|answer| answer.rows);
    let mut next = || answers.next().unwrap_or_default();
    let state = next();
    let state = state.first().ok_or(StoreError::Corrupt("no state"))?;
    let (revision, last_gone) = (state.int(0)?, state.int(1)?);
    let (queues, config, tracked, tokens) = (next(), next(), next(), next());
    let recurring_in: Result<_, StoreError> = next().iter().map(|row| row.int(0)).collect();
    let mut known = shared
        .revision
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let mut tokens_differ = false;
    if revision >= *known {
        shared.queues.reload(&queues, last_gone)?;
        shared.config.reload(&config)?;
        shared.tracked.reload(&tracked)?;
        tokens_differ = shared.tokens.reload(&tokens)?;
        *known = revision;
    }
    Ok(Reloaded {
        revision,
        recurring_in: recurring_in?,
        tokens_differ,
    })
}

impl Runner {
    /// With SQLite nothing but `switchyard token` writes beside the server, so nobody asks for the revision but
    /// upkeep. Gives what tells the command that it was noticed. What it did while we were only starting has been
    /// read with all else, and it waits to hear of that too: so the first time we say in any case what we know.
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
    /// Waits until the server beside which the database was opened, if it was, has taken over what we have
    /// changed. Whether it has, or has gone.
    pub async fn wait_until_noticed(&self) -> Result<bool> {
        let Some(host) = &self.0.host else {
            return Ok(true);
        };
        let looked = async || {
            let rows = self.readers().rows(Statement::new(STATE, [])).await?;
            let row = rows.first().ok_or(StoreError::Corrupt("no state"))?;
            Ok::<_, StoreError>((row.int(0)?, row.int(1)?))
        };
        let (revision, _) = looked().await?;
        for look in 1..=LOOKS {
            if looked().await?.1 >= revision {
                return Ok(true);
            }
            // Not at once: who takes the lock for a moment might keep a server from starting.
            if look % LOOKS_UNTIL_ASKED == 0 && host.is_gone() {
                return Ok(true);
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(false)
    }
}

/// How often [`Engine::noticed`] looks, and how many times. Upkeep comes twice a second.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOKS: u32 = 500;

/// After so many looks it asks whether there still is a server.
const LOOKS_UNTIL_ASKED: u32 = 50;

const REVISION: &str = "SELECT revision, last_gone_queue, others_revision FROM state WHERE id = 1";

const STATE: &str = "SELECT revision, noticed FROM state WHERE id = 1";

const NOTICED: &str = "UPDATE state SET noticed = $1 WHERE id = 1";
