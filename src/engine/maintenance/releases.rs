//! Releases the dependents of completed jobs that were too large for the transaction of the completion
//! (`unit_of_work/releases.rs`).
//!
//! A satisfied dependency only delays the release: reads of a job's dependencies skip satisfied rows. So in between,
//! any other verb may release, change or delete the dependent, and the completed job may be put again or deleted. The
//! transaction that removes the satisfied dependency releases the dependent if it still waits and has no dependencies.

use std::time::Duration;

use tokio::time::timeout;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::maintenance::SystemTask;
use crate::engine::model::{dependency_rows, job_columns, neighbor_rows};
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::verbs::qless::depend::release_if_ready;
use crate::store::{Connection, Statement, StoreError};

/// Dependents per transaction.
const BATCH: i64 = 500;

/// Transactions and time that a completion waits for. After that, maintenance releases the other dependents, because the
/// client might not wait for them.
const AWAITED_MAX: usize = 100;
const AWAITED_TIME_MAX: Duration = Duration::from_secs(3);

impl Engine {
    /// Releases the dependents of the completed jobs with these numbers. If this fails or the client disconnects,
    /// maintenance continues.
    pub(in crate::engine) async fn release_dependents(&self, of: Vec<i64>, now: Option<Time>) {
        if of.is_empty() {
            return;
        }
        // The actor, if any, has changed only the completed job.
        let engine = Engine(self.0.clone(), None, self.2);
        let releasing = async {
            let mut left = AWAITED_MAX;
            for seq in of {
                let mut is_done = false;
                while !is_done {
                    if left == 0 {
                        return;
                    }
                    left -= 1;
                    let release = SystemTask::ReleaseDependents(seq);
                    // The writer has logged an error.
                    let Ok(done) = engine.submit_system_task(release, now).await else {
                        return;
                    };
                    is_done = done.affected_rows == 0;
                }
            }
        };
        timeout(AWAITED_TIME_MAX, releasing).await.ok();
    }
}

/// Releases a bounded batch of dependents: of the completed job with the number `of`, or of any.
pub async fn release(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    of: Option<i64>,
) -> Result<(), StoreError> {
    let needs = of.map_or(0, |seq| -seq);
    let find = Statement::new(FIND_SATISFIED, [needs.into(), BATCH.into()]);
    let answers = connection.run(vec![find]).await?;
    let (mut satisfied, mut jobs) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for row in answers.iter().flat_map(|answer| &answer.rows) {
        let (job, needs, is_ready, size) = (row.int(0)?, row.int(1)?, row.int(2)?, row.int(3)?);
        if is_ready == 1 {
            bytes += size;
            if bytes > work.releases.bytes_max as i64 && !satisfied.is_empty() {
                break;
            }
        }
        satisfied.push((job, needs));
        // With several servers, the version of a job that stays is written too: another server may be about to remove
        // its last dependency, and must then not overlook that this one is gone.
        if is_ready == 1 || work.revision.is_some() {
            jobs.push((job,));
        }
    }
    if satisfied.is_empty() {
        return Ok(());
    }
    let mut writes = Vec::new();
    if !jobs.is_empty() {
        let load = Statement::of_rows(neighbor_rows::LOAD_DEPENDING, &jobs);
        let answers = connection.run(vec![load]).await?;
        for key in work.add_depending(&answers)? {
            work.job_mut(&key);
            release_if_ready(work, &key);
        }
        writes = work.job_writes();
    }
    writes.push(dependency_rows::remove_dependencies(&satisfied));
    connection.run(writes).await?;
    work.affected_rows += satisfied.len();
    Ok(())
}

/// Satisfied dependencies with `needs` = `$1`, or if that is 0, those on one job: whether the dependent is to be
/// released, and then the size of its row. The dependent may no longer exist.
const FIND_SATISFIED: &str = concat!(
    "SELECT d.job, d.needs, CAST(CASE WHEN j.state = {depends} AND NOT EXISTS (
            SELECT 1 FROM dependencies AS o WHERE o.job = d.job AND o.needs > 0) THEN 1 ELSE 0 END AS BIGINT), CAST(coalesce(",
    job_columns::job_bytes!(row),
    ", 0) AS BIGINT) FROM (SELECT job, needs FROM dependencies
        WHERE needs < 0 AND needs = CASE WHEN $1 < 0 THEN $1 ELSE (SELECT max(needs) FROM dependencies WHERE needs < 0) END
        ORDER BY job LIMIT $2 + 0) AS d
    LEFT JOIN jobs AS j ON j.seq = d.job ORDER BY d.job"
);
