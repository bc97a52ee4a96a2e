//! What a verb loads, and what it may change: the input to loading, grouping and splitting.

use crate::engine::clock::Time;
use crate::engine::model::job::{JobKey, QueueId, QueueKey};
use crate::engine::model::job_columns::{job_bytes, job_columns};
use crate::engine::unit_of_work::UnitOfWork;
use crate::engine::verbs::batches::MOVED_BYTES_MAX;
use crate::engine::verbs::qless::depend::has_too_many;
use crate::store::Statement;

/// What a verb loads into the [`UnitOfWork`](crate::engine::unit_of_work::UnitOfWork), and how much it may change.
#[derive(Debug, Default)]
pub struct Needs {
    /// Jobs by key, with their dependencies and dependents.
    pub jobs: Vec<JobKey>,
    /// Jobs by queue and ID, for protocols whose job scope is the queue.
    pub in_queues: Vec<(QueueKey, String)>,
    /// Jobs by queue and ID of which the verb only checks whether they exist, beside the named jobs. Of these, only the
    /// state is loaded.
    pub checked: Vec<(QueueKey, String)>,
    /// IDs of qless jobs that the named jobs are going to depend on. Also loads the dependents of the named jobs, for
    /// cycle detection.
    pub dependencies: Vec<String>,
    /// The next jobs of each of these queues.
    pub claim: Vec<NextJobs>,
    /// IDs of recurring jobs.
    pub recurring: Vec<String>,
    /// Reserves an ID for a new record in this queue.
    pub reserves_record_id_in: Option<QueueId>,
    /// Records by `seq`, of which the verb takes one. Rows locked by other servers are skipped.
    pub poll_candidates: Vec<i64>,
    /// The oldest jobs of a list.
    pub oldest: Option<Oldest>,
    /// The ID of a bulk operation.
    pub operation: Option<i64>,
    /// Whether to load long bodies of the named jobs, and all texts of recurring jobs.
    pub bodies: bool,
    /// Whether the verb deletes the named jobs, so that their bodies count toward the size of the transaction.
    pub deletes: bool,
    /// Approximate number of bytes to write or compare.
    pub bytes: usize,
    /// The number of tags and dependencies that may change. Each is a row.
    pub relations: usize,
    /// The number of searches for runs of cron expressions.
    pub searches: usize,
    /// The verb changes no dependencies, so it does not need those of the named jobs, nor their dependents.
    pub keeps_dependencies: bool,
    /// The verb releases the dependents of the named jobs, so these are loaded too.
    pub releases_dependents: bool,
    /// The verb replaces the tags of the named jobs.
    pub replaces_tags: bool,
    /// The verb replaces the dependencies of the named jobs.
    pub replaces_dependencies: bool,
    /// The verb only checks whether the named jobs exist, and may add missing ones. Of existing jobs, only the state
    /// is loaded.
    pub only_checks_existence: bool,
    /// The verb only reads the named jobs, and needs none of their long parts.
    pub skips_long_parts: bool,
    /// The caller can split the request, so it fails if the jobs are too large for one transaction.
    pub divisible: bool,
    /// Whether it may add jobs, which fails on a full disk.
    pub adds_jobs: bool,
}

/// The oldest `count` jobs of a list.
#[derive(Clone, Debug)]
pub enum Oldest {
    /// The failed jobs of a failure group that failed at or before `until`.
    Failed {
        group: String,
        count: usize,
        until: Time,
    },
    /// The dead jobs of a queue that were dead-lettered at or before `until`.
    Dead {
        queue: QueueKey,
        count: usize,
        until: Time,
    },
}

impl Needs {
    /// Adds a job that the verb accesses.
    pub fn job(&mut self, key: &JobKey) {
        self.jobs.push(key.clone());
    }

    /// Adds tags that the verb adds to a job or removes.
    pub fn tags(&mut self, tags: &[String]) {
        self.relations += tags.len();
        self.bytes += tags.iter().map(String::len).sum::<usize>();
    }

    /// Adds dependencies that the verb adds to a job. Too many are not loaded, because the verb refuses them.
    pub fn depends(&mut self, ids: &[String]) {
        if has_too_many(ids) {
            return;
        }
        self.relations += ids.len();
        self.dependencies.extend(ids.iter().cloned());
    }
}

/// The next `count` jobs of a queue. Due recurring jobs are spawned first.
#[derive(Clone, Debug)]
pub struct NextJobs {
    pub queue: QueueKey,
    pub count: usize,
    /// Whether to load them even if the queue is paused.
    pub include_paused: bool,
}

impl UnitOfWork {
    /// The statement that reads the oldest jobs of a list, if its queue exists.
    pub fn loading_oldest(&self, oldest: &Oldest) -> Option<Statement> {
        let count = |count: &usize| (*count as i64).into();
        Some(match oldest {
            Oldest::Failed {
                group,
                count: max,
                until,
            } => {
                let bytes = (MOVED_BYTES_MAX as i64).into();
                let arguments = [group.as_str().into(), count(max), bytes, until.0.into()];
                Statement::new(LOAD_FAILURES, arguments)
            }
            Oldest::Dead {
                queue,
                count: max,
                until,
            } => {
                let (queue, bytes) = (self.queue(queue)?.id, (MOVED_BYTES_MAX as i64).into());
                let arguments = [queue.into(), count(max), bytes, until.0.into()];
                Statement::new(LOAD_DEAD, arguments)
            }
        })
    }
}

/// Up to `$2` jobs, and those beyond `$3` bytes of rows only if the ones before are smaller together.
macro_rules! load_oldest {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            job_columns!(short),
            " FROM (SELECT f.seq, sum(f.bytes) OVER (ORDER BY f.since, f.seq ROWS UNBOUNDED PRECEDING) - f.bytes AS before
            FROM (SELECT j.seq, j.since, ",
            job_bytes!(row),
            " AS bytes FROM jobs AS j WHERE ",
            $condition,
            " AND j.since <= $4 ORDER BY j.since, j.seq LIMIT $2 + 0) AS f) AS c
    CROSS JOIN jobs AS j WHERE c.before < $3 AND j.seq = c.seq ORDER BY j.since, j.seq"
        )
    };
}

const LOAD_FAILURES: &str = load_oldest!("j.state = {failed} AND j.failure_group = $1");

const LOAD_DEAD: &str = load_oldest!("j.queue = $1 AND j.state = {dead}");
