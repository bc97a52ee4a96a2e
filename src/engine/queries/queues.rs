//! Looking: everything that reads and changes nothing. It sees what has been committed.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, JobKey, QueueId, QueueKey, Standing, State, is_possible};
use crate::engine::model::job_rows::{self, job_columns};
use crate::engine::model::queue::Queue;
use crate::store::{Answer, Statement};

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub offset: usize,
    pub limit: usize,
}

/// How many jobs of a queue stand where, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub waiting: i64,
    pub scheduled: i64,
    pub depends: i64,
    pub running: i64,
    pub stalled: i64,
    pub failed: i64,
    pub complete: i64,
    pub dead: i64,
    pub records: i64,
}

impl Counts {
    pub fn of(&self, standing: Standing) -> i64 {
        match standing {
            Standing::Waiting => self.waiting,
            Standing::Scheduled => self.scheduled,
            Standing::Depends => self.depends,
            Standing::Running => self.running,
            Standing::Stalled => self.stalled,
            Standing::Failed => self.failed,
            Standing::Complete => self.complete,
            Standing::Dead => self.dead,
            Standing::Record => self.records,
        }
    }

    fn slot(&mut self, state: State) -> &mut i64 {
        match state {
            State::Waiting | State::Stalled => &mut self.waiting,
            State::Scheduled => &mut self.scheduled,
            State::Depends => &mut self.depends,
            State::Running => &mut self.running,
            State::Failed => &mut self.failed,
            State::Complete => &mut self.complete,
            State::Dead => &mut self.dead,
            State::Record => &mut self.records,
        }
    }
}

/// A queue and its counts.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueCounts {
    pub queue: Arc<Queue>,
    pub counts: Counts,
    /// When the job that has waited longest became available; of those with the lowest priority number.
    pub oldest_waiting: Option<Time>,
    /// How many recurring jobs it has.
    pub recurring: i64,
}

/// A worker, and how many leases it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCounts {
    pub name: String,
    pub last_seen: Time,
    /// Leases that are not lost.
    pub jobs: i64,
    /// Leases that are lost, of jobs that nobody has taken over.
    pub stalled: i64,
}

/// A group of failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    pub group: String,
    pub count: i64,
    /// The oldest of its failures.
    pub first: Option<Time>,
    /// The newest of its failures, and its message.
    pub last: Option<Time>,
    pub message: Option<String>,
}

impl Engine {
    /// All queues by when they were first seen, then by name.
    pub async fn queues(&self, now: Option<Time>) -> Result<Vec<QueueCounts>> {
        self.freshen().await?;
        let now = self.now(now).0;
        let batch = vec![
            Statement::new(COUNTS, []),
            Statement::new(COUNT_STALLED, [now.into()]),
            Statement::new(COUNT_DUE, [now.into()]),
            Statement::new(OLDEST_WAITING, []),
            Statement::new(RECURRING, []),
        ];
        let (mut counts, oldest, recurring) = counts(self.readers().read(batch).await?)?;
        let with_counts = |queue: Arc<Queue>| QueueCounts {
            counts: counts.remove(&queue.id).unwrap_or_default(),
            oldest_waiting: oldest.get(&queue.id).copied(),
            recurring: recurring.get(&queue.id).copied().unwrap_or_default(),
            queue,
        };
        Ok(self
            .known_queues()
            .all()
            .into_iter()
            .map(with_counts)
            .collect())
    }

    /// One queue; `None` if it is not known.
    pub async fn queue(&self, key: &QueueKey, now: Option<Time>) -> Result<Option<QueueCounts>> {
        self.freshen().await?;
        let now = self.now(now).0;
        let Some(queue) = self.known_queues().get(key) else {
            return Ok(None);
        };
        let batch = vec![
            Statement::new(COUNTS_OF, [queue.id.into()]),
            Statement::new(COUNT_STALLED_OF, [queue.id.into(), now.into()]),
            Statement::new(COUNT_DUE_OF, [queue.id.into(), now.into()]),
            Statement::new(OLDEST_WAITING_OF, [queue.id.into()]),
            Statement::new(RECURRING_OF, [queue.id.into()]),
        ];
        let (mut counts, oldest, recurring) = counts(self.readers().read(batch).await?)?;
        let counts = counts.remove(&queue.id).unwrap_or_default();
        Ok(Some(QueueCounts {
            counts,
            oldest_waiting: oldest.get(&queue.id).copied(),
            recurring: recurring.get(&queue.id).copied().unwrap_or_default(),
            queue,
        }))
    }

