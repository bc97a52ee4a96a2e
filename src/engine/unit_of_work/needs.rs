//! What verbs want to find in memory.

use std::collections::HashSet;

use crate::engine::clock::Time;
use crate::engine::model::job::{JobKey, QueueId, QueueKey};

/// What a verb wants to find in [`UnitOfWork`](crate::engine::unit_of_work::UnitOfWork).
#[derive(Debug, Default)]
pub struct Needs {
    /// Jobs by identity, with all that depend on them or that they depend on.
    pub jobs: Vec<JobKey>,
    /// Jobs by queue and id, for those whose scope is their queue.
    pub in_queues: Vec<(QueueKey, String)>,
    /// Jobs of qless that the named jobs are to wait for, by id. All that wait for the named jobs are read too, to look
    /// for cycles.
    pub awaited: Vec<String>,
    /// The next so many jobs of each of these queues.
    pub claim: Vec<Wanted>,
    /// Recurring jobs.
    pub recurring: Vec<String>,
    /// A number for a new record in this queue.
    pub number: Option<QueueKey>,
    /// Records by `seq`, to choose one from: whichever another server works on just now is left out.
    pub poll_candidates: Vec<i64>,
    /// The oldest of a list.
    pub oldest: Option<Oldest>,
    /// An operation.
    pub operation: Option<i64>,
    /// Whether the bodies of the named jobs are read. Long ones are not loaded otherwise.
    pub bodies: bool,
    /// The queue whose record is changed.
    pub record_of: Option<QueueId>,
    /// How many bytes are to be written or compared, about.
    pub bytes: usize,
    /// How many tags and edges may change, each of which is a row of its own.
    pub links: usize,
    /// The verb changes no edges, so it needs no neighbors of the named jobs.
    pub keeps_edges: bool,
    /// Whether jobs may be added, for which a full disk has no room.
    pub adds_jobs: bool,
}

/// The oldest `count` jobs of a list.
#[derive(Clone, Debug)]
pub enum Oldest {
    /// The failures of a group.
    Failed { group: String, count: usize },
    /// A dead letter, with what came to it until this moment.
    Dead {
        queue: QueueKey,
        count: usize,
        until: Time,
    },
}

impl Needs {
    /// A verb is about this job.
    pub fn job(&mut self, key: &JobKey) {
        self.jobs.push(key.clone());
    }

    /// Some job is to get these tags, or to lose them.
    pub fn tags(&mut self, tags: &[String]) {
        self.links += tags.len();
        self.bytes += tags.iter().map(String::len).sum::<usize>();
    }

    /// Some job is to wait for these.
    pub fn depends(&mut self, ids: &[String]) {
        self.links += ids.len();
        self.awaited.extend(ids.iter().cloned());
    }
}

/// The next `count` jobs of a queue, its due recurring jobs made into jobs.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub queue: QueueKey,
    pub count: usize,
    /// Also if the queue is paused.
    pub include_paused: bool,
}

/// Ids of the qless jobs that others are to wait for, and that are not named otherwise.
pub fn only_awaited<'a>(needs: impl Iterator<Item = &'a Needs> + Clone) -> HashSet<&'a str> {
    let awaited = needs.clone().flat_map(|needs| &needs.awaited);
    let mut awaited: HashSet<&str> = awaited.map(String::as_str).collect();
    for key in needs.flat_map(|needs| &needs.jobs) {
        awaited.remove(key.id.as_str());
    }
    awaited
}
