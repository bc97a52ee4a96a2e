//! Long parts of jobs: bodies, histories, tags and work states over 16 KiB, and over 100 dependencies or dependents.
//! Jobs are loaded without them at first, so that a transaction knows their size before it reads them. Bodies are read
//! only for verbs that return them, dependencies only for verbs that change them.
//!
//! The limit of a transaction also counts the short texts, which are already loaded, and the long bodies that it
//! deletes.

use std::collections::HashMap;

use crate::engine::model::history::History;
use crate::engine::model::job::{Job, JobKey, QueueId};
use crate::engine::model::job_rows::Omitted;
use crate::engine::model::{job_rows, long_bodies};
use crate::engine::unit_of_work::candidates::Candidates;
use crate::engine::unit_of_work::{Extent, LoadedJob, NEW, Needs, UnitOfWork, WantedJobs};
use crate::store::{Statement, StatementResult, StoreError};

/// Bytes of jobs that a transaction loads or deletes if it can be split.
pub const LONG_PARTS_MAX: usize = 16 * 1024 * 1024;

/// Bytes of jobs that a transaction leases, not counting the last one: it rewrites their rows.
const CLAIMED_MAX: usize = 4 * 1024 * 1024;

/// The assumed size of long lists of dependencies and dependents. Reading 4,000 IDs takes as long as reading 1 MiB.
const EDGES_BYTES: usize = 1 << 20;

/// The long parts to read, by the `seq` of their jobs.
#[derive(Debug, Default)]
pub struct LongParts {
    bodies: Vec<(i64,)>,
    texts: Vec<(i64,)>,
    edges: Vec<(i64,)>,
    /// Jobs whose dependents are only counted.
    counts: Vec<(i64,)>,
    /// Their size, approximately, and that of the texts that the jobs were loaded with.
    pub bytes: usize,
}

/// Which parts of a job verbs need.
#[derive(Clone, Copy, Debug, Default)]
struct WantedParts {
    body: bool,
    texts: bool,
    edges: bool,
    /// The number of dependents.
    count: bool,
    /// The body is deleted, not read.
    deletes_body: bool,
    /// The number of verbs that name the job. Each can copy and return it.
    verbs: usize,
}

impl LongParts {
    fn add(&mut self, loaded: &LoadedJob, wanted: WantedParts) {
        let seq = (loaded.job.seq,);
        if wanted.body && loaded.job.body.read().is_none() {
            self.bytes += loaded.job.body.bytes();
            self.bodies.push(seq);
        } else if wanted.deletes_body && loaded.job.body.is_long() {
            self.bytes += loaded.job.body.bytes();
        }
        if wanted.texts && loaded.omitted.texts > 0 {
            self.bytes += loaded.omitted.texts;
            self.texts.push(seq);
        }
        if wanted.edges && loaded.omitted.edges {
            self.bytes += EDGES_BYTES;
            self.edges.push(seq);
        } else if wanted.count && loaded.omitted.edges {
            self.counts.push(seq);
        }
    }

    /// The statements that read them.
    pub fn statements(&self) -> Vec<Statement> {
        let kinds = [
            (long_bodies::BODIES, &self.bodies),
            (job_rows::TEXTS, &self.texts),
            (job_rows::EDGES, &self.edges),
            (job_rows::DEPENDENTS_COUNT, &self.counts),
        ];
        let kinds = kinds.into_iter().filter(|(_, jobs)| !jobs.is_empty());
        kinds
            .map(|(sql, jobs)| Statement::of_rows(sql, jobs))
            .collect()
    }
}

impl LoadedJob {
    pub fn new(job: Job, version: Option<i64>, omitted: Omitted, extent: Extent) -> LoadedJob {
        LoadedJob {
            job,
            version,
            first_version: NEW,
            before: None,
            extent,
            omitted,
            has_new_dependent: false,
            is_cached: false,
        }
    }

    /// Whether all of the job is loaded, except perhaps for its body.
    pub fn is_whole(&self) -> bool {
        self.extent == Extent::Whole && self.omitted.texts == 0 && !self.omitted.edges
    }

    fn has_long_parts(&self) -> bool {
        self.job.body.read().is_none() || self.omitted.texts > 0 || self.omitted.edges
    }
}

