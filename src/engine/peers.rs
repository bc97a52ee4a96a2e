//! Other servers on the same database: which one leads maintenance, and how servers notify each other of changes.
//!
//! Notifications are hints, never data: a server that misses one polls within a second.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::QueueId;
use crate::store::{Begin, Connection, Readers, Statement, StoreError};

/// Seconds after which a server's number expires unless renewed.
const NUMBER_S: f64 = 60.0;

/// Seconds after which leadership expires unless renewed.
const LEAD_S: f64 = 10.0;

/// Changes are collected for this long before the other servers are notified.
const COLLECT_TIME: Duration = Duration::from_millis(5);

/// The time limit for signing off at shutdown.
const LEAVE_MAX: Duration = Duration::from_secs(1);

/// The delay before a lost listener connection is opened again.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// The interval of polling for missed changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Polls after a commit in doubt, so that one that the database finishes later is noticed, too.
const POLLS_IN_DOUBT: u32 = 3;

/// Queues in one notification; if there are more, it names all.
const QUEUES_PER_MESSAGE_MAX: usize = 200;

/// Means all queues in a notification.
const ALL_QUEUES: &str = "*";

/// This server's view of the other servers.
#[derive(Debug, Default)]
pub struct Peers {
    /// Random, chosen when the server starts.
    name: String,
    /// Whether the other servers are notified of changes here.
    notifies: bool,
    number: AtomicI64,
    /// A number taken in a transaction that has not been committed yet; 0 without one.
    taken: AtomicI64,
    /// Whether other servers are running.
    others: AtomicBool,
    /// The polls for changes that are left after a commit in doubt. If that commit succeeded, it woke no long poll.
    doubts: AtomicU32,
    /// Queues whose changes have not been announced yet, and the signal that there are some. If they are more than
    /// [`QUEUES_PER_MESSAGE_MAX`], no more are added.
    changed_queues: Mutex<BTreeSet<QueueId>>,
    changed: Notify,
    /// Held while a read refreshes the caches, so that others wait for its result instead of doing the same.
    pub refreshing: tokio::sync::Mutex<()>,
}

impl Peers {
    /// Reserves a free server number. `notifies`: whether the other servers are notified of changes here.
    pub async fn join(connection: &mut Connection, notifies: bool) -> Result<Peers, StoreError> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        for _ in 0..10 {
            let Some(fresh) = connection.begin(Begin::Shared).await? else {
                return Ok(Peers::default());
            };
            let (number, take) = free_number(connection, &name, Time(fresh.now)).await?;
            match connection.commit_with(vec![take]).await {
                Ok(_) => {
                    return Ok(Peers {
                        name,
                        notifies,
                        number: number.into(),
                        ..Peers::default()
                    });
                }
                Err(error) if error.is_conflict() => connection.roll_back().await,
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::Conflict)
    }

    /// The number under which this server stores its counters, and from which it derives insertion numbers.
    pub fn number(&self) -> i64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Renews our number, checks for other servers, and tries to become or stay leader. Returns whether we lead.
    pub async fn renew(&self, connection: &mut Connection, now: Time) -> Result<bool, StoreError> {
        let name = || self.name.as_str().into();
        let batch = vec![
            Statement::new(
                RENEW_NUMBER,
                [
                    self.number().into(),
                    name(),
                    now.plus_seconds(NUMBER_S).0.into(),
                    now.plus_seconds(NUMBER_S / 2.0).0.into(),
                ],
            ),
            Statement::new(HAS_NUMBER, [self.number().into(), name()]),
            Statement::new(OTHERS, [now.0.into(), name()]),
            Statement::new(MAY_LEAD, [name(), now.0.into()]),
        ];
        let answers = connection.run(batch).await?;
        let mut answers = answers.into_iter().skip(1);
        self.taken.store(0, Ordering::Relaxed);
        if answers.next().unwrap_or_default().rows.is_empty() {
            // This server was suspended until its number expired, and another one has it now.
            let (number, take) = free_number(connection, &self.name, now).await?;
            connection.run(vec![take]).await?;
            self.taken.store(number, Ordering::Relaxed);
        }
        let others = answers.next().unwrap_or_default();
        self.others
            .store(!others.rows.is_empty(), Ordering::Relaxed);
        if answers.next().unwrap_or_default().rows.is_empty() {
            return Ok(false);
        }
        let lead = Statement::new(
            LEAD,
            [name(), now.plus_seconds(LEAD_S).0.into(), now.0.into()],
        );
        connection.run(vec![lead.exactly(1)]).await?;
        Ok(true)
    }

