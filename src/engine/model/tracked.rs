//! Tracked jobs: their events are also published on one channel per kind of event. The table `tracked` is cached,
//! because every verb needs it. A job stays tracked after it is deleted, and is tracked again if its ID is reused.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{JobKey, QLESS_SCOPE};
use crate::store::{Row, Statement, StoreError};

/// The tracked IDs, each with the time of tracking.
#[derive(Debug, Default)]
pub struct Tracked(RwLock<HashMap<String, Time>>);

impl Tracked {
    /// Replaces the tracked jobs with the result of [`ALL`].
    pub fn reload(&self, rows: &[Row]) -> Result<(), StoreError> {
        let since = rows.iter().map(|row| Ok((row.text(0)?, Time(row.int(1)?))));
        let since: HashMap<_, _> = since.collect::<Result<_, StoreError>>()?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = since;
        Ok(())
    }

    pub fn contains(&self, id: &str) -> bool {
        let tracked = self.0.read().unwrap_or_else(PoisonError::into_inner);
        !tracked.is_empty() && tracked.contains_key(id)
    }

    /// Whether this job is tracked: only qless jobs are.
    pub fn contains_job(&self, key: &JobKey) -> bool {
        key.scope == QLESS_SCOPE && self.contains(&key.id)
    }

    /// The number of tracked jobs.
    pub fn count(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The IDs, by the time of tracking.
    pub fn ids(&self) -> Vec<String> {
        let tracked = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut ids: Vec<_> = tracked.iter().map(|(id, since)| (*since, id)).collect();
        ids.sort();
        ids.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// Applies a committed change.
    pub fn apply(&self, id: &str, since: Option<Time>) {
        let mut tracked = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match since {
            Some(since) => tracked.insert(id.to_owned(), since),
            None => tracked.remove(id),
        };
    }

    /// Removes all, after a flush.
    pub fn clear(&self) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// The statements that store when the tracking of each job began, or end it (`None`). Sorted, so that servers do not
/// deadlock.
pub fn save(changes: &HashMap<String, Option<Time>>) -> Vec<Statement> {
    if changes.is_empty() {
        return Vec::new();
    }
    let mut changes: Vec<_> = changes.iter().collect();
    changes.sort_unstable();
    let (added, removed): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|(_, since)| since.is_some());
    let added: Vec<(&str, i64)> = added
        .into_iter()
        .filter_map(|(id, since)| Some((id.as_str(), since.as_ref()?.0)))
        .collect();
    let removed: Vec<(&str,)> = removed.into_iter().map(|(id, _)| (id.as_str(),)).collect();
    let add = (!added.is_empty()).then(|| Statement::of_rows(ADD, &added));
    let remove = (!removed.is_empty()).then(|| Statement::of_rows(REMOVE, &removed));
    add.into_iter().chain(remove).collect()
}

pub const ALL: &str = "SELECT id, since FROM tracked";

const ADD: &str = "
INSERT INTO tracked (id, since) SELECT text(0), int(1) FROM rows($1) WHERE true
ON CONFLICT (id) DO UPDATE SET since = excluded.since";

const REMOVE: &str = "DELETE FROM tracked WHERE id IN (SELECT text(0) FROM rows($1))";
