//! Decides which completed jobs release their dependents in the same transaction.
//!
//! A change of a job writes its whole row, with a history of up to 1 MiB, and a job can have 2,000 dependents. If those
//! of a transaction are larger than 4 MiB together, it is split. If those of a single job are, the dependencies on it
//! become satisfied ones (`model/dependency_rows.rs`), without a change of the dependents, and
//! `maintenance/releases.rs` releases these in later transactions. The completion of such a job shares its transaction
//! with nothing else, so no other verb has loaded a dependent.

use std::collections::{HashMap, HashSet};

use crate::engine::BYTES_PER_WEIGHT;
use crate::engine::model::job::JobKey;
use crate::engine::model::neighbor_rows;
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::unit_of_work::transaction::{WriteRequest, too_large};
use crate::store::{Connection, Statement, StatementResult, StoreError, WEIGHT_MAX};

/// Bytes of the rows of dependents that a transaction releases.
pub const RELEASED_BYTES_MAX: usize = 4 << 20;

/// The size in bytes that no row of a job exceeds: its history has up to 1 MiB, all its other texts less.
const ROW_BYTES_MAX: usize = 2 << 20;

/// Completed jobs whose dependents are released in later transactions.
pub struct Releases {
    /// Bytes of the rows of dependents that this transaction may release.
    pub bytes_max: usize,
    /// Jobs whose dependents are too large.
    later: HashSet<i64>,
    /// Those of these jobs that verbs have completed.
    completed_later: Vec<(i64,)>,
}

impl Releases {
    pub fn new(bytes_max: Option<usize>) -> Releases {
        Releases {
            bytes_max: bytes_max.unwrap_or(RELEASED_BYTES_MAX),
            later: HashSet::new(),
            completed_later: Vec::new(),
        }
    }

    /// Whether the dependents of this job are released later if the job is completed.
    pub fn is_released_later(&self, seq: i64) -> bool {
        !self.later.is_empty() && self.later.contains(&seq)
    }

    /// Notes that the dependents of this job are to be released later.
    pub fn release_later(&mut self, seq: i64) {
        self.completed_later.push((seq,));
    }

    /// The jobs whose dependents are to be released later.
    pub fn take_completed_later(&mut self) -> Vec<(i64,)> {
        std::mem::take(&mut self.completed_later)
    }
}

impl UnitOfWork {
    /// The number of this job, if its dependents are released later.
    pub fn number_if_released_later(&self, key: &JobKey) -> Option<i64> {
        let seq = self.job(key)?.seq;
        self.releases.is_released_later(seq).then_some(seq)
    }

    /// Decides by these sizes which dependents are released later: the smallest are released in this transaction.
    fn take_dependents_bytes(&mut self, sizes: &HashMap<i64, usize>) {
        let mut sizes: Vec<_> = sizes.iter().map(|(seq, bytes)| (*bytes, *seq)).collect();
        sizes.sort_unstable();
        let mut all = 0;
        for (bytes, seq) in sizes {
            all += bytes;
            if all > self.releases.bytes_max {
                self.releases.later.insert(seq);
            }
        }
    }

    /// The weight of the dependents that the request's completions release. Requests that fit run in one group, and each
    /// of the others alone.
    fn weight_of_releases(&self, sizes: &HashMap<i64, usize>, request: &WriteRequest) -> usize {
        let completed = self.completed_with_dependents(std::iter::once(&request.needs));
        let sizes = completed.iter().filter_map(|job| sizes.get(&job.seq));
        match sizes.sum::<usize>() {
            bytes if bytes > self.releases.bytes_max => WEIGHT_MAX,
            bytes => bytes / BYTES_PER_WEIGHT,
        }
    }
}

/// The sizes by job from the result of [`neighbor_rows::DEPENDENTS_BYTES`].
fn sizes_of(answers: &[StatementResult]) -> Result<HashMap<i64, usize>, StoreError> {
    let rows = answers.iter().flat_map(|answer| &answer.rows);
    let sizes = rows.map(|row| {
        let bytes = usize::try_from(row.int(1)?).unwrap_or(usize::MAX);
        Ok((row.int(0)?, bytes))
    });
    sizes.collect()
}

/// Loads the dependents of the jobs that the verbs complete, unless they are too large to be released in this
/// transaction. `divisible`: what the requests do can be split over several transactions.
///
/// # Errors
/// [`StoreError::TransactionTooLarge`], if the dependents are too large and the transaction is divisible.
pub async fn load_dependents(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    requests: &mut [WriteRequest],
    divisible: bool,
) -> Result<(), StoreError> {
    let needs = requests.iter().map(|request| &request.needs);
    let jobs = work.completed_with_dependents(needs);
    let dependents: usize = jobs.iter().map(|job| job.dependents.len()).sum();
    let completed: Vec<_> = jobs.into_iter().map(|job| (job.seq,)).collect();
    if dependents * ROW_BYTES_MAX > work.releases.bytes_max {
        let bytes = Statement::of_rows(neighbor_rows::DEPENDENTS_BYTES, &completed);
        let sizes = sizes_of(&connection.read(vec![bytes]).await?)?;
        if divisible && sizes.values().sum::<usize>() > work.releases.bytes_max {
            let weight = |request: &WriteRequest| work.weight_of_releases(&sizes, request);
            return Err(too_large(requests, weight));
        }
        work.take_dependents_bytes(&sizes);
    }
    if let Some(dependents) = work.dependents_statement(completed) {
        let answers = connection.read(vec![dependents]).await?;
        work.take_dependents_loaded(&answers)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
