//! Queues. The table `queues` is cached here, because it is small and every request needs it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use crate::engine::clock::Time;
use crate::engine::model::job::{Protocol, QueueId, QueueKey};
use crate::store::{Row, Statement, StoreError};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, protocol, namespace, name, first_seen, paused, forgotten, paused_since, paused_until, \
             pause_reason, paused_by",
            $rest
        )
    };
}

pub const ALL: &str = select!(" FROM queues");

/// The queues that changed after a revision, and whether each has recurring jobs: a queue counts as changed when it gets
/// one.
pub const SINCE: &str = select!(
    ", CASE WHEN EXISTS (SELECT 1 FROM recurring AS r WHERE r.queue = queues.id) THEN 1 ELSE 0 END
     FROM queues WHERE revision > $1"
);

/// Of the rows of [`SINCE`], the queues with recurring jobs.
pub fn with_recurring(rows: &[Row]) -> Result<Vec<QueueId>, StoreError> {
    let mut found = Vec::new();
    for row in rows {
        if row.int(11)? != 0 {
            found.push(row.int(0)?);
        }
    }
    Ok(found)
}

/// The longest reason for a pause, in characters.
pub const PAUSE_REASON_CHARS_MAX: usize = 500;

/// Why, by whom and until when a queue is paused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// `None` if an earlier version of the server paused the queue.
    pub since: Option<Time>,
    /// `None` if the queue is paused until it is resumed.
    pub until: Option<Time>,
    /// Empty if no reason was given. All queues that are paused at once share its text.
    pub reason: Arc<str>,
    /// A user of the dashboard; empty if it was a client of the queue's API.
    pub by: Arc<str>,
}

impl Pause {
    /// Whether the pause has not ended at this time.
    fn lasts(&self, at: Time) -> bool {
        self.until.is_none_or(|until| until > at)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    pub id: QueueId,
    pub key: QueueKey,
    pub first_seen: Time,
    /// Its jobs cannot be claimed. A pause that has ended remains until maintenance removes it.
    pub pause: Option<Pause>,
    /// Hidden until a job is put into it.
    pub forgotten: bool,
}

impl Queue {
    /// The pause that lasts at this time.
    pub fn pause_at(&self, at: Time) -> Option<&Pause> {
        self.pause.as_ref().filter(|pause| pause.lasts(at))
    }

    /// Whether the queue is paused at this time.
    pub fn is_paused(&self, at: Time) -> bool {
        self.pause_at(at).is_some()
    }

    /// When its pause ends, or has ended if it has not been removed.
    fn paused_until(&self) -> Option<Time> {
        self.pause.as_ref()?.until
    }
}

/// The cached queues.
#[derive(Debug, Default)]
pub struct Queues(RwLock<Inner>);

#[derive(Debug, Default)]
struct Inner {
    by_key: HashMap<QueueKey, Arc<Queue>>,
    by_id: HashMap<QueueId, Arc<Queue>>,
    /// What all queues count toward the maximum number of queues.
    weight: usize,
    /// The ends of pauses, in order.
    ends: BTreeSet<(Time, QueueId)>,
    /// The highest ID ever used. IDs are not used again.
    last: QueueId,
}

impl Inner {
    fn add(&mut self, queue: Queue) {
        self.last = self.last.max(queue.id);
        let queue = Arc::new(queue);
        let before = self.by_id.insert(queue.id, Arc::clone(&queue));
        self.weight += queue.key.weight();
        self.weight -= before.as_ref().map_or(0, |before| before.key.weight());
        if let Some(end) = before.as_deref().and_then(Queue::paused_until) {
            self.ends.remove(&(end, queue.id));
        }
        if let Some(end) = queue.paused_until() {
            self.ends.insert((end, queue.id));
        }
        if let Some(before) = before.filter(|before| before.key != queue.key) {
            self.by_key.remove(&before.key);
        }
        let replaced = self.by_key.insert(queue.key.clone(), Arc::clone(&queue));
        // A deleted queue had the same name.
        if let Some(replaced) = replaced.filter(|replaced| replaced.id != queue.id) {
            self.forget(&replaced);
        }
    }

