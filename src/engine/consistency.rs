//! The consistency check: compares derived data with its source on one snapshot while the server runs, and repairs
//! differences.
//!
//! Most kinds of problems have two statements, in `consistency/kinds.rs`. Texts that cannot be parsed are found by
//! `consistency/texts.rs`. The repair runs in transactions of a bounded number of problems.

mod kinds;
mod texts;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::engine::cache::refresh::INVALIDATE_ALL;
use crate::engine::clock::Time;
use crate::engine::consistency::kinds::{CHANGING_JOBS, COUNTERS, KINDS, Kind, READING_TAGS};
use crate::engine::error::{Error, Result};
use crate::engine::maintenance::SystemTask;
use crate::engine::model::damage;
use crate::store::{Connection, Statement, StoreError};

pub use kinds::REPAIR_SERVER;

/// Rounds of repair: repairing a job may change other rows that belong to it, and its counters.
const ROUNDS_MAX: usize = 6;

/// Problems that one transaction repairs.
const REPAIRS_PER_TRANSACTION: usize = 250;

/// The permit to run a check. Checks run one at a time, because each reads the whole database.
#[derive(Debug)]
pub struct CheckPermit(Arc<Semaphore>);

impl Default for CheckPermit {
    fn default() -> Self {
        CheckPermit(Arc::new(Semaphore::new(1)))
    }
}

/// Time limit for the statements of a check.
const CHECK_TIME_MAX: Duration = Duration::from_secs(60);

/// The same on a database that no server uses, such as a backup. It ends.
const OFFLINE_CHECK_TIME_MAX: Duration = Duration::from_hours(24);

/// How long a check waits for another one to end.
const CHECK_WAIT_MAX: Duration = Duration::from_secs(2);

/// A difference between derived data and its source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inconsistency {
    /// The name of one of [`KINDS`] or [`texts::REPAIRS`].
    pub kind: &'static str,
    /// What is wrong, as a sentence.
    pub message: String,
    /// The keys of the affected rows, as the text of a JSON array.
    concerns: String,
}

/// Parameters of the check's statements.
#[derive(Clone, Copy, Debug)]
pub struct CheckParameters {
    /// `$1` of `find`, `$2` of `repair`.
    pub now: Time,
    /// The last UTC day whose histograms may have been deleted; `$2` of `find`, `$3` of `repair`.
    pub pruned: i64,
    /// Whether requests carry the client's time, which may run backwards; `$3` of `find`, `$4` of `repair`.
    pub trust_client_clock: bool,
}

impl CheckParameters {
    fn args(self) -> [crate::store::Arg; 3] {
        [
            self.now.0.into(),
            self.pruned.into(),
            i64::from(self.trust_client_clock).into(),
        ]
    }
}

impl Engine {
    /// All inconsistencies, up to 1,000 of each kind.
    ///
    /// # Errors
    /// [`Error::Busy`] if another check is running.
    pub async fn check(&self, now: Option<Time>) -> Result<Vec<Inconsistency>> {
        self.check_within(CHECK_TIME_MAX, now).await
    }