    /// Applies a commit after [`Peers::renew`].
    pub fn renewed(&self) {
        match self.taken.swap(0, Ordering::Relaxed) {
            0 => {}
            number => self.number.store(number, Ordering::Relaxed),
        }
    }

    /// Gives up our number and leadership, so that other servers need not wait until they expire. If the database is
    /// unreachable, they expire.
    pub async fn leave(&self, readers: &Readers) {
        if !self.is_shared() {
            return;
        }
        let name = || self.name.as_str().into();
        let leaving = async {
            let number = vec![self.number().into(), name()];
            readers
                .rows(Statement::new(GIVE_NUMBER_BACK, number))
                .await?;
            readers.rows(Statement::new(RESIGN, [name()])).await
        };
        match timeout(LEAVE_MAX, leaving).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "failed to notify other servers of shutdown"),
            Err(_) => tracing::debug!("timed out notifying other servers of shutdown"),
        }
    }

    /// Whether other servers may use the database: with Postgres.
    pub fn is_shared(&self) -> bool {
        !self.name.is_empty()
    }

    /// Whether other servers are running.
    pub fn any(&self) -> bool {
        self.others.load(Ordering::Relaxed)
    }

    /// Has this server poll for changes, as if another one had made them: the database may finish a commit whose
    /// connection is lost.
    pub fn poll_after_uncertain_commit(&self) {
        self.doubts.store(POLLS_IN_DOUBT, Ordering::Relaxed);
    }

    /// Whether to poll for changes because of a commit in doubt.
    fn is_in_doubt(&self) -> bool {
        self.doubts.load(Ordering::Relaxed) > 0
    }

    /// Queues the announcement of changes in these queues.
    pub fn announce(&self, queues: impl Iterator<Item = QueueId>) {
        if !self.notifies || !self.any() {
            return;
        }
        let changed = self.changed_queues.lock();
        let mut changed = changed.unwrap_or_else(PoisonError::into_inner);
        if changed.len() <= QUEUES_PER_MESSAGE_MAX {
            changed.extend(queues);
        }
        self.changed.notify_one();
    }

    /// Queues the announcement of changes in all queues.
    pub fn announce_all(&self) {
        // More than one notification names.
        self.announce(0..=QUEUES_PER_MESSAGE_MAX as QueueId);
    }

    /// Waits for changes, and returns the notification for them.
    async fn next_message(&self) -> String {
        self.changed.notified().await;
        sleep(COLLECT_TIME).await;
        let changed = std::mem::take(
            &mut *self
                .changed_queues
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let queues = if changed.len() > QUEUES_PER_MESSAGE_MAX {
            ALL_QUEUES.to_owned()
        } else {
            let numbers: Vec<_> = changed.iter().map(ToString::to_string).collect();
            numbers.join(" ")
        };
        format!("{} {queues}", self.name)
    }

    /// Parses a notification: the queues, or all (`None`). The outer `None` means that we sent it.
    fn parse_message(&self, message: &str) -> Option<Option<Vec<QueueId>>> {
        let (name, queues) = message.split_once(' ').unwrap_or((message, ""));
        if name == self.name {
            return None;
        }
        let numbers = queues.split_whitespace().map(str::parse);
        Some(numbers.collect::<Result<_, _>>().ok())
    }
}

impl Engine {
    /// Notifies the other servers of changes here.
    pub(in crate::engine) async fn notify_peers(self) {
        loop {
            let message = self.peers().next_message().await;
            if let Err(error) = self.readers().notify(&message).await {
                tracing::debug!(%error, "failed to notify other servers");
            }
        }
    }

