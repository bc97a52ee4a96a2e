//! Matches scanned jobs against a search. Payloads are read only for jobs that match otherwise, and no more of them at
//! once than fit into a batch.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::budget::BudgetExceeded;
use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, Protocol, State};
use crate::engine::model::long_bodies::BODIES;
use crate::engine::model::queue::Queue;
use crate::engine::queries::batch_size::BatchSizer;
use crate::engine::queries::evaluate::{Allowance, Evaluated};
use crate::memory::reserve_with_copy;
use crate::search::{Body, JobFacts, Search};
use crate::store::Statement;

/// Jobs, or bytes of them, that a search scans regardless of its time limit.
const AT_LEAST: usize = 500;
const AT_LEAST_BYTES: usize = 4 << 20;

/// The work of one search, in steps and bytes: more than any single job can cause.
const WORK_MAX: u64 = 1_000_000_000;

/// A scanned job, without its payload.
pub struct ScannedJob {
    pub job: Job,
    pub is_tracked: bool,
    /// `None` if the queue is not visible.
    pub queue: Option<Arc<Queue>>,
    /// The size of all its texts, including the payload.
    pub bytes: i64,
}

impl ScannedJob {
    /// The size in bytes of the long texts that were read, without the payload.
    pub fn loaded_bytes(&self) -> usize {
        let message = self.job.failure.as_ref();
        let tags = self.job.tags.iter().map(String::len);
        message.map_or(0, |failure| failure.message.len()) + tags.sum::<usize>()
    }
}

/// What a search has spent so far, and its limits.
pub struct ScanBudget {
    begun: Instant,
    time: Duration,
    allowance: Allowance,
    rows: usize,
    bytes: usize,
}

impl ScanBudget {
    pub fn within(time: Duration, engine: &Engine) -> ScanBudget {
        ScanBudget {
            begun: Instant::now(),
            time,
            allowance: engine.allowance(WORK_MAX),
            rows: 0,
            bytes: 0,
        }
    }

    /// Whether its time is over and it has scanned the minimum.
    pub fn is_over(&self) -> bool {
        self.is_over_after(0)
    }

    fn is_over_after(&self, rows: usize) -> bool {
        let is_enough = self.rows + rows >= AT_LEAST || self.bytes >= AT_LEAST_BYTES;
        is_enough && self.begun.elapsed() >= self.time
    }
}

impl Engine {
    /// Whether each of these jobs matches, in their order. The result is shorter if the search has found `wanted` jobs
    /// or has reached its limits.
    ///
    /// # Errors
    /// [`Busy`](crate::engine::Error::Busy), if other evaluations take too long.
    pub(in crate::engine) async fn match_jobs(
        &self,
        search: &Search,
        rows: &Arc<Vec<ScannedJob>>,
        now: Time,
        wanted: usize,
        budget: &mut ScanBudget,
    ) -> Result<Vec<bool>> {
        let (evaluated, of) = (Arc::clone(rows), search.clone());
        let results = budget.allowance.run(move |work| {
            each(&evaluated, |row| match &row.queue {
                Some(queue) if !row.job.is_expired(now) => {
                    let facts = facts_of(&row.job, queue, row.is_tracked, now);
                    let matches = of.matches_without_payload(&facts, now.0, work)?;
                    Ok(matches != Some(false))
                }
                _ => Ok(false),
            })
        });
        let mut matching = results.await?.value;
        let loaded = rows.iter().map(|row| row.job.loaded_bytes());
        budget.bytes += loaded.sum::<usize>();
        if search.needs_body() {
            self.match_payloads(search, rows, now, &mut matching, wanted, budget)
                .await?;
        }
        budget.rows += matching.len();
        Ok(matching)
    }

