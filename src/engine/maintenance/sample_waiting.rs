//! Records how many jobs are waiting in each queue, once a minute, for the charts of the statistics. The counts are
//! read without the writer, and one statement adds them to the time series.

use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::fold_series::DELETED_QUEUES;
use crate::engine::model::job::QueueId;
use crate::engine::unit_of_work::time_series::{SAMPLES, WAITING, minute};
use crate::store::{Statement, StoreError};

/// Queues whose waiting jobs are recorded: those with the most. The jobs of the others are recorded together, with
/// those of deleted queues.
pub const SAMPLED_QUEUES_MAX: usize = 1_000;

impl Engine {
    /// Records the numbers of waiting jobs, unless this minute has a sample. Only the leader calls it.
    pub(in crate::engine) async fn sample_waiting(&self) -> Result<()> {
        let minute = minute(self.now(None));
        if self.0.sampled_minute.swap(minute, Ordering::Relaxed) == minute {
            return Ok(());
        }
        let rows = self.readers().rows(Statement::new(COUNTS, [])).await?;
        let counts = rows.iter().map(|row| Ok((row.int(0)?, row.int(1)?)));
        let counts = counts.collect::<Result<Vec<(QueueId, i64)>, StoreError>>()?;
        let sample = Statement::of_rows(ADD_SAMPLE, &sample(&counts)).with(minute);
        self.run_system_task(SystemTask::Run(sample)).await?;
        Ok(())
    }
}

/// The rows of a sample: queue, slot and number. `counts` has the largest numbers first.
fn sample(counts: &[(QueueId, i64)]) -> Vec<(QueueId, i64, i64)> {
    let (largest, others) = counts.split_at(counts.len().min(SAMPLED_QUEUES_MAX));
    let row = |(queue, n): &(QueueId, i64)| (*queue, WAITING, *n);
    let mut rows: Vec<_> = largest.iter().map(row).collect();
    let others: i64 = others.iter().map(|(_, n)| n).sum();
    if others > 0 {
        rows.push((DELETED_QUEUES, WAITING, others));
    }
    rows.push((DELETED_QUEUES, SAMPLES, 1));
    // All statements that write counters use this order, so that servers do not deadlock.
    rows.sort_unstable();
    rows
}

const COUNTS: &str = "
SELECT t.queue, CAST(sum(t.n) AS BIGINT) FROM tallies AS t WHERE t.kind = {kind_state} AND t.slot = {waiting}
GROUP BY t.queue HAVING sum(t.n) > 0 ORDER BY 2 DESC, 1";

// After a restart, or if another server was the leader, the minute can have a sample. A queue can have been deleted. A
// database without queues stays empty, so that `switchyard copy` accepts it as a target.
const ADD_SAMPLE: &str = "
INSERT INTO tallies (kind, queue, day, slot, server, n)
SELECT {kind_minute}, k.int(0), $2, k.int(1), 0, k.int(2) FROM rows($1) AS k
WHERE (k.int(0) = 0 AND EXISTS (SELECT 1 FROM queues) OR EXISTS (SELECT 1 FROM queues AS q WHERE q.id = k.int(0)))
    AND NOT EXISTS (
    SELECT 1 FROM tallies AS t
    WHERE t.kind = {kind_minute} AND t.queue = 0 AND t.day = $2 AND t.slot = {series_samples})
ON CONFLICT (kind, queue, day, slot, server) DO UPDATE SET n = tallies.n + excluded.n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_a_limited_number_of_queues_and_all_jobs() {
        assert_eq!(sample(&[]), [(DELETED_QUEUES, SAMPLES, 1)]);
        let counts: Vec<(QueueId, i64)> = (1..=1_500).map(|n| (n, 2_000 - n)).collect();
        let rows = sample(&counts);
        assert_eq!(rows.len(), SAMPLED_QUEUES_MAX + 2);
        let all: i64 = counts.iter().map(|(_, n)| n).sum();
        let sampled = rows.iter().filter(|(_, slot, _)| *slot == WAITING);
        assert_eq!(sampled.map(|(.., n)| n).sum::<i64>(), all);
    }
}
