//! The workers of a queue and the queues of a worker, with their results; and how fast a queue grows or shrinks.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{QueueId, QueueKey};
use crate::engine::model::queue::Queue;
use crate::engine::unit_of_work::time_series::{FAILED, MINUTE_US, PUT, RUNS, minute};
use crate::engine::worker_results::WorkerResults;
use crate::memory::holding;
use crate::store::{Row, Statement, StoreError};

/// The workers of a queue, or the queues of a worker, that are listed.
const LISTED_MAX: usize = 50;

/// Leases of a queue that are read, the first to expire first.
const LEASES_MAX: i64 = 10_000;

/// The rates of a queue are the average of this many full minutes and the current one.
const RATE_MINUTES: i64 = 5;

/// A worker of a queue, or a queue of a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityRow<T> {
    /// The name of the worker, or the queue.
    pub subject: T,
    /// In a list of queues: when the worker last asked for jobs of the queue. In a list of workers: when the worker was
    /// last seen.
    pub last_seen: Option<Time>,
    /// Unexpired and expired leases.
    pub running: i64,
    pub stalled: i64,
    pub results: WorkerResults,
}

/// A list of workers or queues.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityList<T> {
    /// Last active first; at most 50.
    pub listed: Vec<ActivityRow<T>>,
    /// The number of others.
    pub more: usize,
    /// The time since which results are counted.
    pub since: Time,
    /// Whether other servers have counted results, too.
    pub is_partial: bool,
}

/// How many jobs per minute entered and left a queue in the last minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueRates {
    pub put: f64,
    /// Completed, failed or dead-lettered.
    pub ended: f64,
}

/// The workers and the rates of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueActivity {
    pub rates: QueueRates,
    pub workers: ActivityList<String>,
}

impl Engine {
    /// The workers that have asked for jobs of the queue lately, lease its jobs, or have results; and how fast jobs
    /// entered and left it in the last five minutes. `None` if the queue does not exist.
    pub async fn queue_activity(&self, queue: &QueueKey) -> Result<Option<QueueActivity>> {
        self.refresh_cache().await?;
        self.store_deferred().await;
        let now = self.now(None);
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(None);
        };
        let from = minute(now) - RATE_MINUTES;
        let batch = vec![
            Statement::new(
                LEASED_IN_QUEUE,
                [queue.id.into(), LEASES_MAX.into(), now.0.into()],
            ),
            Statement::new(EVENTS, [queue.id, from, PUT, FAILED, RUNS].map(Into::into)),
        ];
        let mut answers = self.readers().read(batch).await?.into_iter();
        let leases = answers.next().unwrap_or_default().rows;
        let leases = leases_by(leases, |row| row.text(0))?;
        let minutes = (now.0 - from * MINUTE_US) as f64 / MINUTE_US as f64;
        let mut rates = QueueRates::default();
        for row in &answers.next().unwrap_or_default().rows {
            rates.put = row.int_or_null(0)?.unwrap_or_default() as f64 / minutes;
            rates.ended = row.int_or_null(1)?.unwrap_or_default() as f64 / minutes;
        }
        let workers = self.workers_of_queue(queue.id, &leases, now).await?;
        Ok(Some(QueueActivity { rates, workers }))
    }

    async fn workers_of_queue(
        &self,
        queue: QueueId,
        leases: &HashMap<String, (i64, i64)>,
        now: Time,
    ) -> Result<ActivityList<String>> {
        let mut results = self.results_in(queue, now);
        let asked = self.last_claims(queue).into_iter();
        let asked: HashMap<String, Time> = asked.flat_map(|claims| claims.workers).collect();
        let names: HashSet<&String> = (leases.keys().chain(results.keys()).chain(asked.keys()))
            .filter(|name| !name.is_empty())
            .collect();
        let names: Vec<String> = names.into_iter().cloned().collect();
        let seen = self.last_seen(&names).await?;
        let listed = names.into_iter().map(|name| {
            let (running, stalled) = leases.get(&name).copied().unwrap_or_default();
            ActivityRow {
                last_seen: seen.get(&name).max(asked.get(&name)).copied(),
                running,
                stalled,
                results: results.remove(&name).unwrap_or_default(),
                subject: name,
            }
        });
        Ok(self.sorted(listed.collect(), String::as_str, now))
    }

    /// The queues that the worker has asked for jobs lately, whose jobs it leases, or in which it has results.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::engine::Error::Busy).
    pub async fn queues_of_worker(&self, worker: &str) -> Result<ActivityList<Arc<Queue>>> {
        self.refresh_cache().await?;
        let now = self.now(None);
        let leases = Statement::new(LEASED_BY_QUEUE, [worker.into(), now.0.into()]);
        let leases = holding(self.long_scan_permit().await?, self.readers().rows(leases));
        let leases = leases_by(leases.await?, |row| row.int(0))?;
        let mut results = self.results_by(worker, now);
        let asked: HashMap<QueueId, Time> = self.claims_by(worker);
        let ids: HashSet<QueueId> = (leases.keys().chain(results.keys()).chain(asked.keys()))
            .copied()
            .collect();
        let known = self.known_queues();
        let listed = ids.into_iter().filter_map(|id| {
            let (running, stalled) = leases.get(&id).copied().unwrap_or_default();
            Some(ActivityRow {
                subject: known.by_id(id)?,
                last_seen: asked.get(&id).copied(),
                running,
                stalled,
                results: results.remove(&id).unwrap_or_default(),
            })
        });
        Ok(self.sorted(listed.collect(), |queue| queue.key.name.as_str(), now))
    }

    fn sorted<T>(
        &self,
        mut listed: Vec<ActivityRow<T>>,
        name: impl Fn(&T) -> &str,
        now: Time,
    ) -> ActivityList<T> {
        listed.sort_by(|a, b| {
            let by_time = b.last_seen.cmp(&a.last_seen);
            by_time.then_with(|| name(&a.subject).cmp(name(&b.subject)))
        });
        let more = listed.len().saturating_sub(LISTED_MAX);
        listed.truncate(LISTED_MAX);
        ActivityList {
            listed,
            more,
            since: self.results_since(now),
            is_partial: self.peers().any(),
        }
    }

    /// When these workers were last seen, if that is known.
    pub(super) async fn last_seen(&self, names: &[String]) -> Result<HashMap<String, Time>> {
        let recent = &self.deferred_state().seen;
        // Read before the database: a worker that is saved in between would otherwise be missed.
        let deferred: Vec<(String, Time)> = {
            let recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
            let known = |name: &String| Some((name.clone(), *recent.get(name)?));
            names.iter().filter_map(known).collect()
        };
        let rows: Vec<(&str,)> = names.iter().map(|name| (name.as_str(),)).collect();
        let mut seen = HashMap::new();
        if !rows.is_empty() {
            let statement = Statement::of_rows(LAST_SEEN, &rows);
            for row in self.readers().rows(statement).await? {
                seen.insert(row.text(0)?, Time(row.int(1)?));
            }
        }
        seen.extend(deferred);
        Ok(seen)
    }
}