    /// Removes a queue by its ID, but not the name, which another queue may have now.
    fn forget(&mut self, queue: &Queue) {
        if let Some(end) = queue.paused_until() {
            self.ends.remove(&(end, queue.id));
        }
        if let Some(removed) = self.by_id.remove(&queue.id) {
            self.weight -= removed.key.weight();
        }
    }
}

impl Queues {
    /// Replaces the queues with the result of [`ALL`]. `last_deleted_queue` is the highest ID of deleted queues.
    pub fn reload(&self, rows: &[Row], last_deleted_queue: QueueId) -> Result<(), StoreError> {
        let mut inner = Inner {
            last: last_deleted_queue,
            ..Inner::default()
        };
        for queue in queues(rows) {
            inner.add(queue?);
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = inner;
        Ok(())
    }

    /// Applies the result of [`SINCE`].
    pub fn update(&self, rows: &[Row]) -> Result<(), StoreError> {
        let queues: Vec<Queue> = queues(rows).collect::<Result<_, _>>()?;
        let mut inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
        queues.into_iter().for_each(|queue| inner.add(queue));
        Ok(())
    }

    pub fn get(&self, key: &QueueKey) -> Option<Arc<Queue>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .by_key
            .get(key)
            .cloned()
    }

    /// The weight of the different queues in `keys` that are not known, and that of all known queues.
    pub fn weight_of_new<'a>(&self, keys: impl Iterator<Item = &'a QueueKey>) -> (usize, usize) {
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let unknown = keys.filter(|key| !inner.by_key.contains_key(*key));
        let new: HashSet<&QueueKey> = unknown.collect();
        (new.into_iter().map(QueueKey::weight).sum(), inner.weight)
    }

    /// The weight of all known queues.
    pub fn weight(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).weight
    }

    /// The number of known queues.
    pub fn count(&self) -> usize {
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        inner.by_id.len()
    }

    pub fn by_id(&self, id: QueueId) -> Option<Arc<Queue>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .by_id
            .get(&id)
            .cloned()
    }

    /// Up to `max` queues whose pause has ended at this time, first ended first.
    pub fn ended_pauses(&self, at: Time, max: usize) -> Vec<Arc<Queue>> {
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let ended = inner.ends.iter().take_while(|(end, _)| *end <= at);
        let queue = |(_, id): &(Time, QueueId)| inner.by_id.get(id).cloned();
        ended.take(max).filter_map(queue).collect()
    }

    /// The queue's name; empty if it does not exist.
    pub fn name(&self, id: QueueId) -> String {
        self.by_id(id)
            .map(|queue| queue.key.name.clone())
            .unwrap_or_default()
    }

    /// All queues in any order. There can be many, so sorting them takes long.
    pub fn unordered(&self) -> Vec<Arc<Queue>> {
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        inner.by_id.values().cloned().collect()
    }

    /// All queues, by the time they were first seen, then by name.
    pub fn all(&self) -> Vec<Arc<Queue>> {
        let queues = self.unordered().into_iter();
        // The times are adjacent in memory, because there can be 100,000 queues.
        let mut queues: Vec<_> = queues.map(|queue| (queue.first_seen, queue)).collect();
        queues.sort_unstable_by(|(a_seen, a), (b_seen, b)| {
            let by_name = || (&a.key.name, a.id).cmp(&(&b.key.name, b.id));
            a_seen.cmp(b_seen).then_with(by_name)
        });
        queues.into_iter().map(|(_, queue)| queue).collect()
    }

    /// Adds or replaces a queue after a commit.
    pub fn add(&self, queue: Queue) {
        let mut inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
        inner.add(queue);
    }

    /// Removes a deleted queue.
    pub fn remove(&self, id: QueueId) {
        let mut inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
        inner.last = inner.last.max(id);
        if let Some(queue) = inner.by_id.get(&id).cloned() {
            inner.forget(&queue);
            inner.by_key.remove(&queue.key);
        }
    }

    /// Removes all queues, after a flush.
    pub fn clear(&self) {
        let mut inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *inner = Inner {
            last: inner.last,
            ..Inner::default()
        };
    }

    /// The ID for a new queue.
    pub fn next_id(&self) -> QueueId {
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        inner.last + 1
    }
}

