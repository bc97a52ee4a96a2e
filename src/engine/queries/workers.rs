//! Workers, and the jobs that are leased to them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::Job;
use crate::engine::model::job_columns::job_columns;
use crate::engine::model::page::LISTED_MAX;
use crate::engine::queries::job_lists::jobs;
use crate::memory::holding;
use crate::store::Statement;

/// A worker and its leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCounts {
    pub name: String,
    pub last_seen: Time,
    /// Unexpired leases.
    pub jobs: i64,
    /// Expired leases of jobs that no other worker has claimed.
    pub stalled: i64,
}

/// Leases that are sorted in memory to count them by worker: at most about 30 MB.
const LEASES_IN_MEMORY: i64 = 100_000;

/// Time limit to count more of them.
const COUNT_TIME_MAX: Duration = Duration::from_secs(20);

impl Engine {
    /// Workers that were active within `max-worker-age`, last active first; at most 10,000.
    pub async fn workers(&self, now: Option<Time>) -> Result<Arc<Vec<WorkerCounts>>> {
        self.refresh_cache().await?;
        self.share(
            |it| &it.workers,
            now,
            move |engine| Box::pin(async move { engine.count_by_worker(now).await }),
        )
        .await
    }

    async fn count_by_worker(&self, now: Option<Time>) -> Result<Vec<WorkerCounts>> {
        let now = self.now(now);
        // Read before the database: a worker that is saved in between would otherwise be missed.
        let deferred = self
            .deferred_state()
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut seen: HashMap<String, Time> = HashMap::new();
        let mut held: HashMap<String, (i64, i64)> = HashMap::new();
        let batch = vec![
            Statement::new(WORKERS, [(LISTED_MAX as i64).into()]),
            Statement::new(LEASED, [now.0.into(), (LISTED_MAX as i64).into()]),
        ];
        // SQLite sorts the leases by worker: many of them in temporary files.
        let count = Statement::new(COUNT_LEASES, [LEASES_IN_MEMORY.into()]);
        let leases = self.readers().rows(count).await?;
        let leases = leases.first().map_or(Ok(0), |row| row.int(0))?;
        let answers = match leases >= LEASES_IN_MEMORY {
            true => self.readers().read_within(COUNT_TIME_MAX, batch).await?,
            false => self.readers().read(batch).await?,
        };
        let mut answers = answers.into_iter();
        for row in answers.next().unwrap_or_default().rows {
            seen.insert(row.text(0)?, Time(row.int(1)?));
        }
        for row in answers.next().unwrap_or_default().rows {
            held.insert(row.text(0)?, (row.int(1)?, row.int(2)?));
        }
        seen.extend(deferred);
        let forgotten = now.plus_seconds(-self.config().number("max-worker-age"));
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

    /// The number of workers that were active within `max-worker-age`, at most 10,000.
    pub async fn count_workers(&self) -> Result<i64> {
        self.store_deferred().await;
        let since = self.config().number("max-worker-age");
        let since = self.now(None).plus_seconds(-since);
        let statement = Statement::new(COUNT, [since.0.into(), (LISTED_MAX as i64).into()]);
        let rows = self.readers().rows(statement).await?;
        Ok(rows.first().map_or(Ok(0), |row| row.int(0))?)
    }

    /// The IDs of up to 10,000 jobs whose lease `worker` holds, latest expiry first: those with unexpired and those
    /// with expired leases.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::engine::Error::Busy).
    pub async fn worker_job_ids(
        &self,
        worker: &str,
        now: Option<Time>,
    ) -> Result<(Vec<String>, Vec<String>)> {
        self.refresh_cache().await?;
        let now = self.now(now).0;
        let statement = Statement::new(IDS_HELD_BY, [worker.into()]);
        let (mut held, mut expired) = (Vec::new(), Vec::new());
        let rows = self.readers().rows(statement);
        for row in holding(self.long_scan_permit().await?, rows).await? {
            match row.int(1)? > now {
                true => held.push(row.text(0)?),
                false => expired.push(row.text(0)?),
            }
        }
        Ok((held, expired))
    }

    /// The worker, and up to 1,000 jobs whose lease it holds, with shortened texts, and with tags only if these have up
    /// to 1 KiB, latest expiry first. `None` if it was not active within `max-worker-age` and holds no lease.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::engine::Error::Busy).
    pub async fn worker(&self, name: &str) -> Result<Option<(WorkerCounts, Vec<Job>)>> {
        self.refresh_cache().await?;
        let now = self.now(None);
        let seen = self.last_seen(&[name.to_owned()]).await?.remove(name);
        let forgotten = now.plus_seconds(-self.config().number("max-worker-age"));
        let batch = vec![
            Statement::new(COUNT_HELD_BY, [now.0.into(), name.into()]),
            Statement::new(HELD_BY, [name.into()]),
        ];
        let answers = holding(self.long_scan_permit().await?, self.readers().read(batch)).await?;
        let mut rows = answers.into_iter().map(|answer| answer.rows);
        let counts = rows.next().unwrap_or_default();
        let held = |column| counts.first().map_or(Ok(0), |row| row.int(column));
        let (held, stalled) = (held(0)?, held(1)?);
        let jobs = jobs(&rows.next().unwrap_or_default())?;
        let last_seen = match seen.filter(|seen| *seen > forgotten) {
            Some(seen) => seen,
            None => match jobs.iter().map(|job| job.since).max() {
                Some(latest) => latest,
                None => return Ok(None),
            },
        };
        let worker = WorkerCounts {
            name: name.to_owned(),
            last_seen,
            jobs: held,
            stalled,
        };
        Ok(Some((worker, jobs)))
    }
}

const WORKERS: &str = "
SELECT name, last_seen FROM workers WHERE protocol = 'qless' ORDER BY last_seen DESC LIMIT $1 + 0";

const COUNT: &str = "
SELECT count(*) FROM (
    SELECT 1 AS one FROM workers WHERE protocol = 'qless' AND last_seen > $1 LIMIT $2 + 0) AS active";

const COUNT_LEASES: &str = "SELECT count(*) FROM (SELECT 1 AS one FROM jobs WHERE state = {running} LIMIT $1 + 0) AS leased";

// A worker is saved when it claims, so those that hold jobs are in the table. The index on running jobs covers all
// columns of the query.
const LEASED: &str = "
SELECT worker, count(CASE WHEN lease_until > $1 THEN 1 END), count(CASE WHEN lease_until <= $1 THEN 1 END)
FROM jobs WHERE state = {running} AND warned = 0 AND worker IN (
    SELECT name FROM workers WHERE protocol = 'qless' ORDER BY last_seen DESC LIMIT $2 + 0
) GROUP BY worker";

const COUNT_HELD_BY: &str = "
SELECT count(CASE WHEN lease_until > $1 THEN 1 END), count(CASE WHEN lease_until <= $1 THEN 1 END)
FROM jobs WHERE state = {running} AND worker = $2 AND warned = 0";

const HELD_BY: &str = concat!(
    "SELECT ",
    job_columns!(few_tags),
    " FROM (SELECT seq FROM jobs WHERE state = {running} AND worker = $1 AND warned = 0
            ORDER BY lease_until DESC, seq DESC LIMIT 1000) AS held
    CROSS JOIN jobs AS j WHERE j.seq = held.seq ORDER BY j.lease_until DESC, j.seq DESC"
);

const IDS_HELD_BY: &str = "
SELECT j.id, j.lease_until FROM jobs AS j WHERE j.state = {running} AND j.worker = $1 AND j.warned = 0
ORDER BY j.lease_until DESC, j.seq DESC LIMIT 10000";
