//! Writes what the verbs of a transaction have changed, with one statement per kind of row.

use crate::engine::cache::CacheChanges;
use crate::engine::clock::Time;
use crate::engine::events::DeferredEvents;
use crate::engine::maintenance::empty_queues;
use crate::engine::metrics::CountedEvents;
use crate::engine::model::config;
use crate::engine::model::job::{Job, JobKey, QueueId, State};
use crate::engine::model::job_rows::{self, Written};
use crate::engine::model::long_bodies::LongBodies;
use crate::engine::model::queue;
use crate::engine::model::recurring;
use crate::engine::unit_of_work::{Extent, LoadedJob, UnitOfWork};
use crate::engine::verbs::qless::tag;
use crate::store::Statement;

use crate::engine::model::tracked;
use foldhash::fast::RandomState;
use std::collections::HashMap;

impl UnitOfWork {
    /// The version of the job in the database, if this transaction has not changed it so far.
    pub fn unchanged_version(&self, key: &JobKey) -> Option<i64> {
        let loaded = self.jobs.get(key)?;
        loaded.version.filter(|_| loaded.before.is_none())
    }

    /// Counts `n` due jobs of the queue that were promoted from scheduled to waiting.
    pub fn count_promoted(&mut self, queue: QueueId, n: u64) {
        let n = n as i64;
        if n > 0 {
            self.counters.count(queue, State::Scheduled, -n);
            self.counters.count(queue, State::Waiting, n);
        }
        // The timer is not enough: a poll sets it after its claim, and a job that became due in between is no longer
        // scheduled and would be missed.
        if self.has_subscribers {
            self.wake(queue, usize::try_from(n).unwrap_or_default());
        }
    }

    /// The statements that write the changed jobs and dependencies. Unloads all jobs.
    pub fn job_writes(&mut self) -> Vec<Statement> {
        self.audit_jobs();
        let mut jobs: Vec<LoadedJob> = self.jobs.drain().map(|(_, loaded)| loaded).collect();
        // All transactions of all servers lock rows in this order, which prevents deadlocks.
        jobs.sort_unstable_by_key(|loaded| loaded.job.seq);
        for loaded in &mut jobs {
            let changed = loaded.version.is_none() || loaded.before.is_some();
            if changed && loaded.job.state != State::Record {
                loaded.job.history.shorten(self.history_max);
            }
        }
        let mut writes = self.rows_of(&jobs);
        writes.extend(self.dependency_writes());
        writes.extend(self.recurring_writes());
        for loaded in jobs {
            let rewritten = i64::from(loaded.before.is_some());
            let version = loaded
                .version
                .map_or(loaded.first_version, |version| version + rewritten);
            match loaded.job.state {
                State::Running if loaded.is_whole() => {
                    let key = loaded.job.key.clone();
                    self.cache_updates.push((key, Some((loaded.job, version))));
                }
                _ => self.forget_cached(loaded.job.key),
            }
        }
        writes
    }