    /// Like [`Engine::check`], on a database that no server uses: for as long as it takes.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn check_offline(&self) -> Result<Vec<Inconsistency>> {
        self.check_within(OFFLINE_CHECK_TIME_MAX, None).await
    }

    async fn check_within(&self, time: Duration, now: Option<Time>) -> Result<Vec<Inconsistency>> {
        let permit = Arc::clone(&self.0.long_reads.check_permit.0).acquire_owned();
        let permit = timeout(CHECK_WAIT_MAX, permit).await;
        let permit = permit.map_err(|_| Error::Busy)?;
        let engine = self.clone();
        // A task, because a client that disconnects does not end the statements: the next check waits until they end.
        // Otherwise abandoned checks would occupy all connections for long reads.
        let checking = tokio::spawn(async move {
            let found = engine.find_inconsistencies(time, now).await;
            drop(permit);
            found
        });
        checking.await.map_err(|_| Error::Unavailable)?
    }

    async fn find_inconsistencies(
        &self,
        time: Duration,
        now: Option<Time>,
    ) -> Result<Vec<Inconsistency>> {
        self.refresh_cache().await?;
        self.store_deferred().await;
        let parameters = self.check_parameters(now);
        let texts = self.damaged_texts().await?;
        let damaged = serde_json::to_string(&texts.tags).unwrap_or_default();
        let find = |kind: &&Kind| Statement::new(kind.find, parameters.args()).with(&*damaged);
        // These statements fail if they parse damaged tags, and a list that is cut does not exclude all of them.
        let kinds: Vec<&Kind> = KINDS
            .iter()
            .filter(|kind| !(texts.is_cut && READING_TAGS.contains(&kind.name)))
            .collect();
        let statements = kinds.iter().map(find).collect();
        let answers = self.readers().read_within(time, statements);
        let answers = answers.await?;
        let mut problems = texts.problems;
        for (kind, answer) in kinds.into_iter().zip(answers) {
            for row in answer.rows {
                problems.push(Inconsistency {
                    kind: kind.name,
                    concerns: row.text(0)?,
                    message: row.text(1)?,
                });
            }
        }
        Ok(problems)
    }

    /// Checks and repairs. Returns all inconsistencies found, and how many of them are resolved.
    pub async fn repair(&self, now: Option<Time>) -> Result<(Vec<Inconsistency>, usize)> {
        let (mut found, mut known) = (Vec::new(), HashSet::new());
        let mut left = self.check(now).await?;
        for _ in 0..ROUNDS_MAX {
            // Not the message: it has numbers that change while the server works.
            let key = |problem: &Inconsistency| (problem.kind, problem.concerns.clone());
            let new = left.iter().filter(|problem| known.insert(key(problem)));
            found.extend(new.cloned().collect::<Vec<_>>());
            if left.is_empty() {
                break;
            }
            for part in first_to_repair(left).chunks(REPAIRS_PER_TRANSACTION) {
                let repair = SystemTask::Repair(self.check_parameters(now), part.into());
                self.run_system_task(repair).await?;
            }
            left = self.check(now).await?;
        }
        damage::forget();
        let resolved = found.len().saturating_sub(left.len());
        Ok((found, resolved))
    }

    fn check_parameters(&self, now: Option<Time>) -> CheckParameters {
        let now = self.now(now);
        let days =
            i64::try_from(self.config().whole_number("histogram-history")).unwrap_or(i64::MAX);
        CheckParameters {
            now,
            pruned: now.day().saturating_sub(days),
            trust_client_clock: self.trusts_client_clock(),
        }
    }
}

/// The problems that are repaired before the next check: the counters only when all else is repaired, because those
/// repairs change what must be counted.
fn first_to_repair(problems: Vec<Inconsistency>) -> Vec<Inconsistency> {
    let (counters, others): (Vec<_>, Vec<_>) = problems.into_iter().partition(is_counter);
    match others.is_empty() {
        true => counters,
        false => others,
    }
}

/// Repairs those of the problems that still exist.
pub async fn repair(
    connection: &mut Connection,
    parameters: CheckParameters,
    problems: &[Inconsistency],
) -> Result<(), StoreError> {
    let revise = || INVALIDATE_ALL.map(|sql| Statement::new(sql, [])).into();
    // Locks a row, so that two servers repair counters one after the other, and the second sees what the first did.
    let are_counters = problems.iter().any(is_counter);
    if are_counters {
        connection.run(revise()).await?;
    }
    // Locks the jobs first, so that the repairs see all changes by other servers, and no more follow.
    let of_jobs = problems.iter();
    let of_jobs = of_jobs.filter(|problem| CHANGING_JOBS.contains(&problem.kind));
    let of_jobs: Vec<_> = of_jobs.map(|problem| problem.concerns.as_str()).collect();
    if !of_jobs.is_empty() {
        let set = format!("[{}]", of_jobs.join(","));
        connection
            .run(vec![Statement::new(LOCK_JOBS, [set.into()])])
            .await?;
    }
    for (name, repair) in repairs() {
        let of_kind = problems.iter().filter(|problem| problem.kind == name);
        let concerns: Vec<_> = of_kind.map(|problem| problem.concerns.as_str()).collect();
        if concerns.is_empty() {
            continue;
        }
        let set = format!("[{}]", concerns.join(","));
        let [now, pruned, clients] = parameters.args();
        let statement = Statement::new(repair, [set.into(), now, pruned, clients]);
        connection.run(vec![statement]).await?;
    }
    // Last, because others lock jobs before this row.
    if !are_counters {
        connection.run(revise()).await?;
    }
    Ok(())
}

/// Whether repairs of these problems change queues, which the cache holds.
pub fn change_queues(problems: &[Inconsistency]) -> bool {
    let is_of_queue = |problem: &Inconsistency| ["queue", "number"].contains(&problem.kind);
    problems.iter().any(is_of_queue)
}

/// The statements of repair by kind, in their order.
fn repairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_kinds = KINDS.iter().map(|kind| (kind.name, kind.repair));
    texts::REPAIRS.into_iter().chain(of_kinds)
}

fn is_counter(problem: &Inconsistency) -> bool {
    COUNTERS.contains(&problem.kind)
}

const LOCK_JOBS: &str =
    "SELECT seq FROM jobs WHERE seq IN (SELECT k.int(0) FROM rows($1) AS k) ORDER BY seq {locked}";

#[cfg(test)]
mod tests;