    /// Matches the payloads of the jobs that match otherwise. Truncates `matching` before the first job it does not get
    /// to.
    async fn match_payloads(
        &self,
        search: &Search,
        rows: &Arc<Vec<ScannedJob>>,
        now: Time,
        matching: &mut Vec<bool>,
        wanted: usize,
        budget: &mut ScanBudget,
    ) -> Result<()> {
        let all = rows.iter().zip(matching.iter()).enumerate();
        let open: Vec<(usize, &ScannedJob)> = all
            .filter(|(_, (_, matches))| **matches)
            .map(|(index, (row, _))| (index, row))
            .collect();
        let (mut open, mut found) = (open.as_slice(), 0);
        while let Some((first, _)) = open.first() {
            if found >= wanted || budget.is_over_after(*first) {
                matching.truncate(*first);
                break;
            }
            let sizes: Vec<i64> = open.iter().map(|(_, row)| row.bytes).collect();
            let (fitting, bytes) = BatchSizer::fitting_bytes(&sizes);
            let (batch, rest) = open.split_at(fitting);
            let reserved = reserve_with_copy(bytes).await?;
            let bodies = self.bodies(batch, bytes).await?;
            budget.bytes += bodies.iter().map(String::len).sum::<usize>();
            let indexes = batch.iter().map(|(index, _)| *index);
            let bodies: Vec<(usize, String)> = indexes.zip(bodies).collect();
            let (of, evaluated) = (search.clone(), Arc::clone(rows));
            let results = budget.allowance.run(move |work| {
                // Until the evaluation ends, even if the client disconnects.
                let _ = &reserved;
                each(&bodies, |(index, body)| {
                    let row = evaluated.get(*index);
                    let Some((row, queue)) = row.and_then(|row| Some((row, row.queue.as_ref()?)))
                    else {
                        return Ok(false);
                    };
                    let facts = JobFacts {
                        body: body_of(queue.key.protocol, body),
                        ..facts_of(&row.job, queue, row.is_tracked, now)
                    };
                    of.matches_with_payload(&facts, now.0, work)
                })
            });
            let results = results.await?;
            for (position, (index, _)) in batch.iter().enumerate() {
                match (results.value.get(position), matching.get_mut(*index)) {
                    (Some(is_match), Some(slot)) => {
                        *slot = *is_match;
                        found += usize::from(*is_match);
                    }
                    _ => {
                        matching.truncate(*index);
                        return Ok(());
                    }
                }
            }
            open = rest;
        }
        Ok(())
    }

    /// The payloads of these jobs, which had `bytes` bytes, in their order; empty for jobs that no longer exist.
    async fn bodies(&self, rows: &[(usize, &ScannedJob)], bytes: usize) -> Result<Vec<String>> {
        let set: Vec<_> = rows.iter().map(|(_, row)| (row.job.seq,)).collect();
        let mut found = HashMap::new();
        for row in self
            .readers()
            .rows(Statement::of_rows(BODIES, &set).measured(bytes))
            .await?
        {
            found.insert(row.int(0)?, row.text(1)?);
        }
        let body = |(_, row): &(usize, &ScannedJob)| found.remove(&row.job.seq).unwrap_or_default();
        Ok(rows.iter().map(body).collect())
    }
}

/// Matches the items in order until the budget is spent.
pub fn each<T, R>(
    items: &[T],
    mut matches_item: impl FnMut(&T) -> Result<R, BudgetExceeded>,
) -> Evaluated<Vec<R>> {
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        match matches_item(item) {
            Ok(is_match) => results.push(is_match),
            Err(exceeded) => {
                return Evaluated {
                    value: results,
                    exceeded: Some(exceeded),
                };
            }
        }
    }
    Evaluated {
        value: results,
        exceeded: None,
    }
}

/// The payload of a job as a search reads it.
pub fn body_of(protocol: Protocol, body: &str) -> Body<'_> {
    match protocol {
        Protocol::Lmstfy => Body::Base64(body),
        Protocol::Qless | Protocol::Relay | Protocol::Jobq => Body::Json(body),
    }
}

/// The properties of a job that a search checks.
pub fn facts_of<'a>(job: &'a Job, queue: &'a Queue, is_tracked: bool, now: Time) -> JobFacts<'a> {
    let is_record = job.state == State::Record;
    JobFacts {
        id: &job.key.id,
        state: job.listed_state(now).as_str(),
        api: queue.key.protocol.as_str(),
        namespace: &queue.key.namespace,
        queue: &queue.key.name,
        class: job.klass.as_deref(),
        tags: &job.tags,
        is_tracked,
        worker: job.lease.as_ref().map(|lease| lease.worker.as_str()),
        failure: (job.failure.as_ref())
            .map(|failure| (failure.group.as_str(), failure.message.as_str())),
        priority: (!is_record).then_some(job.priority),
        retries_left: (!is_record).then_some(job.remaining.max(0)),
        created: job.created_at.0,
        updated: match job.updated_at {
            Some(updated) if is_record => updated.0,
            _ => job.state_since(now).0,
        },
        body: body_of(queue.key.protocol, &job.body),
    }
}
