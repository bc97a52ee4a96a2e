//! Matches the payloads of a batch before its transaction: they can be long, and other writes would wait. The
//! transaction uses a result only if the job still has the version that was read.

use std::collections::HashMap;

use crate::budget::BudgetExceeded;
use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::model::job::Protocol;
use crate::engine::model::long_bodies::body;
use crate::engine::operations::lookahead::FoundJob;
use crate::engine::queries::batch_size::BatchSizer;
use crate::engine::queries::evaluate::Allowance;
use crate::engine::queries::search::matching::{body_of, each};
use crate::memory::reserve_with_copy;
use crate::search::Search;
use crate::store::Statement;

/// The work, in steps and bytes, for the payloads of a batch.
const WORK_MAX: u64 = 1_000_000_000;

/// Payloads with the versions of their jobs, by `seq`.
const PAYLOADS: &str = concat!(
    "SELECT j.seq, j.version, ",
    body!(),
    " FROM rows($1) AS k CROSS JOIN jobs AS j WHERE j.seq = k.int(0)"
);

/// Which conditions on the payload of each job hold.
#[derive(Debug, Default)]
pub struct PayloadResults(HashMap<i64, PayloadResult>);

#[derive(Debug)]
struct PayloadResult {
    /// The version of the job.
    version: i64,
    results: Result<Vec<bool>, BudgetExceeded>,
}

impl PayloadResults {
    /// The results for this version of a job.
    pub fn get(
        &self,
        seq: i64,
        version: Option<i64>,
    ) -> Option<&Result<Vec<bool>, BudgetExceeded>> {
        let known = self.0.get(&seq)?;
        (Some(known.version) == version).then_some(&known.results)
    }
}

impl Engine {
    /// Reads the payloads of these jobs, a part at a time, and matches them, until the work of a batch is used up. The
    /// jobs after that, and jobs that no longer exist, have no results.
    pub(in crate::engine) async fn match_payloads_of(
        &self,
        search: &Search,
        targets: &[FoundJob],
    ) -> Result<PayloadResults> {
        let mut found = PayloadResults::default();
        let mut allowance = Allowance::new(WORK_MAX);
        let mut rest = targets;
        while !rest.is_empty() {
            let sizes: Vec<i64> = rest.iter().map(|target| target.bytes).collect();
            let (fitting, bytes) = BatchSizer::fitting_bytes(&sizes);
            let (part, others) = rest.split_at(fitting);
            let _reserved = reserve_with_copy(bytes).await?;
            let jobs = self.payloads(part, bytes).await?;
            let versions: Vec<_> = jobs.iter().map(|job| (job.seq, job.version)).collect();
            let of = search.clone();
            let matched = allowance.run(move |work| {
                each(&jobs, |job| {
                    of.payload_results(body_of(job.protocol, &job.body), work)
                })
            });
            let matched = matched.await?;
            let first_exceeds = (matched.exceeded)
                .filter(|_| found.0.is_empty() && matched.value.is_empty())
                .map(Err);
            let results = matched.value.into_iter().map(Ok).chain(first_exceeds);
            for ((seq, version), results) in versions.into_iter().zip(results) {
                found.0.insert(seq, PayloadResult { version, results });
            }
            if matched.exceeded.is_some() {
                break;
            }
            rest = others;
        }
        Ok(found)
    }

    /// The payloads of these jobs, in their order. The jobs had `bytes` bytes when they were found.
    async fn payloads(&self, targets: &[FoundJob], bytes: usize) -> Result<Vec<Payload>> {
        let set: Vec<_> = targets.iter().map(|target| (target.seq,)).collect();
        let mut found = HashMap::new();
        for row in (self.readers())
            .rows(Statement::of_rows(PAYLOADS, &set).measured(bytes))
            .await?
        {
            found.insert(row.int(0)?, (row.int(1)?, row.text(2)?));
        }
        let payload = |target: &FoundJob| {
            let (_, queue) = target.key_and_queue.as_ref()?;
            let (version, body) = found.remove(&target.seq)?;
            Some(Payload {
                seq: target.seq,
                version,
                protocol: queue.protocol,
                body,
            })
        };
        Ok(targets.iter().filter_map(payload).collect())
    }
}

struct Payload {
    seq: i64,
    version: i64,
    protocol: Protocol,
    body: String,
}

#[cfg(test)]
mod tests;
