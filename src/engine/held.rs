//! Running jobs at hand: what a claim has just read and written need not be read again by the
//! completion that follows. The version in every write's guard says if somebody else was there
//! meanwhile; then the group is run again, and reads.

use std::collections::HashMap;

use super::job::{Job, JobKey};

/// Jobs in one of the two halves.
const JOBS_MAX: usize = 4_096;

/// Larger bodies are read again.
const BODY_BYTES_MAX: usize = 4_096;

/// Jobs with their versions. When the young half is full the old one is forgotten, so what nobody asks
/// for again does not stay.
#[derive(Debug, Default)]
pub struct Held {
    young: HashMap<JobKey, (Job, i64)>,
    old: HashMap<JobKey, (Job, i64)>,
}

impl Held {
    /// Takes a job out; whoever changes it brings it back as it then is.
    pub fn take(&mut self, key: &JobKey) -> Option<(Job, i64)> {
        let young = self.young.remove(key);
        let old = self.old.remove(key);
        young.or(old)
    }

    pub fn keep(&mut self, job: Job, version: i64) {
        if job.body.len() > BODY_BYTES_MAX {
            return;
        }
        if self.young.len() >= JOBS_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(job.key.clone(), (job, version));
    }

    pub fn clear(&mut self) {
        *self = Held::default();
    }
}
