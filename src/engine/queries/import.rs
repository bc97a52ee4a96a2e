//! What an import compares: which jobs exist, and how many of each state.

use std::collections::{BTreeMap, HashSet};

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::{JobKey, Protocol, QueueKey, State, can_look_up};
use crate::store::{Statement, StoreError};

impl Engine {
    /// Those of the keys that a job has. Reads up to a few hundred keys at once.
    pub async fn existing_jobs(&self, keys: &[JobKey]) -> Result<HashSet<JobKey>> {
        let keys = keys.iter().filter(|key| can_look_up(&key.id));
        let rows: Vec<_> = keys.map(|key| (key.scope, key.id.as_str())).collect();
        if rows.is_empty() {
            return Ok(HashSet::new());
        }
        let found = self.readers().rows(Statement::of_rows(EXISTING, &rows));
        let key = |row: &crate::store::Row| {
            Ok(JobKey {
                scope: row.int(0)?,
                id: row.text(1)?,
            })
        };
        let keys: Result<_, StoreError> = found.await?.iter().map(key).collect();
        Ok(keys?)
    }

    /// The IDs of those keys, by queue and ID, that a job of a protocol with one scope per queue has.
    pub async fn existing_jobs_in(&self, keys: &[(QueueKey, String)]) -> Result<Vec<String>> {
        let scope = |(queue, id): &(QueueKey, String)| {
            let scope = self.known_queues().get(queue)?.id;
            let id = id.clone();
            Some(JobKey { scope, id })
        };
        let keys: Vec<_> = keys.iter().filter_map(scope).collect();
        let found = self.existing_jobs(&keys).await?;
        Ok(found.into_iter().map(|key| key.id).collect())
    }

    /// The number of jobs of a protocol by stored state. Counts the rows.
    pub async fn job_rows_by_state(
        &self,
        protocol: Protocol,
    ) -> Result<BTreeMap<&'static str, u64>> {
        let statement = Statement::new(COUNT, [protocol.as_str().into()]);
        let mut counts = BTreeMap::new();
        for row in self.readers().rows(statement).await? {
            let state = State::from_code(row.int(0)?);
            let state = state.ok_or(StoreError::Corrupt("an unknown state"))?;
            counts.insert(state.as_str(), row.int(1)?.unsigned_abs());
        }
        Ok(counts)
    }
}

const EXISTING: &str = "
SELECT j.scope, j.id FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.scope = k.int(0) AND j.id = k.text(1)";

const COUNT: &str = "
SELECT CAST(j.state AS BIGINT), count(*) FROM jobs AS j JOIN queues AS q ON q.id = j.queue
WHERE q.protocol = $1 GROUP BY j.state";
