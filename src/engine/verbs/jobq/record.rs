//! Jobq's verbs. A job of Jobq is a record: a payload, a state that anybody may set by compare-and-set, and a log
//! of events that only grows. Nobody holds a lease of it; it stays until somebody deletes it.

use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::history::{Event, History, What};
use crate::engine::model::job::{Job, JobKey, QueueId, QueueKey, State};
use crate::engine::model::queue::Queue;
use crate::engine::unit_of_work::Work;
use crate::engine::verbs::qless::put::new_job;

/// How long a log may get.
const LOG_EVENTS_MAX: usize = 10_000;
const LOG_BYTES_MAX: usize = 1 << 20;

/// A job of Jobq as its clients see it. Payload and state are JSON text without white space.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Of its queue; from 1.
    pub id: i64,
    pub payload: String,
    /// Null is none.
    pub state: Option<String>,
    pub history: History,
    /// When it was changed last.
    pub modified: Time,
    pub created_at: Time,
}

/// What became of a compare-and-set.
#[derive(Clone, Debug, PartialEq)]
pub enum Swap {
    /// The record in its new state.
    Done(Record),
    /// The state is another than was expected, and nothing has changed.
    Differs(Record),
}

impl Record {
    pub fn of(job: &Job) -> Record {
        Record {
            id: job.key.id.parse().unwrap_or_default(),
            payload: job.body.clone(),
            state: job.work_state.clone(),
            history: job.history.clone(),
            modified: job.updated_at.unwrap_or(job.created_at),
            created_at: job.created_at,
        }
    }

    /// The state as JSON text.
    pub fn state_text(&self) -> &str {
        self.state.as_deref().unwrap_or(NULL)
    }

    /// The log as JSON text (document, Events): a list of `[kind, data]`, where every moment is a text, in seconds.
    pub fn events(&self) -> String {
        let events: Vec<_> = self.history.events().iter().filter_map(shown).collect();
        format!("[{}]", events.join(","))
    }
}

fn shown(event: &Event) -> Option<String> {
    let timestamp = event.when.whole_seconds();
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| NULL.to_owned());
    let (subject, detail) = (text(&event.subject), text(&event.detail));
    Some(match event.what {
        What::Created => format!(r#"["job_created",{{"timestamp":"{timestamp}"}}]"#),
        What::Advanced => format!(
            r#"["job_state_advanced",{{"old":{subject},"new":{detail},"timestamp":"{timestamp}"}}]"#
        ),
        What::Event => format!(r#"["user_event",{{"event":{detail},"timestamp":"{timestamp}"}}]"#),
        _ => return None,
    })
}

const NULL: &str = "null";

fn state_text(job: &Job) -> &str {
    job.work_state.as_deref().unwrap_or(NULL)
}

/// A state as it is kept.
fn kept(state: &str) -> Option<String> {
    (state != NULL).then(|| state.to_owned())
}

/// The longest name of a queue, in characters.
const NAME_CHARS_MAX: usize = 255;

/// Why no queue can have this name.
pub fn flaw_of_queue_name(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("the name is empty")
    } else if name.chars().count() > NAME_CHARS_MAX {
        Some("the name is longer than 255 characters")
    } else if name.contains('\0') {
        Some("the name contains NUL")
    } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
        Some("the name must not be a number; it could be mistaken for an ID")
    } else {
        None
    }
}

/// Makes a queue. Its number.
///
/// # Errors
/// [`Error::QueueThere`].
pub fn make_queue(work: &mut Work, queue: &QueueKey) -> Result<QueueId> {
    if work.queue(queue).is_some() {
        let name = queue.name.clone();
        return Err(Error::QueueThere { name });
    }
    Ok(work.queue_for(queue))
}

/// Deletes a queue with all that is in it: from now on nobody finds it, and its name is free. Upkeep drops what
/// was in it, and then the queue.
///
/// # Errors
/// [`Error::NoSuchQueue`].
pub fn expunge(work: &mut Work, queue: &Queue) -> Result<()> {
    known(work, queue)?;
    work.change_queue(Queue {
        key: QueueKey {
            namespace: format!("expunged {}", queue.id),
            ..queue.key.clone()
        },
        forgotten: true,
        ..queue.clone()
    });
    Ok(())
}

/// Whether the queue is there still; another of its name is another.
fn known(work: &Work, queue: &Queue) -> Result<()> {
    match work.queue(&queue.key) {
        Some(found) if found.id == queue.id => Ok(()),
        _ => Err(no_such_queue(queue)),
    }
}

pub fn no_such_queue(queue: &Queue) -> Error {
    let name = queue.key.name.clone();
    Error::NoSuchQueue { name }
}

/// The key of the record of this number.
pub fn key(queue: &Queue, id: i64) -> JobKey {
    JobKey {
        scope: queue.id,
        id: id.to_string(),
    }
}