/// Unexpired and expired leases by the key in the first column.
fn leases_by<K: std::hash::Hash + Eq>(
    rows: Vec<Row>,
    key: impl Fn(&Row) -> Result<K, StoreError>,
) -> Result<HashMap<K, (i64, i64)>> {
    let mut leases = HashMap::new();
    for row in rows {
        leases.insert(key(&row)?, (row.int(1)?, row.int(2)?));
    }
    Ok(leases)
}

const LEASED_IN_QUEUE: &str = "
SELECT l.worker, count(CASE WHEN l.lease_until > $3 THEN 1 END), count(CASE WHEN l.lease_until <= $3 THEN 1 END)
FROM (SELECT j.worker, j.lease_until FROM jobs AS j WHERE j.queue = $1 AND j.state = {running} AND j.warned = 0
      ORDER BY j.lease_until, j.seq LIMIT $2 + 0) AS l
WHERE l.worker IS NOT NULL GROUP BY l.worker";

// Running jobs are few, and an index covers all columns of the query.
const LEASED_BY_QUEUE: &str = "
SELECT queue, count(CASE WHEN lease_until > $2 THEN 1 END), count(CASE WHEN lease_until <= $2 THEN 1 END)
FROM jobs WHERE state = {running} AND worker = $1 AND warned = 0 GROUP BY queue";

const EVENTS: &str = "
SELECT CAST(sum(CASE WHEN t.slot = $3 THEN t.n END) AS BIGINT),
       CAST(sum(CASE WHEN t.slot = $4 OR t.slot >= $5 THEN t.n END) AS BIGINT)
FROM tallies AS t WHERE t.kind = {kind_minute} AND t.queue = $1 AND t.day >= $2";

const LAST_SEEN: &str = "
SELECT w.name, w.last_seen FROM rows($1) AS k CROSS JOIN workers AS w
WHERE w.protocol = 'qless' AND w.name = k.text(0)";
