//! Jobs, recurring jobs and lists as the JSON of qless-core: an empty list is `{}`, as Lua writes it, and missing
//! values are empty texts, 0 or false.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Dialect, GRACE_S};
use crate::engine::{
    Config, EffectiveState, EventKind, Failure, Job, Queues, Recurring, State, Time, Tracked,
};
use crate::protocol::qless::{EventView, FailureView, number};

/// A list, or `{}` if it is empty.
pub struct Table<'a, T>(pub &'a [T]);

impl<T: Serialize> Serialize for Table<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            [] => serializer.serialize_map(Some(0))?.end(),
            items => items.serialize(serializer),
        }
    }
}

/// The priority in qless-core, where the highest number runs first; here, the lowest does.
pub fn priority(priority: f64) -> f64 {
    0.0 - priority
}

/// A job.
pub struct JobView<'a> {
    pub job: &'a Job,
    pub queues: &'a Queues,
    pub tracked: &'a Tracked,
    pub dialect: Dialect,
    /// The time of the view; it decides whether a lease has expired.
    pub now: Time,
    /// Whether the job was just claimed. It is then shown as running even if its lease has expired.
    pub is_claimed: bool,
}

impl Serialize for JobView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let job = self.job;
        let state = match self.is_claimed {
            true => EffectiveState::Running,
            false => job.effective_state(self.now),
        };
        let queue = match job.state {
            State::Complete => String::new(),
            _ => self.queues.name(job.queue),
        };
        let lease = job.lease.as_ref();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("jid", &job.key.id)?;
        map.serialize_entry("klass", job.klass.as_deref().unwrap_or_default())?;
        map.serialize_entry("state", state.as_str())?;
        map.serialize_entry("queue", &queue)?;
        map.serialize_entry("worker", lease.map_or("", |lease| &lease.worker))?;
        map.serialize_entry("tracked", &self.tracked.contains(&job.key.id))?;
        map.serialize_entry("priority", &number(priority(job.priority)))?;
        let expires = lease.map_or(0.0, |lease| lease.until.seconds());
        map.serialize_entry("expires", &number(expires))?;
        map.serialize_entry("retries", &job.retries)?;
        map.serialize_entry("remaining", &job.remaining)?;
        map.serialize_entry("data", &*job.body)?;
        map.serialize_entry("tags", &Table(&job.tags))?;
        let events = job.events();
        let shown = events
            .iter()
            .filter(|event| event.what != EventKind::Retried);
        map.serialize_entry("history", &Table(&shown.map(EventView).collect::<Vec<_>>()))?;
        match &job.failure {
            // In qless-core, the failure of a job without retries left names no worker.
            Some(failure) if failure.is_exhausted() => {
                let worker = String::new();
                let failure = Failure {
                    worker,
                    ..failure.clone()
                };
                map.serialize_entry("failure", &FailureView(&failure))?;
            }
            Some(failure) => map.serialize_entry("failure", &FailureView(failure))?,
            None => map.serialize_entry("failure", &Table::<()>(&[]))?,
        }
        if self.dialect != Dialect::Workerless {
            match &job.spawned_from {
                Some(id) => map.serialize_entry("spawned_from_jid", id)?,
                None => map.serialize_entry("spawned_from_jid", &false)?,
            }
        }
        map.serialize_entry("dependents", &Table(&job.dependents))?;
        map.serialize_entry("dependencies", &Table(&job.dependencies))?;
        map.end()
    }
}

/// A recurring job.
pub struct RecurringJobView<'a> {
    pub job: &'a Recurring,
    pub queues: &'a Queues,
}

impl Serialize for RecurringJobView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let job = self.job;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("jid", &job.id)?;
        map.serialize_entry("klass", job.klass.as_deref().unwrap_or_default())?;
        map.serialize_entry("state", "recur")?;
        map.serialize_entry("queue", &self.queues.name(job.queue))?;
        map.serialize_entry("priority", &number(priority(job.priority)))?;
        map.serialize_entry("interval", &number(job.interval_s()))?;
        map.serialize_entry("retries", &job.retries)?;
        map.serialize_entry("count", &job.children_count)?;
        map.serialize_entry("data", &job.body)?;
        map.serialize_entry("tags", &Table(&job.tags))?;
        map.serialize_entry("backlog", &job.backlog)?;
        map.end()
    }
}

const GRACE_PERIOD: &str = "grace-period";

/// The value of an option, or its default in qless-core.
pub fn option(config: &Config, option: &str) -> Option<String> {
    match option == GRACE_PERIOD && !config.is_set(option) {
        true => Some(GRACE_S.to_string()),
        false => config.get(option),
    }
}

/// Options whose defaults qless-core does not list.
const UNLISTED: [&str; 2] = ["max-job-history", "max-worker-age"];

/// The options: values that were set as texts, defaults as numbers.
pub struct OptionsView<'a>(pub &'a Config);

impl Serialize for OptionsView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all: BTreeMap<String, String> = self.0.all();
        all.retain(|option, _| self.0.is_set(option) || !UNLISTED.contains(&option.as_str()));
        if let Some(grace) = option(self.0, GRACE_PERIOD) {
            all.insert(GRACE_PERIOD.to_owned(), grace);
        }
        let mut map = serializer.serialize_map(Some(all.len()))?;
        for (option, value) in &all {
            match (self.0.is_set(option), value.parse::<i64>()) {
                (false, Ok(number)) => map.serialize_entry(option, &number)?,
                _ => map.serialize_entry(option, &option_text(value))?,
            }
        }
        map.end()
    }
}

/// The text of an option, whose value is JSON text.
pub fn option_text(value: &str) -> String {
    serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned())
}
