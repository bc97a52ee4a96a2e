//! What a group reads: the jobs its verbs name, and the next jobs of a queue.

use std::collections::HashSet;

use super::{Candidates, Needs, Slot, Work};
use crate::engine::job::{JobKey, QueueId};
use crate::engine::rows::{self, job_columns};
use crate::store::{Answer, Row, Statement, StoreError};

impl Work {
    /// Statements that read what the verbs need, except for claims.
    pub fn loading<'a>(&self, needs: impl Iterator<Item = &'a Needs>) -> Vec<Statement> {
        let mut keys = HashSet::new();
        let mut reach: Vec<&str> = Vec::new();
        let mut batch = Vec::new();
        for need in needs {
            keys.extend(need.jobs.iter().map(|key| (key.scope, key.id.as_str())));
            reach.extend(need.reach.iter().map(String::as_str));
            if let Some((group, count)) = &need.failures {
                batch.push(Statement::new(
                    LOAD_FAILURES,
                    [group.as_str().into(), (*count as i64).into()],
                ));
            }
        }
        if !keys.is_empty() {
            batch.push(Statement::of_rows(
                LOAD_JOBS,
                &keys.into_iter().collect::<Vec<_>>(),
            ));
        }
        if !reach.is_empty() {
            batch.push(Statement::of_rows(LOAD_REACH, &reach));
        }
        batch
    }

    /// The statement that reads the neighbours of the loaded jobs, if any are missing.
    pub fn loading_neighbours(&self) -> Option<Statement> {
        let mut missing = HashSet::new();
        for (key, slot) in &self.slots {
            for id in slot.job.dependencies.iter().chain(&slot.job.dependents) {
                if !self.slots.contains_key(&JobKey {
                    scope: key.scope,
                    id: id.clone(),
                }) {
                    missing.insert((key.scope, id.as_str()));
                }
            }
        }
        (!missing.is_empty())
            .then(|| Statement::of_rows(LOAD_JOBS, &missing.into_iter().collect::<Vec<_>>()))
    }

    /// Takes in what [`Work::loading`] has read. Failures come first in the batch, then jobs, then edges.
    pub fn loaded(&mut self, answers: Vec<Answer>, failures: bool) -> Result<(), StoreError> {
        for (index, answer) in answers.into_iter().enumerate() {
            for row in answer.rows {
                if row.columns() == REACH_COLUMNS {
                    self.reach
                        .entry(row.text(0)?)
                        .or_default()
                        .push(row.text(1)?);
                } else {
                    let key = self.load(&row)?;
                    if failures && index == 0 {
                        self.failing.push(key);
                    }
                }
            }
        }
        Ok(())
    }

    fn load(&mut self, row: &Row) -> Result<JobKey, StoreError> {
        let (job, version) = rows::job(row)?;
        let key = job.key.clone();
        self.slots.entry(key.clone()).or_insert(Slot {
            job,
            version: Some(version),
            before: None,
        });
        Ok(key)
    }

    /// Statements that read the next jobs of each queue: three a queue, see [`Work::candidates_loaded`].
    pub fn loading_candidates(&self, wanted: &[(QueueId, usize)]) -> Vec<Statement> {
        let now = self.now.0;
        wanted
            .iter()
            .flat_map(|(queue, count)| {
                let count = *count as i64;
                [
                    Statement::new(PROMOTE_QUEUE, [(*queue).into(), now.into()]),
                    Statement::new(NEXT_LOST, [(*queue).into(), now.into(), count.into()]),
                    Statement::new(NEXT_READY, [(*queue).into(), count.into()]),
                ]
            })
            .collect()
    }

    /// Takes in what [`Work::loading_candidates`] has read.
    pub fn candidates_loaded(
        &mut self,
        wanted: &[(QueueId, usize)],
        answers: impl Iterator<Item = Answer>,
    ) -> Result<(), StoreError> {
        self.slots.clear();
        let mut answers = answers;
        for (queue, _) in wanted {
            let promoted = answers.next().unwrap_or_default();
            self.promoted(*queue, promoted.affected);
            let mut candidates = Candidates::default();
            for row in answers.next().unwrap_or_default().rows {
                candidates.lost.push_back(self.load(&row)?);
            }
            for row in answers.next().unwrap_or_default().rows {
                candidates.ready.push_back(self.load(&row)?);
            }
            self.candidates.insert(*queue, candidates);
        }
        Ok(())
    }
}

/// Columns of an answer to [`LOAD_REACH`]; a job has many more.
const REACH_COLUMNS: usize = 2;

/// Due jobs that one claim makes waiting at the most, so that no claim takes long. In the rare moment
/// when more fall due at once, the next claim goes on with them.
macro_rules! promoted_max {
    () => {
        "10000"
    };
}

// CROSS JOIN keeps SQLite from walking through the jobs and looking each up in the list.
const LOAD_JOBS: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM json_each($1) AS k CROSS JOIN jobs AS j WHERE j.scope = k.value->>0 AND j.id = k.value->>1"
);

const LOAD_FAILURES: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs AS j WHERE j.state = 5 AND j.failure_group = $1 ORDER BY j.since, j.seq LIMIT $2"
);

/// All edges that can be reached from some qless ids, as pairs of ids.
const LOAD_REACH: &str = "
WITH RECURSIVE reached (seq) AS (
    SELECT j.seq FROM json_each($1) AS k CROSS JOIN jobs AS j WHERE j.scope = 0 AND j.id = k.value
    UNION
    SELECT d.needs FROM reached AS r JOIN dependencies AS d ON d.job = r.seq
)
SELECT a.id, b.id FROM reached AS r JOIN dependencies AS d ON d.job = r.seq
JOIN jobs AS a ON a.seq = d.job JOIN jobs AS b ON b.seq = d.needs";

const PROMOTE_QUEUE: &str = concat!(
    "UPDATE jobs SET state = 1, version = version + 1 WHERE seq IN (
        SELECT seq FROM jobs WHERE queue = $1 AND state = 2 AND ready_at <= $2
        ORDER BY ready_at, seq LIMIT ",
    promoted_max!(),
    ")"
);

const NEXT_LOST: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs AS j WHERE j.queue = $1 AND j.state = 4 AND j.lease_until <= $2
      ORDER BY j.lease_until, j.seq LIMIT $3"
);

const NEXT_READY: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs AS j WHERE j.queue = $1 AND j.state = 1 ORDER BY j.priority, j.ready_at, j.seq LIMIT $2"
);
