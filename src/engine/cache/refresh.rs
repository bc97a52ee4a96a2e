//! Reads the cached data that have changed, in one or two steps, and applies all of it at once.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::cache::Caches;
use crate::engine::model::config;
use crate::engine::model::job::QueueId;
use crate::engine::model::queue;
use crate::engine::model::recurring;
use crate::engine::model::tracked;
use crate::engine::subscriptions::Subscriptions;
use crate::engine::tokens;
use crate::engine::unit_of_work::UnitOfWork;
use crate::store::{Row, Statement, StatementResult, StoreError};

/// Deleted queues that the database lists for other servers. A server that knows only an older revision than these
/// reads all queues.
const DELETED_QUEUES_MAX: i64 = 10_000;

/// Data that one statement reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    AllQueues,
    /// The queues that were written after the known revision.
    ChangedQueues,
    /// The queues that were deleted after the known revision.
    DeletedQueues,
    Config,
    Tracked,
    Tokens,
    RecurringIn,
}

/// The parts of everything.
const EVERYTHING: [Part; 5] = [
    Part::AllQueues,
    Part::Config,
    Part::Tracked,
    Part::Tokens,
    Part::RecurringIn,
];

/// The kinds of data whose last revisions the table `state` has, in the order of its columns.
const KINDS: [Part; 5] = [
    Part::DeletedQueues,
    Part::Config,
    Part::Tracked,
    Part::Tokens,
    Part::RecurringIn,
];

/// A row of [`STATE`].
struct State {
    revision: i64,
    last_deleted_queue: QueueId,
    /// The first revision with a deleted queue that is still listed.
    listed_from: Option<i64>,
    /// The revisions of [`KINDS`].
    kinds: Vec<i64>,
}

impl State {
    fn from_row(row: &Row) -> Result<State, StoreError> {
        let kinds = (3..3 + KINDS.len()).map(|column| row.int(column));
        Ok(State {
            revision: row.int(0)?,
            last_deleted_queue: row.int(1)?,
            listed_from: row.int_or_null(2)?,
            kinds: kinds.collect::<Result<_, _>>()?,
        })
    }

    /// What has to be read in addition to changed and deleted queues, because it has changed after this revision.
    fn changed_since(&self, known: i64) -> Vec<Part> {
        let changed = KINDS.iter().zip(&self.kinds);
        let changed = changed.filter(|(_, revision)| **revision > known);
        let parts = changed.filter_map(|(part, _)| match part {
            Part::DeletedQueues => {
                let is_listed = self.listed_from.is_some_and(|from| from <= known);
                (!is_listed).then_some(Part::AllQueues)
            }
            part => Some(*part),
        });
        parts.collect()
    }
}

/// A read of what has changed, or of everything. Its second step reads the kinds that the first one has found to be
/// changed.
pub struct Refresh {
    /// The revision of the caches; `None` to read everything.
    known: Option<i64>,
    /// What is read next; empty at the end.
    next: Vec<Part>,
    state: Option<State>,
    read: Vec<(Part, Vec<Row>)>,
}

impl Refresh {
    pub fn of_everything() -> Refresh {
        Refresh {
            known: None,
            next: EVERYTHING.to_vec(),
            state: None,
            read: Vec::new(),
        }
    }

    /// Reads what has changed after this revision, which the caches had before the read begins.
    pub fn since(known: i64) -> Refresh {
        Refresh {
            known: Some(known),
            next: vec![Part::ChangedQueues, Part::DeletedQueues],
            ..Refresh::of_everything()
        }
    }

    /// The statements of the next step; `None` at the end. The revision is read first, so the rest is at least as new.
    pub fn next_statements(&self) -> Option<Vec<Statement>> {
        if self.next.is_empty() {
            return None;
        }
        let known = self.known.unwrap_or_default();
        let statement = |part: &Part| match part {
            Part::AllQueues => Statement::new(queue::ALL, []),
            Part::ChangedQueues => Statement::new(queue::SINCE, [known.into()]),
            Part::DeletedQueues => Statement::new(DELETED_SINCE, [known.into()]),
            Part::Config => Statement::new(config::ALL, []),
            Part::Tracked => Statement::new(tracked::ALL, []),
            Part::Tokens => Statement::new(tokens::ALL, []),
            Part::RecurringIn => Statement::new(recurring::QUEUES, []),
        };
        let state = self.state.is_none().then(|| Statement::new(STATE, []));
        let parts = self.next.iter().map(statement);
        Some(state.into_iter().chain(parts).collect())
    }

    /// Takes the results of [`Refresh::next_statements`].
    pub fn take(&mut self, answers: Vec<StatementResult>) -> Result<(), StoreError> {
        let mut answers = answers.into_iter().map(|answer| answer.rows);
        let parts = std::mem::take(&mut self.next);
        if self.state.is_none() {
            let rows = answers.next().unwrap_or_default();
            let row = rows.first().ok_or(StoreError::Corrupt("no state"))?;
            let state = State::from_row(row)?;
            self.next = match self.known {
                None => Vec::new(),
                Some(known) if state.revision < known => EVERYTHING.to_vec(),
                Some(known) => state.changed_since(known),
            };
            self.state = Some(state);
        }
        self.read.extend(parts.into_iter().zip(answers));
        Ok(())
    }