impl UnitOfWork {
    /// The long parts that the verbs need, except for claims. Their size counts a job once for each verb that names it; it
    /// is 0 if there are none and the jobs are small.
    pub fn long_parts<'a>(&self, needs: impl Iterator<Item = &'a Needs> + Clone) -> LongParts {
        let has_long_parts = self.jobs.values().any(LoadedJob::has_long_parts);
        let sizes = self.jobs.values().map(|loaded| loaded.job.loaded_bytes());
        // The items of one request can name the same job.
        let names = needs.clone();
        let names = names.map(|need| need.jobs.len() + need.in_queues.len());
        let copied = sizes.max().unwrap_or_default() * names.sum::<usize>();
        if self.loaded_bytes.max(copied) <= LONG_PARTS_MAX && !has_long_parts {
            return LongParts::default();
        }
        self.counted_parts(needs)
    }

    /// Like [`UnitOfWork::long_parts`], but also counts small jobs.
    pub fn counted_parts<'a>(&self, needs: impl Iterator<Item = &'a Needs>) -> LongParts {
        let mut parts = LongParts::default();
        let key_of = |(scope, id): (i64, &str)| {
            let id = id.to_owned();
            JobKey { scope, id }
        };
        let mut wanted: HashMap<JobKey, WantedParts> = HashMap::new();
        let mut candidates: Vec<i64> = Vec::new();
        for need in needs {
            candidates.extend(&need.poll_candidates);
            for key in self.named_keys(need).map(key_of) {
                let part = wanted.entry(key).or_default();
                part.verbs += 1;
                part.body |= need.bodies;
                part.deletes_body |= need.deletes;
                let changes = !need.skips_long_parts && !need.only_checks_existence;
                part.texts |= changes;
                // The dependents of a completed job are loaded by a statement of their own.
                let completes = need.releases_dependents
                    && need.dependencies.is_empty()
                    && !need.replaces_dependencies;
                part.edges |= changes && !need.keeps_dependencies && !completes;
            }
            for id in &need.dependencies {
                wanted.entry(JobKey::qless(id)).or_default().count = true;
            }
        }
        for key in &self.oldest {
            wanted.entry(key.clone()).or_default().texts = true;
        }
        // Not over all jobs of the transaction, unless there are candidates, whose keys are unknown: if the transaction
        // is too large, each of its requests is counted.
        if !candidates.is_empty() {
            candidates.sort_unstable();
            let is_candidate = |job: &&Job| candidates.binary_search(&job.seq).is_ok();
            let jobs = self.jobs.values().map(|loaded| &loaded.job);
            for job in jobs.filter(is_candidate) {
                let part = wanted.entry(job.key.clone()).or_default();
                (part.body, part.texts) = (true, true);
            }
        }
        for (key, part) in wanted {
            let Some(loaded) = self.jobs.get(&key) else {
                continue;
            };
            let before = parts.bytes;
            parts.bytes += loaded.job.loaded_bytes();
            parts.add(loaded, part);
            parts.bytes = before + (parts.bytes - before) * part.verbs.max(1);
        }
        parts
    }

    /// The long parts of the jobs that claims may lease. Drops candidates beyond [`CLAIMED_MAX`], with long parts or
    /// without, and those for which the queue has no free capacity. Queues are read in the order in which claims name
    /// them, from `start` on.
    pub fn long_parts_of_candidates(
        &mut self,
        wanted: &[WantedJobs],
        start: Option<QueueId>,
    ) -> LongParts {
        let mut parts = LongParts::default();
        let UnitOfWork {
            jobs, candidates, ..
        } = self;
        let all = WantedParts {
            body: true,
            texts: true,
            edges: true,
            ..WantedParts::default()
        };
        let mut fits = |key: &JobKey| {
            let Some(loaded) = jobs.get(key) else {
                return true;
            };
            let fits = parts.bytes < CLAIMED_MAX;
            if fits {
                parts.bytes += loaded.job.loaded_bytes();
                parts.add(loaded, all);
            }
            fits
        };
        let place = wanted.iter().position(|it| Some(it.queue) == start);
        let (before, after) = wanted.split_at(place.unwrap_or_default());
        for wanted in after.iter().chain(before) {
            let Some(Candidates {
                expired,
                waiting,
                free_capacity,
                has_more,
                ..
            }) = candidates.get_mut(&wanted.queue)
            else {
                continue;
            };
            let mut is_full = false;
            for list in [expired, waiting] {
                list.truncate(free_capacity.unwrap_or(usize::MAX));
                let fitting = list.iter().take_while(|key| !is_full && fits(key));
                let fitting = fitting.count();
                is_full |= fitting < list.len();
                list.truncate(fitting);
            }
            *has_more |= is_full;
        }
        parts
    }

    /// The long parts of these loaded jobs, whose leases have expired. `moves` selects the jobs that move to a new row,
    /// for which their bodies are needed.
    pub fn long_parts_of_expired(&self, keys: &[JobKey], moves: fn(&Job) -> bool) -> LongParts {
        let mut parts = LongParts::default();
        for loaded in keys.iter().filter_map(|key| self.jobs.get(key)) {
            let wanted = WantedParts {
                texts: true,
                body: moves(&loaded.job),
                ..WantedParts::default()
            };
            parts.bytes += loaded.job.loaded_bytes();
            parts.add(loaded, wanted);
        }
        parts
    }

    /// Stores the results of [`LongParts::statements`]; the number of columns identifies the kind.
    pub fn take_long_parts(&mut self, answers: Vec<StatementResult>) -> Result<(), StoreError> {
        let mut keys = HashMap::new();
        for (key, loaded) in &self.jobs {
            if loaded.has_long_parts() {
                keys.insert(loaded.job.seq, key.clone());
            }
        }
        for mut row in answers.into_iter().flat_map(|answer| answer.rows) {
            let key = keys.get(&row.int(0)?);
            let Some(loaded) = key.and_then(|key| self.jobs.get_mut(key)) else {
                continue;
            };
            match row.columns() {
                2 => loaded.job.body = row.take_text(1)?.into(),
                3 => {
                    loaded.job.dependencies = job_rows::lines(row.text_or_null(1)?);
                    loaded.job.dependents = job_rows::lines(row.text_or_null(2)?);
                    loaded.omitted.edges = false;
                }
                4 => {
                    loaded.job.history = History::from_text(row.text(1)?);
                    job_rows::read_tags(&mut loaded.job, row.text(2)?);
                    loaded.job.work_state = row.text_or_null(3)?;
                    (loaded.omitted.texts, loaded.omitted.tags) = (0, 0);
                }
                _ => {
                    let all = usize::try_from(row.int(1)?).unwrap_or_default();
                    loaded.omitted.dependents = all.saturating_sub(loaded.job.dependents.len());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