/// Records a job in a state.
///
/// # Errors
/// [`Error::NoSuchQueue`].
pub fn create(work: &mut Work, queue: &Queue, payload: &str, state: &str) -> Result<Record> {
    known(work, queue)?;
    // Another server may have deleted it.
    let number = work.next_number(queue.id);
    let number = number.ok_or_else(|| no_such_queue(queue))?;
    let (now, key) = (work.tick(), key(queue, number));
    let mut job = new_job(work, &key);
    job.queue = queue.id;
    job.state = State::Record;
    payload.clone_into(&mut job.body);
    job.work_state = kept(state);
    job.created_at = now;
    job.since = now;
    job.updated_at = Some(now);
    job.history.push(What::Created, now, None, None);
    let record = Record::of(&job);
    work.insert(job);
    work.tally.put(queue.id, work.now);
    Ok(record)
}

/// Sets the state from `old` to `new`, if it is the text `old`.
///
/// # Errors
/// [`Error::NoSuchQueue`], [`Error::NoSuchJob`], [`Error::LogFull`].
pub fn advance(work: &mut Work, queue: &Queue, id: i64, old: &str, new: &str) -> Result<Swap> {
    let (key, job) = found(work, queue, id)?;
    if state_text(job) != old {
        return Ok(Swap::Differs(Record::of(job)));
    }
    set_state(work, &key, new).map(Swap::Done)
}

/// Appends an event of the user.
///
/// # Errors
/// [`Error::NoSuchQueue`], [`Error::NoSuchJob`], [`Error::LogFull`].
pub fn append(work: &mut Work, queue: &Queue, id: i64, event: &str) -> Result<Record> {
    let (key, _) = found(work, queue, id)?;
    log(work, &key, |job, now| {
        job.history.push(What::Event, now, None, Some(event));
    })
}

/// Sets the state of a record that matched when it had been changed last at `since`. Each change of a record moves that
/// moment, so a record that has it still is the one that matched, and nothing is evaluated here while others wait.
///
/// # Errors
/// [`Error::LogFull`].
pub fn poll(work: &mut Work, key: &JobKey, since: Time, state: &str) -> Result<Option<Record>> {
    let modified = |job: &Job| job.updated_at.unwrap_or(job.created_at);
    match work.job(key).map(modified) {
        Some(at) if at == since => set_state(work, key, state).map(Some),
        _ => Ok(None),
    }
}

/// Deletes a record. Whether it was there.
///
/// # Errors
/// [`Error::NoSuchQueue`].
pub fn delete(work: &mut Work, queue: &Queue, id: i64) -> Result<bool> {
    known(work, queue)?;
    let key = key(queue, id);
    let is_there = work.job(&key).is_some();
    if is_there {
        work.remove(&key);
    }
    Ok(is_there)
}

fn found<'w>(work: &'w Work, queue: &Queue, id: i64) -> Result<(JobKey, &'w Job)> {
    known(work, queue)?;
    let key = key(queue, id);
    match work.job(&key) {
        Some(job) => Ok((key, job)),
        None => Err(Error::NoSuchJob { id: key.id }),
    }
}

fn set_state(work: &mut Work, key: &JobKey, new: &str) -> Result<Record> {
    log(work, key, |job, now| {
        let old = state_text(job).to_owned();
        job.history.push(What::Advanced, now, Some(&old), Some(new));
        job.work_state = kept(new);
    })
}

/// Changes a record, by which its log grows.
fn log(work: &mut Work, key: &JobKey, change: impl FnOnce(&mut Job, Time)) -> Result<Record> {
    let id = || key.id.clone();
    let job = work.job(key).ok_or_else(|| Error::NoSuchJob { id: id() })?;
    let mut changed = job.clone();
    // Another server may have touched it a moment after this group began: a log does not go back.
    let touched = changed.updated_at.map(|at| Time(at.0.saturating_add(1)));
    let now = work.tick().max(touched.unwrap_or_default());
    change(&mut changed, now);
    changed.updated_at = Some(now);
    if let Some(max) = exceeded(&changed.history) {
        return Err(Error::LogFull { id: id(), max });
    }
    let record = Record::of(&changed);
    if let Some(job) = work.job_mut(key) {
        *job = changed;
    }
    Ok(record)
}

/// The limit of a log that this one exceeds.
fn exceeded(log: &History) -> Option<&'static str> {
    if log.as_text().len() > LOG_BYTES_MAX {
        Some("1 MiB")
    } else if log.is_longer_than(LOG_EVENTS_MAX) {
        Some("10,000 events")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_up_to_10000_events() {
        let mut log = History::default();
        for n in 1..=10_001 {
            log.push(What::Event, Time(n), None, Some("1"));
            if n >= 9_999 {
                let expected = (n > 10_000).then_some("10,000 events");
                assert_eq!(exceeded(&log), expected, "{n} events");
            }
        }
    }

    #[test]
    fn a_log_has_up_to_1_mib() {
        let log = |detail: usize| {
            let mut log = History::default();
            log.push(What::Created, Time(1), None, None);
            log.push(What::Event, Time(2), None, Some(&"x".repeat(detail)));
            log
        };
        let around = log(0).as_text().len();
        for (bytes, expected) in [
            (1_048_575, None),
            (1_048_576, None),
            (1_048_577, Some("1 MiB")),
        ] {
            let log = log(bytes - around);
            assert_eq!(log.as_text().len(), bytes);
            assert_eq!(exceeded(&log), expected, "{bytes} bytes");
        }
    }
}
