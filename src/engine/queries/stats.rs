//! Statistics of one queue on one day, from the table `tallies`.

use crate::engine::error::Result;
use crate::engine::model::job::QueueKey;
use crate::engine::unit_of_work::counters::{DAILY_BUCKETS, Kind, Outcome, SUMMARY_SLOT, Summary};
use crate::engine::{Engine, Time};
use crate::store::Statement;

/// Durations, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Durations {
    pub summary: Summary,
    /// The [`DAILY_BUCKETS`] buckets: 60 seconds, 59 minutes (from 1), 23 hours (from 1), 6 days (from 1; the last one
    /// holds everything longer).
    pub histogram: Vec<i64>,
}

impl Default for Durations {
    fn default() -> Self {
        Durations {
            summary: Summary::default(),
            histogram: vec![0; DAILY_BUCKETS],
        }
    }
}

/// The statistics of one queue on one UTC day.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// From put, retry or the previous claim (qless) or from availability (lmstfy, Relay) to claim, on the day of the
    /// claim.
    pub wait: Durations,
    /// From claim to completion, on the day of the completion.
    pub run: Durations,
    /// Failures.
    pub failures: i64,
    /// Failures of jobs that are still failed.
    pub failed: i64,
    /// Expired leases, whether the job was claimed again or ended.
    pub retries: i64,
}

impl Engine {
    /// The statistics of the UTC day that contains `day`; all zeros if the queue does not exist.
    pub async fn stats(&self, queue: &QueueKey, day: Time) -> Result<Stats> {
        self.refresh_cache().await?;
        self.store_deferred().await;
        let mut stats = Stats::default();
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(stats);
        };
        let statement = Statement::new(OF_DAY, [queue.id.into(), day.day().into()]);
        for row in self.readers().rows(statement).await? {
            let (kind, slot, n) = (row.int(0)?, row.int(1)?, row.int(2)?);
            let durations = match Kind::from_code(kind) {
                Some(Kind::Wait) => &mut stats.wait,
                Some(Kind::Run) => &mut stats.run,
                Some(Kind::Outcome) => {
                    match Outcome::from_slot(slot) {
                        Some(Outcome::Failures) => stats.failures += n,
                        Some(Outcome::StillFailed) => stats.failed += n,
                        Some(Outcome::ExpiredLeases) => stats.retries += n,
                        None => {}
                    }
                    continue;
                }
                Some(Kind::State | Kind::Minute | Kind::Hour) | None => continue,
            };
            if slot == SUMMARY_SLOT {
                durations.summary.merge(Summary {
                    n,
                    mean: row.real(3)?,
                    m2: row.real(4)?,
                });
            } else if let Some(count) = usize::try_from(slot)
                .ok()
                .and_then(|slot| durations.histogram.get_mut(slot))
            {
                *count += n;
            }
        }
        Ok(stats)
    }
}

const OF_DAY: &str = "
SELECT kind, slot, n, mean, m2 FROM tallies WHERE kind IN ({kind_wait}, {kind_run}, {kind_outcome}) AND queue = $1 AND day = $2";