    /// Applies what was read, unless the caches have a later revision: concurrent reads may finish out of order.
    pub fn apply(self, caches: &Caches, subscriptions: &Subscriptions) -> Result<(), StoreError> {
        let state = self.state.ok_or(StoreError::Corrupt("no state"))?;
        let mut known = caches.lock();
        let applies = match self.known {
            None => state.revision >= *known,
            Some(before) if state.revision < before => {
                let is_first = *known == before;
                if is_first {
                    // Before the lower revision is known, so that the writer sees both.
                    caches.lost_history.store(true, Ordering::Relaxed);
                    notice_lost_history(before, state.revision);
                }
                is_first
            }
            Some(before) => before <= *known && *known < state.revision,
        };
        if !applies {
            return Ok(());
        }
        let reads_all_queues = self.read.iter().any(|(part, _)| *part == Part::AllQueues);
        let mut tokens_differ = false;
        for (part, rows) in &self.read {
            match part {
                Part::AllQueues => caches.queues.reload(rows, state.last_deleted_queue)?,
                Part::ChangedQueues => {
                    let more = queue::with_recurring(rows)?;
                    if !more.is_empty() {
                        Arc::make_mut(&mut caches.lock_recurring_in()).extend(more);
                    }
                    // Read before all queues, so they may be older.
                    if !reads_all_queues {
                        caches.queues.update(rows)?;
                    }
                }
                Part::DeletedQueues if reads_all_queues => {}
                Part::DeletedQueues => {
                    for row in rows {
                        caches.queues.remove(row.int(0)?);
                    }
                }
                Part::Config => caches.config.reload(rows)?,
                Part::Tracked => caches.tracked.reload(rows)?,
                Part::Tokens => tokens_differ = caches.tokens.reload(rows)?,
                Part::RecurringIn => {
                    let queues = rows.iter().map(|row| row.int(0));
                    let queues: HashSet<QueueId> = queues.collect::<Result<_, _>>()?;
                    *caches.lock_recurring_in() = Arc::new(queues);
                }
            }
        }
        *known = state.revision;
        drop(known);
        if tokens_differ {
            // A poll whose token was revoked must check again.
            subscriptions.wake_all();
        }
        Ok(())
    }
}

/// A standby without the last commits has become the primary server.
fn notice_lost_history(known: i64, found: i64) {
    tracing::warn!(
        known,
        found,
        "the database has lost its last commits; reading all cached data again"
    );
}

impl UnitOfWork {
    /// The statement that increments the revision, and sets it as that of the kinds of cached data that have changed;
    /// `None` if none has changed.
    pub fn revision_write(&self) -> Option<Statement> {
        if !self.changes_cache() {
            return None;
        }
        let changes = &self.cache_changes();
        let kinds = changes.map(|changed| i64::from(changed).into());
        // Only this server changes a database that is not shared, apart from `switchyard token`.
        let Some(revision) = self.revision else {
            return Some(Statement::new(REVISE_KINDS, kinds));
        };
        let args = kinds.into_iter().chain([revision.into()]);
        Some(Statement::new(REVISE_UNCHANGED, args.collect::<Vec<_>>()).exactly(1))
    }
}

/// The statements that list deleted queues for other servers.
pub fn list_deleted(queues: &[(QueueId,)], revision: i64) -> [Statement; 2] {
    [
        Statement::of_rows(LIST_DELETED, queues).with(revision),
        Statement::new(DROP_OLD, [DELETED_QUEUES_MAX.into()]),
    ]
}

const STATE: &str = "
SELECT revision, last_gone_queue, (SELECT min(revision) FROM deleted_queues), deleted_queues_revision, config_revision,
    tracked_revision, tokens_revision, recurring_revision
FROM state WHERE id = 1";

const DELETED_SINCE: &str = "SELECT id FROM deleted_queues WHERE revision > $1";

const LIST_DELETED: &str = "
INSERT INTO deleted_queues (id, revision) SELECT int(0), $2 FROM rows($1) WHERE true
ON CONFLICT (id) DO UPDATE SET revision = excluded.revision";

const DROP_OLD: &str = "
DELETE FROM deleted_queues WHERE (revision, id) <= (
    SELECT revision, id FROM deleted_queues ORDER BY revision DESC, id DESC LIMIT 1 OFFSET $1 + 0)";

/// Makes the servers on the database read everything that they cache again. Without the list of deleted queues, they
/// read all queues.
pub const INVALIDATE_ALL: [&str; 2] = [
    "UPDATE state SET revision = revision + 1, deleted_queues_revision = revision + 1, config_revision = revision + 1,
         tracked_revision = revision + 1, tokens_revision = revision + 1, recurring_revision = revision + 1
     WHERE id = 1",
    FORGET_DELETED,
];

pub const FORGET_DELETED: &str = "DELETE FROM deleted_queues";

macro_rules! revise_kinds {
    ($rest:literal) => {
        concat!(
            "
UPDATE state SET revision = revision + 1,
    deleted_queues_revision = CASE WHEN $1 = 1 THEN revision + 1 ELSE deleted_queues_revision END,
    config_revision = CASE WHEN $2 = 1 THEN revision + 1 ELSE config_revision END,
    tracked_revision = CASE WHEN $3 = 1 THEN revision + 1 ELSE tracked_revision END,
    tokens_revision = CASE WHEN $4 = 1 THEN revision + 1 ELSE tokens_revision END,
    recurring_revision = CASE WHEN $5 = 1 THEN revision + 1 ELSE recurring_revision END
WHERE id = 1",
            $rest
        )
    };
}

const REVISE_KINDS: &str = revise_kinds!("");

/// Queue rows are written whole, and the caches must have all earlier changes when this one is applied. So no other
/// server may have changed anything since.
const REVISE_UNCHANGED: &str = revise_kinds!(" AND revision = $6");
