//! Matches scanned jobs against a search. Payloads are read only for jobs that match otherwise, and no more of them at
//! once than fit into a batch.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::budget::{Budget, BudgetExceeded};
use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{Job, Protocol, State};
use crate::engine::model::job_rows::BODIES;
use crate::engine::model::queue::Queue;
use crate::engine::queries::batch_size::BatchSizer;
use crate::engine::queries::evaluate::{Allowance, Evaluated};
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
    pub fn within(time: Duration) -> ScanBudget {
        ScanBudget {
            begun: Instant::now(),
            time,
            allowance: Allowance::new(WORK_MAX),
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
    pub(in crate::engine) async fn match_jobs(
        &self,
        search: &Search,
        rows: &Arc<Vec<ScannedJob>>,
        now: Time,
        wanted: usize,
        spending: &mut ScanBudget,
    ) -> Result<Vec<bool>> {
        let (evaluated, of) = (Arc::clone(rows), search.clone());
        let judged = spending.allowance.run(move |budget| {
            each(&evaluated, |row| match &row.queue {
                Some(queue) => is_meant_but_payload(&of, &row.job, queue, now, budget),
                None => Ok(false),
            })
        });
        let mut meant = judged.await.value;
        let messages = rows.iter().filter_map(|row| row.job.failure.as_ref());
        spending.bytes += messages.map(|it| it.message.len()).sum::<usize>();
        if search.needs_body() {
            self.match_payloads(search, rows, &mut meant, wanted, spending)
                .await?;
        }
        spending.rows += meant.len();
        Ok(meant)
    }

    /// Matches the payloads of the jobs that match otherwise. Truncates `meant` before the first job it does not get
    /// to.
    async fn match_payloads(
        &self,
        search: &Search,
        rows: &[ScannedJob],
        meant: &mut Vec<bool>,
        wanted: usize,
        spending: &mut ScanBudget,
    ) -> Result<()> {
        let all = rows.iter().zip(meant.iter()).enumerate();
        let open: Vec<(usize, &ScannedJob)> = all
            .filter(|(_, (_, may_be))| **may_be)
            .map(|(place, (row, _))| (place, row))
            .collect();
        let (mut open, mut found) = (open.as_slice(), 0);
        while let Some((first, _)) = open.first() {
            if found >= wanted || spending.is_over_after(*first) {
                meant.truncate(*first);
                break;
            }
            let sizes: Vec<i64> = open.iter().map(|(_, row)| row.bytes).collect();
            let (some, rest) = open.split_at(BatchSizer::fitting(&sizes).min(open.len()));
            let bodies = Arc::new(self.bodies(some).await?);
            spending.bytes += bodies.iter().map(|(_, body)| body.len()).sum::<usize>();
            let of = search.clone();
            let judged = spending.allowance.run(move |budget| {
                each(&bodies, |(protocol, body)| {
                    of.matches_payload(body_of(*protocol, body), budget)
                })
            });
            let judged = judged.await;
            for (index, (place, _)) in some.iter().enumerate() {
                match (judged.value.get(index), meant.get_mut(*place)) {
                    (Some(is_meant), Some(slot)) => {
                        *slot = *is_meant;
                        found += usize::from(*is_meant);
                    }
                    _ => {
                        meant.truncate(*place);
                        return Ok(());
                    }
                }
            }
            open = rest;
        }
        Ok(())
    }

    /// The payloads of these jobs, in their order; empty for jobs that no longer exist.
    async fn bodies(&self, rows: &[(usize, &ScannedJob)]) -> Result<Vec<(Protocol, String)>> {
        let set: Vec<_> = rows.iter().map(|(_, row)| (row.job.seq,)).collect();
        let mut found = HashMap::new();
        for row in self
            .readers()
            .rows(Statement::of_rows(BODIES, &set))
            .await?
        {
            found.insert(row.int(0)?, row.text(1)?);
        }
        let body = |(_, row): &(usize, &ScannedJob)| {
            let protocol = row.queue.as_ref().map(|queue| queue.key.protocol);
            let body = found.remove(&row.job.seq).unwrap_or_default();
            (protocol.unwrap_or(Protocol::Qless), body)
        };
        Ok(rows.iter().map(body).collect())
    }
}

/// Matches the items in order until the budget is spent.
fn each<T>(
    items: &[T],
    mut judge: impl FnMut(&T) -> Result<bool, BudgetExceeded>,
) -> Evaluated<Vec<bool>> {
    let mut judged = Vec::with_capacity(items.len());
    for item in items {
        match judge(item) {
            Ok(is_meant) => judged.push(is_meant),
            Err(spent) => {
                return Evaluated {
                    value: judged,
                    spent: Some(spent),
                };
            }
        }
    }
    Evaluated {
        value: judged,
        spent: None,
    }
}

fn body_of(protocol: Protocol, body: &str) -> Body<'_> {
    match protocol {
        Protocol::Lmstfy => Body::Base64(body),
        Protocol::Qless | Protocol::Relay | Protocol::Jobq => Body::Json(body),
    }
}

fn is_meant_but_payload(
    search: &Search,
    job: &Job,
    queue: &Queue,
    now: Time,
    work: &mut Budget,
) -> Result<bool, BudgetExceeded> {
    Ok(!job.is_expired(now)
        && search.matches_without_payload(&seen(job, queue, now), now.0, work)?)
}

/// Whether the job matches. A job whose time to live has ended does not.
pub fn is_meant(
    search: &Search,
    job: &Job,
    queue: &Queue,
    now: Time,
    work: &mut Budget,
) -> Result<bool, BudgetExceeded> {
    Ok(!job.is_expired(now) && search.matches(&seen(job, queue, now), now.0, work)?)
}

fn seen<'a>(job: &'a Job, queue: &'a Queue, now: Time) -> JobFacts<'a> {
    let is_record = job.state == State::Record;
    JobFacts {
        id: &job.key.id,
        state: job.effective_state(now).as_str(),
        api: queue.key.protocol.as_str(),
        namespace: &queue.key.namespace,
        queue: &queue.key.name,
        class: job.klass.as_deref(),
        tags: &job.tags,
        worker: job.lease.as_ref().map(|lease| lease.worker.as_str()),
        failure: (job.failure.as_ref())
            .map(|failure| (failure.group.as_str(), failure.message.as_str())),
        priority: (!is_record).then_some(job.priority),
        tries: (!is_record).then_some(job.remaining.max(0)),
        created: job.created_at.0,
        updated: match job.updated_at {
            Some(updated) if is_record => updated.0,
            _ => job.since.0,
        },
        body: body_of(queue.key.protocol, &job.body),
    }
}