    /// Polls once per second for changes of other servers, because a notification may be lost.
    pub(in crate::engine) async fn poll_peers(self) {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let is_in_doubt = self.peers().is_in_doubt();
            if is_in_doubt || self.peers().any() {
                let is_done = self.catch_up_with_peers(None).await;
                if is_in_doubt && is_done {
                    self.peers().doubts.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Receives the notifications of other servers.
    pub(in crate::engine) async fn listen_to_peers(self) {
        loop {
            let mut listener = match self.readers().listen().await {
                Ok(listener) => listener,
                Err(error) => {
                    tracing::debug!(%error, "failed to listen to other servers");
                    sleep(TRY_AGAIN).await;
                    continue;
                }
            };
            while let Some(message) = listener.next().await {
                if let Some(queues) = self.peers().parse_message(&message) {
                    self.catch_up_with_peers(queues).await;
                }
            }
            sleep(TRY_AGAIN).await;
        }
    }

    /// After changes by another server, wakes polls for jobs in these queues and updates open pages. `None` means all
    /// queues. Returns whether the changes could be read.
    pub(in crate::engine) async fn catch_up_with_peers(
        &self,
        queues: Option<Vec<QueueId>>,
    ) -> bool {
        if let Err(error) = self.refresh_cache().await {
            tracing::debug!(%error, "failed to read changes of other servers");
            return false;
        }
        self.notify_changed();
        let affected = match queues {
            None => self.subscriptions().queues(),
            Some(queues) => {
                let queues = queues.into_iter();
                let known = queues.filter_map(|queue| self.known_queues().by_id(queue));
                let keys = known.map(|queue| queue.key.clone());
                keys.filter(|key| self.subscriptions().has_subscribers(key))
                    .collect()
            }
        };
        self.wake_where_available(affected).await;
        true
    }
}

/// A number that no server has, and the statement that takes it.
async fn free_number(
    connection: &mut Connection,
    name: &str,
    now: Time,
) -> Result<(i64, Statement), StoreError> {
    let find = Statement::new(FREE_NUMBER, [now.0.into()]);
    let answers = connection.run(vec![find]).await?;
    let row = answers.first().and_then(|answer| answer.rows.first());
    let number = row.map_or(Ok(1), |row| row.int(0))?;
    let until = now.plus_seconds(NUMBER_S).0.into();
    let arguments = [number.into(), name.into(), until, now.0.into()];
    Ok((number, Statement::new(TAKE_NUMBER, arguments).exactly(1)))
}

const FREE_NUMBER: &str = "
SELECT coalesce((SELECT min(number) FROM servers WHERE until < $1),
                (SELECT coalesce(max(number), 0) + 1 FROM servers))";

const TAKE_NUMBER: &str = "
INSERT INTO servers (number, name, until) VALUES ($1, $2, $3)
ON CONFLICT (number) DO UPDATE SET name = excluded.name, until = excluded.until WHERE servers.until < $4";

// Writes rarely: only after half of the time has passed.
const RENEW_NUMBER: &str =
    "UPDATE servers SET until = $3 WHERE number = $1 AND name = $2 AND until < $4";

const HAS_NUMBER: &str = "SELECT number FROM servers WHERE number = $1 AND name = $2";

const GIVE_NUMBER_BACK: &str = "UPDATE servers SET until = 0 WHERE number = $1 AND name = $2";

const RESIGN: &str = "UPDATE leader SET until = 0 WHERE id = 1 AND name = $1";

const OTHERS: &str = "SELECT number FROM servers WHERE until >= $1 AND name <> $2 LIMIT 1";

const MAY_LEAD: &str = "
SELECT id FROM leader WHERE id = 1 AND (name = $1 OR until < $2) {skip_locked}";

const LEAD: &str = "
UPDATE leader SET name = $1, until = $2 WHERE id = 1 AND (name = $1 OR until < $3)";

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_in_all_queues_is_announced_as_such() {
        let peer = |name: &str| Peers {
            name: name.to_owned(),
            notifies: true,
            others: true.into(),
            ..Peers::default()
        };
        let (one, other) = (peer("one"), peer("other"));
        one.announce([7].into_iter());
        assert_eq!(one.next_message().await, "one 7");
        one.announce([7].into_iter());
        one.announce_all();
        let message = one.next_message().await;
        assert_eq!(message, "one *");
        assert_eq!(other.parse_message(&message), Some(None));
        assert_eq!(one.parse_message(&message), None);
    }
}
