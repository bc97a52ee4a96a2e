//! A cache of running jobs: a completion need not read again what the claim has just written.
//!
//! On a shared database, another server may have changed a cached job. Every write checks the job's version, and the
//! versions of cached jobs that a transaction only reads are checked, too. If one has changed, the transaction is
//! repeated without the cache.

use std::collections::HashMap;

use crate::engine::model::body::LONG;
use crate::engine::model::job::{Job, JobKey};

/// Jobs in one of the two generations.
const JOBS_MAX: usize = 4_096;

/// Bytes of text in one of the two generations.
const BYTES_MAX: usize = 32 << 20;

/// Larger jobs are not cached.
const JOB_BYTES_MAX: usize = LONG;

/// Jobs with their versions, in two generations. When the young one is full it becomes the old one, and the previous
/// old one is discarded, so unused entries do not stay.
#[derive(Debug, Default)]
pub struct JobCache {
    young: HashMap<JobKey, (Job, i64)>,
    /// Bytes added to the young generation since it was last empty. Bytes taken out are not subtracted.
    bytes: usize,
    old: HashMap<JobKey, (Job, i64)>,
}

impl JobCache {
    /// Takes a job out. If it still runs after the transaction, it is inserted again.
    pub fn take(&mut self, key: &JobKey) -> Option<(Job, i64)> {
        let young = self.young.remove(key);
        let old = self.old.remove(key);
        young.or(old)
    }

    pub fn insert(&mut self, job: Job, version: i64) {
        let bytes = job.text_bytes();
        if bytes > JOB_BYTES_MAX {
            self.take(&job.key);
            return;
        }
        if self.young.len() >= JOBS_MAX || self.bytes + bytes > BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.young.insert(job.key.clone(), (job, version));
    }

    pub fn clear(&mut self) {
        *self = JobCache::default();
    }
}

/// Whether the job can be cached on a shared database. The version of a job does not show whether another server has
/// removed a dependency or a dependent of it.
pub fn can_share(job: &Job) -> bool {
    job.dependents.is_empty() && job.dependencies.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::clock::Time;
    use crate::engine::model::job::{QLESS_SCOPE, State};

    fn job(id: &str, work_state: usize) -> Job {
        let key = JobKey {
            scope: QLESS_SCOPE,
            id: id.to_owned(),
        };
        Job {
            seq: 1,
            queue: 1,
            state: State::Running,
            work_state: Some("x".repeat(work_state)),
            ..Job::new(key, Time(0))
        }
    }

    fn key(id: &str) -> JobKey {
        job(id, 0).key
    }

    #[test]
    fn the_work_state_counts_toward_the_cached_size() {
        let mut cache = JobCache::default();
        cache.insert(job("small", 100), 1);
        cache.insert(job("large", JOB_BYTES_MAX), 1);
        assert!(cache.take(&key("small")).is_some());
        assert!(cache.take(&key("large")).is_none());
    }

    /// A job whose texts have this total size in bytes.
    fn of_bytes(id: &str, all: usize) -> Job {
        let around = job(id, 0).text_bytes();
        let job = job(id, all - around);
        assert_eq!(job.text_bytes(), all);
        job
    }

    #[test]
    fn jobs_of_up_to_16_kib_are_cached() {
        let mut cache = JobCache::default();
        for (bytes, is_kept) in [(16_383, true), (16_384, true), (16_385, false)] {
            cache.insert(of_bytes("a", bytes), 1);
            assert_eq!(cache.take(&key("a")).is_some(), is_kept, "{bytes} bytes");
        }
    }

    #[test]
    fn a_generation_holds_4096_jobs() {
        let mut cache = JobCache::default();
        for n in 1..=3 * 4_096 {
            cache.insert(job(&n.to_string(), 0), 1);
            // A full generation becomes the old one when the next job is inserted.
            let old = (n - 1) / 4_096 * 4_096;
            assert_eq!(cache.young.len(), n - old, "{n} jobs");
            assert_eq!(cache.old.len(), old.min(4_096), "{n} jobs");
        }
    }

    #[test]
    fn a_generation_holds_32_mib() {
        let full = (32 << 20) / (16 << 10);
        for left in [1, 0] {
            let mut cache = JobCache::default();
            for n in 1..full {
                cache.insert(of_bytes(&n.to_string(), 16_384), 1);
            }
            cache.insert(of_bytes("last", 16_384 - left), 1);
            assert_eq!(
                (cache.young.len(), cache.old.len()),
                (full, 0),
                "{left} left"
            );
            // With one byte left, this job does not fit.
            cache.insert(of_bytes("", 2), 1);
            assert_eq!(
                (cache.young.len(), cache.old.len()),
                (1, full),
                "{left} left"
            );
        }
    }

    #[test]
    fn a_job_that_outgrows_the_cache_is_removed_from_it() {
        let mut cache = JobCache::default();
        cache.insert(job("grows", 1), 1);
        cache.insert(job("grows", JOB_BYTES_MAX), 2);
        assert!(cache.take(&key("grows")).is_none());
    }

    #[test]
    fn both_generations_together_hold_a_bounded_number_of_bytes() {
        let mut cache = JobCache::default();
        let each = JOB_BYTES_MAX - 100;
        let many = 3 * BYTES_MAX / each;
        (0..many).for_each(|n| cache.insert(job(&n.to_string(), each), 1));
        let kept = (0..many).filter(|n| cache.take(&key(&n.to_string())).is_some());
        let kept = kept.count();
        assert!(
            kept >= BYTES_MAX / each && kept * each <= 2 * BYTES_MAX,
            "{kept}"
        );
    }
}