/// The queues of these rows. Queues that follow each other share the texts of equal pauses.
fn queues(rows: &[Row]) -> impl Iterator<Item = Result<Queue, StoreError>> {
    let mut last = Pause::default();
    rows.iter().map(move |row| {
        let mut queue = queue(row)?;
        if let Some(pause) = &mut queue.pause {
            for (text, known) in [(&mut pause.reason, &last.reason), (&mut pause.by, &last.by)] {
                if *text == *known {
                    *text = Arc::clone(known);
                }
            }
            last = pause.clone();
        }
        Ok(queue)
    })
}

pub fn queue(row: &Row) -> Result<Queue, StoreError> {
    let protocol: Protocol = row
        .text(1)?
        .parse()
        .map_err(|()| StoreError::Corrupt("an unknown protocol"))?;
    Ok(Queue {
        id: row.int(0)?,
        key: QueueKey {
            protocol,
            namespace: row.text(2)?,
            name: row.text(3)?,
        },
        first_seen: Time(row.int(4)?),
        pause: pause(row)?,
        forgotten: row.int(6)? != 0,
    })
}

fn pause(row: &Row) -> Result<Option<Pause>, StoreError> {
    if row.int(5)? == 0 {
        return Ok(None);
    }
    Ok(Some(Pause {
        since: row.int_or_null(7)?.map(Time),
        until: row.int_or_null(8)?.map(Time),
        reason: row.text_or_null(9)?.unwrap_or_default().into(),
        by: row.text_or_null(10)?.unwrap_or_default().into(),
    }))
}

/// The statement that stores new and changed queues.
pub fn save<'a>(queues: impl Iterator<Item = &'a Queue>, revision: i64) -> Statement {
    let row = |queue: &Queue| {
        let pause = queue.pause.as_ref();
        let text = |text: &Arc<str>| (!text.is_empty()).then(|| text.to_string());
        (
            queue.id,
            queue.key.protocol.as_str(),
            queue.key.namespace.clone(),
            queue.key.name.clone(),
            queue.first_seen,
            u8::from(pause.is_some()),
            u8::from(queue.forgotten),
            pause.and_then(|pause| pause.since),
            pause.and_then(|pause| pause.until),
            pause.and_then(|pause| text(&pause.reason)),
            pause.and_then(|pause| text(&pause.by)),
        )
    };
    let rows: Vec<_> = queues.map(row).collect();
    // Fails if another server has used the ID for another queue.
    let save = Statement::of_rows(SAVE, &rows).with(revision);
    save.exactly(rows.len())
}

/// The statement that deletes qless workers from the list of workers.
pub fn forget_workers(names: &[String]) -> Statement {
    Statement::of_rows(FORGET_WORKERS, names)
}

const SAVE: &str = "
INSERT INTO queues (id, protocol, namespace, name, first_seen, paused, forgotten, paused_since, paused_until,
    pause_reason, paused_by, revision)
SELECT int(0), text(1), text(2), text(3), int(4), int(5), int(6), int(7), int(8), text(9), text(10), $2
FROM rows($1) WHERE true
ON CONFLICT (id) DO UPDATE SET namespace = excluded.namespace, first_seen = excluded.first_seen,
    paused = excluded.paused, forgotten = excluded.forgotten, paused_since = excluded.paused_since,
    paused_until = excluded.paused_until, pause_reason = excluded.pause_reason, paused_by = excluded.paused_by,
    revision = excluded.revision
WHERE queues.protocol = excluded.protocol AND queues.name = excluded.name
    AND (queues.namespace = excluded.namespace OR queues.protocol = 'jobq')";

const FORGET_WORKERS: &str =
    "DELETE FROM workers WHERE protocol = 'qless' AND name IN (SELECT item() FROM rows($1))";
