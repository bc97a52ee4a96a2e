//! What a group reads: the jobs its verbs name, and the next jobs of a queue.

use std::collections::HashSet;

use super::{Candidates, Needs, Slot, Work};
use crate::engine::job::{Job, JobKey, QueueId};
use crate::engine::rows::{self, job_columns};
use crate::store::{Answer, Row, Statement, StoreError};

impl Work {
    /// Statements that read what the verbs need, except for claims.
    pub fn loading<'a>(&self, needs: impl Iterator<Item = &'a Needs>) -> Vec<Statement> {
        let mut keys = HashSet::new();
        let mut reach: Vec<&str> = Vec::new();
        let mut batch = Vec::new();
        for need in needs {
            let missing = need.jobs.iter().filter(|key| !self.slots.contains_key(key));
            keys.extend(missing.map(|key| (key.scope, key.id.as_str())));
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
        if !self.slots.contains_key(&key) {
            self.prime(job, version);
        }
        Ok(key)
    }

    /// Statements that read the next jobs of each queue.
    pub fn loading_candidates(&self, wanted: &[(QueueId, usize)]) -> Vec<Statement> {
        let next = |(queue, count): &(QueueId, usize)| {
            Statement::new(
                NEXT,
                [(*queue).into(), self.now.0.into(), (*count as i64).into()],
            )
        };
        wanted.iter().map(next).collect()
    }

    /// Takes in what [`Work::loading_candidates`] has read, in the order in which claims take it.
    pub fn candidates_loaded(
        &mut self,
        wanted: &[(QueueId, usize)],
        answers: impl Iterator<Item = Answer>,
    ) -> Result<(), StoreError> {
        for ((queue, _), answer) in wanted.iter().zip(answers) {
            let (mut lost, mut ready) = (Vec::new(), Vec::new());
            for row in answer.rows {
                let (job, version) = rows::job(&row)?;
                match &job.lease {
                    Some(lease) => lost.push((lease.until, job.seq, job.key.clone())),
                    None => ready.push((job.priority, job.ready_at, job.seq, job.key.clone())),
                }
                self.prime(job, version);
            }
            lost.sort_by_key(|(until, seq, _)| (*until, *seq));
            ready.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
            let lost = lost.into_iter().map(|(.., key)| key).collect();
            let ready = ready.into_iter().map(|(.., key)| key).collect();
            self.candidates.insert(*queue, Candidates { lost, ready });
        }
        Ok(())
    }

    /// Puts a job under work as it stands in the database.
    pub fn prime(&mut self, job: Job, version: i64) {
        let slot = Slot {
            job,
            version: Some(version),
            before: None,
        };
        self.slots.insert(slot.job.key.clone(), slot);
    }
}

/// Columns of an answer to [`LOAD_REACH`]; a job has many more.
const REACH_COLUMNS: usize = 2;

/// Jobs by pairs of scope and id.
// CROSS JOIN keeps SQLite from walking through the jobs and looking each up in the list.
pub(in crate::engine) const LOAD_JOBS: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jsonb_each($1) AS k CROSS JOIN jobs AS j WHERE j.scope = k.value->>0 AND j.id = k.value->>1"
);

const LOAD_FAILURES: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs AS j WHERE j.state = 5 AND j.failure_group = $1 ORDER BY j.since, j.seq LIMIT $2 + 0"
);

/// All edges that can be reached from some qless ids, as pairs of ids.
const LOAD_REACH: &str = "
WITH RECURSIVE reached (seq) AS (
    SELECT j.seq FROM jsonb_each($1) AS k CROSS JOIN jobs AS j WHERE j.scope = 0 AND j.id = k.value
    UNION
    SELECT d.needs FROM reached AS r JOIN dependencies AS d ON d.job = r.seq
)
SELECT a.id, b.id FROM reached AS r JOIN dependencies AS d ON d.job = r.seq
JOIN jobs AS a ON a.seq = d.job JOIN jobs AS b ON b.seq = d.needs";

/// Lost leases, waiting jobs, and scheduled jobs that are due though upkeep has not made them waiting yet:
/// of each the first few. If more than ten thousand are due at once, those due first go first.
const NEXT: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM (
        SELECT seq FROM (SELECT seq FROM jobs WHERE queue = $1 AND state = 4 AND lease_until <= $2
                         ORDER BY lease_until, seq LIMIT $3 + 0) AS lost
        UNION ALL
        SELECT seq FROM (SELECT seq FROM jobs WHERE queue = $1 AND state = 1
                         ORDER BY priority, ready_at, seq LIMIT $3 + 0) AS waiting
        UNION ALL
        SELECT seq FROM (SELECT seq FROM (
                             SELECT seq, priority, ready_at FROM jobs
                             WHERE queue = $1 AND state = 2 AND ready_at <= $2
                             ORDER BY ready_at, seq LIMIT 10000) AS soonest
                         ORDER BY priority, ready_at, seq LIMIT $3 + 0) AS due
    ) AS c CROSS JOIN jobs AS j WHERE j.seq = c.seq"
);