    /// The job; `None` if it is not there.
    pub async fn job(&self, key: &JobKey) -> Result<Option<Job>> {
        self.freshen().await?;
        self.job_as_known(key).await
    }

    /// The same, for whoever has caught up with the other servers already.
    pub(in crate::engine) async fn job_as_known(&self, key: &JobKey) -> Result<Option<Job>> {
        if !is_possible(&key.id) {
            return Ok(None);
        }
        let statement = Statement::new(JOB, [key.scope.into(), key.id.as_str().into()]);
        let rows = self.readers().rows(statement).await?;
        let job = rows.first().map(job_rows::job).transpose()?;
        Ok(job.map(|(job, _)| job))
    }

    /// Workers that showed themselves within `max-worker-age`, last seen first; the first 10,000 of them.
    pub async fn workers(&self, now: Option<Time>) -> Result<Vec<WorkerCounts>> {
        self.freshen().await?;
        let now = self.now(now);
        // Before the database is read: a worker that is saved in between would be in neither.
        let unsaved = self
            .seen()
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut seen: HashMap<String, Time> = HashMap::new();
        let mut held: HashMap<String, (i64, i64)> = HashMap::new();
        let answers = self
            .readers()
            .read(vec![
                Statement::new(WORKERS, [(LISTED_MAX as i64).into()]),
                Statement::new(HELD, [now.0.into()]),
            ])
            .await?;
        let mut answers = answers.into_iter();
        for row in answers.next().unwrap_or_default().rows {
            seen.insert(row.text(0)?, Time(row.int(1)?));
        }
        for row in answers.next().unwrap_or_default().rows {
            held.insert(row.text(0)?, (row.int(1)?, row.int(2)?));
        }
        seen.extend(unsaved);
        let forgotten = now.plus_seconds(-self.config().known("max-worker-age"));
        let mut workers: Vec<_> = seen
            .into_iter()
            .filter(|(_, last_seen)| *last_seen > forgotten)
            .map(|(name, last_seen)| {
                let (jobs, stalled) = held.remove(&name).unwrap_or_default();
                WorkerCounts {
                    name,
                    last_seen,
                    jobs,
                    stalled,
                }
            })
            .collect();
        workers.sort_by(|a, b| {
            b.last_seen
                .cmp(&a.last_seen)
                .then_with(|| a.name.cmp(&b.name))
        });
        workers.truncate(LISTED_MAX);
        Ok(workers)
    }

    /// The groups that have failed jobs, by name; the first 10,000 of them.
    pub async fn failures(&self) -> Result<Vec<FailureGroup>> {
        let rows = self
            .readers()
            .rows(Statement::new(FAILURES, [(LISTED_MAX as i64).into()]))
            .await?;
        let group = |row: &crate::store::Row| {
            Ok(FailureGroup {
                group: row.text(0)?,
                count: row.int(1)?,
                first: row.int_or_null(2)?.map(Time),
                last: row.int_or_null(3)?.map(Time),
                message: row.text_or_null(4)?,
            })
        };
        rows.iter().map(group).collect()
    }
}

type Found = (
    HashMap<QueueId, Counts>,
    HashMap<QueueId, Time>,
    HashMap<QueueId, i64>,
);

/// The counts of every queue, when its oldest waiting job became available, and its recurring jobs.
fn counts(answers: Vec<Answer>) -> Result<Found> {
    let mut counts: HashMap<QueueId, Counts> = HashMap::new();
    let (mut oldest, mut recurring) = (HashMap::new(), HashMap::new());
    for (index, answer) in answers.into_iter().enumerate() {
        for row in answer.rows {
            let (queue, n) = (row.int(0)?, row.int(1)?);
            let of_queue = counts.entry(queue).or_default();
            match index {
                0 => {
                    if let Some(state) = State::from_code(row.int(2)?) {
                        *of_queue.slot(state) += n;
                    }
                }
                1 => {
                    of_queue.stalled = n;
                    of_queue.running -= n;
                }
                2 => {
                    of_queue.waiting += n;
                    of_queue.scheduled -= n;
                }
                3 => {
                    oldest.insert(queue, Time(n));
                }
                _ => {
                    recurring.insert(queue, n);
                }
            }
        }
    }
    Ok((counts, oldest, recurring))
}

pub const COUNTS: &str =
    "SELECT queue, CAST(sum(n) AS BIGINT), slot FROM tallies WHERE kind = 0 GROUP BY queue, slot";

