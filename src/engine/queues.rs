//! Which queues there are: a copy of the table `queues` in memory, for it is small and asked for in
//! every request.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::clock::Time;
use super::error::Result;
use super::job::{Protocol, QueueId, QueueKey};
use crate::store::{Readers, Row, Statement, StoreError};

const ALL: &str = "SELECT id, protocol, namespace, name, first_seen FROM queues";

/// A queue that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    pub id: QueueId,
    pub key: QueueKey,
    pub first_seen: Time,
}

/// The queues that are known.
#[derive(Debug, Default)]
pub struct Queues(RwLock<Inner>);

#[derive(Debug, Default)]
struct Inner {
    by_key: HashMap<QueueKey, Arc<Queue>>,
    by_id: HashMap<QueueId, Arc<Queue>>,
}

impl Queues {
    /// Reads the table.
    pub async fn load(readers: &Readers) -> Result<Queues> {
        let queues = Queues::default();
        for row in readers.rows(Statement::new(ALL, [])).await? {
            queues.add(queue(&row)?);
        }
        Ok(queues)
    }

    pub fn get(&self, key: &QueueKey) -> Option<Arc<Queue>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .by_key
            .get(key)
            .cloned()
    }

    pub fn by_id(&self, id: QueueId) -> Option<Arc<Queue>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .by_id
            .get(&id)
            .cloned()
    }

    /// The queue's name; empty if it is not known.
    pub fn name(&self, id: QueueId) -> String {
        self.by_id(id)
            .map(|queue| queue.key.name.clone())
            .unwrap_or_default()
    }

    /// All queues, by when they were first seen, then by name.
    pub fn all(&self) -> Vec<Arc<Queue>> {
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut queues: Vec<_> = inner.by_id.values().cloned().collect();
        queues.sort_by(|a, b| {
            (a.first_seen, &a.key.name, a.id).cmp(&(b.first_seen, &b.key.name, b.id))
        });
        queues
    }

    /// Another queue, once the group that made it has been committed.
    pub fn add(&self, queue: Queue) {
        let queue = Arc::new(queue);
        let mut inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
        inner.by_key.insert(queue.key.clone(), Arc::clone(&queue));
        inner.by_id.insert(queue.id, queue);
    }

    /// Everything has been emptied.
    pub fn clear(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Inner::default();
    }

    /// A number for a new queue.
    pub fn next_id(&self) -> QueueId {
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        inner.by_id.keys().max().map_or(1, |highest| highest + 1)
    }
}

fn queue(row: &Row) -> Result<Queue, StoreError> {
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
    })
}