    /// The statements that write jobs and their tags. Also updates the counters and collects wake-ups.
    fn rows_of(&mut self, jobs: &[LoadedJob]) -> Vec<Statement> {
        let mut removed = std::mem::take(&mut self.removed);
        removed.sort_unstable_by_key(|(job, _)| job.seq);
        let (mut new, mut moved, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        let mut released = Vec::new();
        let (mut tags, mut bodies) = (TagRows::default(), LongBodies::default());
        for loaded in jobs {
            let written = Written {
                job: &loaded.job,
                before: loaded.before.as_deref(),
                version: loaded.version.unwrap_or(loaded.first_version),
            };
            match (&loaded.before, loaded.version) {
                (_, None) => new.push(written),
                (Some(_), Some(version)) if loaded.extent == Extent::Dependent => {
                    let job = &loaded.job;
                    released.push((job.seq, version, job.state.code(), job.ready_at.0));
                }
                (Some(before), Some(_)) if job_rows::settings_differ(before, &loaded.job) => {
                    changed.push(written);
                }
                (Some(_), Some(_)) => moved.push(written),
                (None, Some(_)) => continue,
            }
            bodies.compare(loaded.before.as_deref(), Some(&loaded.job));
            self.counters
                .count_change(loaded.before.as_deref(), Some(&loaded.job));
            // A restored job gets its creation time here, since the original time of the tag is unknown.
            let tagged_at = match loaded.version {
                None => loaded.job.created_at,
                Some(_) => self.now,
            };
            tags.compare(loaded.before.as_deref(), Some(&loaded.job), tagged_at);
            if self.has_subscribers {
                self.note_availability(loaded.before.as_deref(), &loaded.job);
            }
        }
        let mut gone = Vec::new();
        for (job, version) in &removed {
            gone.push((job.seq, *version));
            self.forget_cached(job.key.clone());
            self.counters.count_change(Some(job), None);
            bodies.compare(Some(job), None);
            tags.compare(Some(job), None, self.now);
            if self.has_subscribers {
                self.wake_if_limited(job);
            }
        }
        let mut writes = Vec::new();
        writes.extend(job_rows::delete(&gone));
        writes.extend(job_rows::insert(&new));
        writes.extend(job_rows::update_progress(&moved));
        writes.extend(job_rows::release(&released));
        writes.extend(job_rows::update(&changed));
        // A single server cannot miss a concurrent change.
        if self.revision.is_some() {
            writes.extend(version_checks(jobs));
        }
        writes.extend(bodies.statements());
        if !tags.removed.is_empty() {
            writes.push(job_rows::remove_tags(&tags.removed));
        }
        if !tags.added.is_empty() {
            writes.push(job_rows::add_tags(&tags.added));
        }
        writes
    }

    /// Collects what concerns waiting polls: a job became or will become available, or capacity became free in a queue
    /// with a limit on running jobs.
    fn note_availability(&mut self, before: Option<&Job>, after: &Job) {
        let is_ready = |job: &Job| matches!(job.state, State::Waiting | State::TimedOut);
        let was_ready = before.is_some_and(|job| is_ready(job) && job.queue == after.queue);
        match after.state {
            _ if is_ready(after) && !was_ready => {
                self.wake(after.queue, 1);
            }
            State::Scheduled => self.available_at(after.queue, after.ready_at),
            State::Running => {
                if let Some(lease) = &after.lease {
                    self.available_at(after.queue, lease.until);
                }
            }
            _ => {}
        }
        if let Some(before) = before
            && after.state != State::Running
        {
            self.wake_if_limited(before);
        }
    }

    /// Wakes a poll if this job was running in a queue with a limit on running jobs.
    fn wake_if_limited(&mut self, before: &Job) {
        if before.state != State::Running {
            return;
        }
        let queue = self.queue_key(before.queue);
        if queue.is_some_and(|queue| self.config.concurrency_max(&queue).is_some()) {
            self.wake(before.queue, 1);
        }
    }

    fn recurring_writes(&mut self) -> Vec<Statement> {
        let (mut added, mut changed, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        let mut all: Vec<_> = self.recurring.drain().collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (id, loaded) in &all {
            match &loaded.recurring {
                _ if !loaded.changed => {}
                Some(recurring) if loaded.version == 0 => added.push((recurring, 1)),
                Some(recurring) => changed.push((recurring, loaded.version + 1)),
                None if loaded.version > 0 => gone.push((id, loaded.version)),
                None => {}
            }
        }
        let mut writes = Vec::new();
        if !added.is_empty() {
            writes.push(recurring::add(&added).exactly(added.len()));
        }
        if !changed.is_empty() {
            writes.push(recurring::change(&changed).exactly(changed.len()));
        }
        if !gone.is_empty() {
            writes.push(recurring::delete(&gone).exactly(gone.len()));
        }
        writes
    }

    /// The statements at the end of the transaction: queues, options, counters, statistics, events.
    pub fn final_writes(&mut self, server: i64) -> Vec<Statement> {
        let mut writes = Vec::new();
        if !self.changed_queues.is_empty() {
            let revision = self.revision.unwrap_or_default() + 1;
            writes.push(queue::save(self.changed_queues.values(), revision));
        }
        let new_revision = self.revision.map(|revision| revision + 1);
        writes.extend(empty_queues::delete_queues(
            &self.deleted_queues,
            new_revision,
        ));
        let save =
            |(option, value): &(String, Option<String>)| config::save(option, value.as_deref());
        writes.extend(self.changed_options.iter().map(save));
        writes.extend(tracked::save(&self.tracking));
        writes.extend(self.tokens.writes());
        self.audit_operations();
        writes.extend(self.operations.writes());
        if !self.forgotten_workers.is_empty() {
            writes.push(queue::forget_workers(&self.forgotten_workers));
        }
        writes.extend(self.audit_write());
        writes.append(&mut self.extra_statements);
        let counters = std::mem::take(&mut self.counters);
        let (statements, counted) = counters.into_statements(server, self.deferred.statistics);
        writes.extend(statements);
        self.counted = counted;
        let events = std::mem::take(&mut self.events);
        writes.extend(self.revision_write());
        if self.deferred.events {
            self.deferred.published = events.into_deferred(self.now);
        } else {
            writes.extend(events.into_statements(self.now));
        }
        writes
    }

    /// Whether events are stored after the commit.
    pub fn has_deferred_events(&self) -> bool {
        self.deferred.published.is_some()
    }

    /// Whether data that servers cache has changed.
    pub fn changes_cache(&self) -> bool {
        !self.changed_queues.is_empty() || self.cache_changes().contains(&true)
    }

    /// Whether cached data other than changed queues has changed: deleted queues, options, tracked jobs, tokens, queues
    /// with recurring jobs.
    pub fn cache_changes(&self) -> [bool; 5] {
        [
            self.flushes || !self.deleted_queues.is_empty(),
            self.flushes || !self.changed_options.is_empty(),
            self.flushes || !self.tracking.is_empty(),
            !self.tokens.changes.is_empty(),
            self.flushes,
        ]
    }

    /// The result that the writer applies after the commit.
    pub fn into_committed(self) -> Committed {
        Committed {
            caches: CacheChanges {
                flushes: self.flushes,
                queues: self.changed_queues.into_values().collect(),
                deleted_queues: self.deleted_queues,
                changed_options: self.changed_options,
                tracking: self.tracking,
                tokens: self.tokens.changes,
                recurring_in: self.recurring_in,
            },
            cache_updates: self.cache_updates,
            counted: self.counted,
            events: self.deferred.published,
            wake_ups: self.wake_ups,
            next_available: self.next_available,
            last_seq: self.insertion_numbers.last,
        }
    }
}

/// The statements that find out whether another server has changed jobs that this transaction does not write, although
/// it depends on them.
fn version_checks(jobs: &[LoadedJob]) -> Vec<Statement> {
    let (mut neighbors, mut cached) = (Vec::new(), Vec::new());
    for loaded in jobs {
        match (&loaded.before, loaded.version) {
            (None, Some(version)) if loaded.has_new_dependent => {
                neighbors.push((loaded.job.seq, version));
            }
            (None, Some(version)) if loaded.is_cached => cached.push((loaded.job.seq, version)),
            _ => {}
        }
    }
    let increments = job_rows::increment_versions(&neighbors);
    let checks = increments.chain(job_rows::require_versions(&cached));
    checks.collect()
}

/// Rows of the table `tags` to add or remove.
#[derive(Default)]
struct TagRows {
    added: Vec<(i64, String, i64, String)>,
    removed: Vec<(i64, String)>,
}

impl TagRows {
    /// Compares the tags of a job before and after the transaction.
    fn compare(&mut self, before: Option<&Job>, after: Option<&Job>, now: Time) {
        fn tags(job: Option<&Job>) -> &[String] {
            job.map(|job| job.tags.as_slice()).unwrap_or_default()
        }
        let (had, has) = (tags(before), tags(after));
        let Some(job) = after.or(before).filter(|_| had != has) else {
            return;
        };
        let (gone, new) = (tag::missing(has, had), tag::missing(had, has));
        self.removed
            .extend(gone.into_iter().map(|tag| (job.seq, tag)));
        let rows = new.into_iter();
        self.added
            .extend(rows.map(|tag| (job.seq, tag, now.0, job.key.id.clone())));
    }
}

/// See [`UnitOfWork::into_committed`].
pub struct Committed {
    pub caches: CacheChanges,
    /// In order: the last entry for a key applies.
    pub cache_updates: Vec<(JobKey, Option<(Job, i64)>)>,
    /// What metrics count.
    pub counted: CountedEvents,
    /// Events that are stored later.
    pub events: Option<DeferredEvents>,
    pub wake_ups: HashMap<QueueId, usize, RandomState>,
    pub next_available: HashMap<QueueId, Time, RandomState>,
    pub last_seq: i64,
}