// A lost lease and a due job are found at the beginning of an index, queue by queue.
const COUNT_STALLED: &str = "
SELECT q.id, count(*) FROM queues AS q CROSS JOIN jobs AS j
WHERE j.queue = q.id AND j.state = 4 AND j.lease_until <= $1 GROUP BY q.id";

const COUNT_DUE: &str = "
SELECT q.id, count(*) FROM queues AS q CROSS JOIN jobs AS j
WHERE j.queue = q.id AND j.state = 2 AND j.ready_at <= $1 GROUP BY q.id";

const OLDEST_WAITING: &str = "
SELECT queue, ready_at FROM (
    SELECT q.id AS queue, (SELECT j.ready_at FROM jobs AS j WHERE j.queue = q.id AND j.state = 1
                           ORDER BY j.priority, j.ready_at, j.seq LIMIT 1) AS ready_at
    FROM queues AS q) AS o WHERE ready_at IS NOT NULL";

const RECURRING: &str = "SELECT queue, count(*) FROM recurring GROUP BY queue";

const RECURRING_OF: &str = "SELECT queue, count(*) FROM recurring WHERE queue = $1 GROUP BY queue";

const COUNTS_OF: &str = "SELECT queue, CAST(sum(n) AS BIGINT), slot FROM tallies WHERE kind = 0 AND queue = $1 GROUP BY queue, slot";

const COUNT_STALLED_OF: &str = "SELECT queue, count(*) FROM jobs WHERE queue = $1 AND state = 4 AND lease_until <= $2 GROUP BY queue";

const COUNT_DUE_OF: &str = "SELECT queue, count(*) FROM jobs WHERE queue = $1 AND state = 2 AND ready_at <= $2 GROUP BY queue";

const OLDEST_WAITING_OF: &str = "
SELECT queue, ready_at FROM jobs WHERE queue = $1 AND state = 1 ORDER BY priority, ready_at, seq LIMIT 1";

const JOB: &str = concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs AS j WHERE j.scope = $1 AND j.id = $2"
);

/// Workers, and failure groups, of one list.
const LISTED_MAX: usize = 10_000;

const WORKERS: &str = "
SELECT name, last_seen FROM workers WHERE protocol = 'qless' ORDER BY last_seen DESC LIMIT $1 + 0";

// There are only as many running jobs as workers can hold, and the index has all that is asked for.
const HELD: &str = "
SELECT worker, count(CASE WHEN lease_until > $1 THEN 1 END), count(CASE WHEN lease_until <= $1 THEN 1 END)
FROM jobs WHERE state = 4 AND warned = 0 GROUP BY worker";

const FAILURES: &str = "
SELECT c.failure_group, c.n,
    (SELECT min(j.since) FROM jobs AS j WHERE j.state = 5 AND j.failure_group = c.failure_group),
    (SELECT max(j.since) FROM jobs AS j WHERE j.state = 5 AND j.failure_group = c.failure_group),
    (SELECT substr(j.failure_message, 1, 1000) FROM jobs AS j WHERE j.state = 5 AND j.failure_group = c.failure_group
     ORDER BY j.since DESC, j.seq DESC LIMIT 1)
FROM (SELECT failure_group, CAST(sum(n) AS BIGINT) AS n FROM failure_counts GROUP BY failure_group) AS c
WHERE c.n > 0 ORDER BY c.failure_group LIMIT $1 + 0";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Options;
    use crate::engine::unit_of_work::Needs;

    const GROUPS: &str = "
INSERT INTO failure_counts (failure_group, queue, server, n)
WITH RECURSIVE numbers (n) AS (SELECT $1 + 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
SELECT 'group ' || (100000 + n), 1, 1, 1 FROM numbers";

    #[tokio::test]
    async fn the_first_10000_failure_groups_are_listed() {
        let options = Options {
            database: "sqlite::memory:".to_owned(),
            brief: true,
            ..Options::default()
        };
        let engine = Engine::open(&options).await.unwrap();
        for (from, to, listed) in [
            (1_i64, 9_999_i64, 9_999),
            (10_000, 10_000, 10_000),
            (10_001, 10_001, 10_000),
        ] {
            let add = engine.write(Needs::default(), None, 1, move |work| {
                let range = [from, to].map(i64::into);
                work.also([Statement::new(GROUPS, range)]);
                Ok(())
            });
            add.await.unwrap();
            let groups = engine.failures().await.unwrap();
            assert_eq!(groups.len(), listed, "of {to}");
        }
        engine.close().await;
    }
}
