//! The verbs of Jobq.

pub mod candidates;
pub mod record;

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Protocol, QueueId, QueueKey};
use crate::engine::model::queue::Queue;
use crate::engine::queries::records::Found;
use crate::engine::unit_of_work::Needs;
use crate::engine::verbs::jobq::candidates::Candidate;
use crate::engine::verbs::jobq::record::{Record, Swap};
use crate::query::{self, Query};

/// How many records one poll looks for, for all who poll the same; fewer if they have so many bytes.
const CANDIDATES: usize = 200;
const CANDIDATES_BYTES: usize = 4 << 20;

/// How often a poll that comes too late for all that it has found looks again.
const ATTEMPTS_MAX: usize = 100;

impl Engine {
    /// The queues, by number.
    pub async fn record_queues(&self) -> Result<Vec<Arc<Queue>>> {
        self.freshen().await?;
        let mut queues = self.known_queues().all();
        queues.retain(|queue| queue.key.protocol == Protocol::Jobq && !queue.forgotten);
        queues.sort_by_key(|queue| queue.id);
        Ok(queues)
    }

    /// The queue of this number or this name. What is asked of it later is asked of this one, and not of another
    /// that has come to its name.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub async fn record_queue(&self, name: &str) -> Result<Arc<Queue>> {
        let known = || {
            let queues = self.known_queues();
            // No name is a number.
            let queue = if name.bytes().all(|byte| byte.is_ascii_digit()) {
                queues.by_id(name.parse().unwrap_or_default())
            } else {
                queues.get(&QueueKey::jobq(name))
            };
            queue.filter(|queue| queue.key.protocol == Protocol::Jobq && !queue.forgotten)
        };
        if let Some(queue) = known() {
            return Ok(queue);
        }
        // It may be another server's, and new.
        self.freshen().await?;
        known().ok_or_else(|| Error::NoSuchQueue {
            name: name.to_owned(),
        })
    }

    /// Makes a queue of this name.
    ///
    /// # Errors
    /// [`Error::QueueThere`].
    pub async fn make_queue(&self, name: &str) -> Result<QueueId> {
        let key = QueueKey::jobq(name);
        self.write(Needs::default(), None, 1, move |work| {
            record::make_queue(work, &key)
        })
        .await
    }

    /// Deletes a queue with all that is in it.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub async fn expunge(&self, queue: &Arc<Queue>) -> Result<()> {
        let queue = Arc::clone(queue);
        self.write(Needs::default(), None, 1, move |work| {
            record::expunge(work, &queue)
        })
        .await
    }

    /// Records a job; payload and state are JSON text without white space.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub async fn record(
        &self,
        queue: &Arc<Queue>,
        payload: String,
        state: String,
    ) -> Result<Record> {
        let needs = Needs {
            number: Some(queue.key.clone()),
            bytes: payload.len() + state.len(),
            adds: true,
            ..Needs::default()
        };
        let queue = Arc::clone(queue);
        self.write(needs, None, 1, move |work| {
            record::create(work, &queue, &payload, &state)
        })
        .await
    }

    /// Sets the state of a record from `old` to `new`, if it is `old` or the same JSON written otherwise; all of it JSON
    /// text without white space.
    ///
    /// # Errors
    /// [`NoSuchQueue`, `NoSuchJob`, `LogFull`](Error), and [`Unavailable`](Error::Unavailable) as long as others keep
    /// writing the same state in other ways.
    pub async fn advance(
        &self,
        queue: &Arc<Queue>,
        id: i64,
        old: String,
        new: String,
    ) -> Result<Swap> {
        let (mut old, new) = (Arc::<str>::from(old), Arc::<str>::from(new));
        for _ in 0..ATTEMPTS_MAX {
            let needs = one(queue, id, old.len() + new.len());
            let (queue, expected, new) = (Arc::clone(queue), Arc::clone(&old), Arc::clone(&new));
            let swap = self.write(needs, None, 1, move |work| {
                record::advance(work, &queue, id, &expected, &new)
            });
            let record = match swap.await? {
                Swap::Differs(record) => record,
                done @ Swap::Done(_) => return Ok(done),
            };
            // Most states are written as they were read. Comparing others takes a while, so no transaction waits for it.
            let state = Arc::<str>::from(record.state_text());
            let compare = {
                let state = Arc::clone(&state);
                move || query::same(&state, &old)
            };
            match tokio::task::spawn_blocking(compare).await {
                Ok(true) => old = state,
                Ok(false) => return Ok(Swap::Differs(record)),
                Err(_) => return Err(Error::Unavailable),
            }
        }
        Err(Error::Unavailable)
    }

    /// Appends an event, which is JSON text without white space, to the log of a record.
    ///
    /// # Errors
    /// [`NoSuchQueue`, `NoSuchJob`, `LogFull`](Error).
    pub async fn append(&self, queue: &Arc<Queue>, id: i64, event: String) -> Result<Record> {
        let (needs, queue) = (one(queue, id, event.len()), Arc::clone(queue));
        self.write(needs, None, 1, move |work| {
            record::append(work, &queue, id, &event)
        })
        .await
    }

    /// Deletes a record. Whether it was there.
    ///
    /// # Errors
    /// [`Error::NoSuchQueue`].
    pub async fn delete_record(&self, queue: &Arc<Queue>, id: i64) -> Result<bool> {
        let (needs, queue) = (one(queue, id, 0), Arc::clone(queue));
        self.write(needs, None, 1, move |work| record::delete(work, &queue, id))
            .await
    }

    /// Sets the state of the longest untouched record that matches, if there is one. Whoever polls at the same
    /// time gets another.
    ///
    /// # Errors
    /// [`NoSuchQueue`, `LogFull`, `TooMuchWork`](Error).
    pub async fn poll(
        &self,
        queue: &Queue,
        query: &Query,
        state: String,
    ) -> Result<Option<Record>> {
        let choice = self.choices().of(queue.id, query.text());
        for attempt in 0..ATTEMPTS_MAX {
            let find = || self.candidates(queue, query);
            // What matched before this poll came need not match at its time.
            let anew = attempt > 0 || query.needs().time;
            let Some(trying) = choice.next(anew, find).await? else {
                return Ok(None);
            };
            let candidate = trying.candidate;
            let needs = Needs {
                choice: vec![candidate.seq],
                bytes: state.len(),
                ..Needs::default()
            };
            let key = record::key(queue, candidate.id);
            let state = state.clone();
            let taken = self.write(needs, None, 1, move |work| {
                record::poll(work, &key, candidate.modified, &state)
            });
            if let Some(record) = taken.await? {
                return Ok(Some(record));
            }
        }
        Err(Error::Unavailable)
    }

    async fn candidates(&self, queue: &Queue, query: &Query) -> Result<Vec<Candidate>> {
        let found = self.find(queue, query, CANDIDATES, CANDIDATES_BYTES);
        let candidate = |found: Found| Candidate {
            seq: found.seq,
            id: found.record.id,
            modified: found.record.modified,
        };
        Ok(found.await?.into_iter().map(candidate).collect())
    }

    /// Up to `limit` records that match, longest untouched first.
    ///
    /// # Errors
    /// [`NoSuchQueue`, `TooMuchWork`](Error).
    pub async fn query(&self, queue: &Queue, query: &Query, limit: usize) -> Result<Vec<Record>> {
        let found = self.find(queue, query, limit, usize::MAX).await?;
        Ok(found.into_iter().map(|found| found.record).collect())
    }
}

fn one(queue: &Queue, id: i64, bytes: usize) -> Needs {
    Needs {
        jobs: vec![record::key(queue, id)],
        bytes,
        ..Needs::default()
    }
}
