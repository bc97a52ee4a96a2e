//! Translates one job of qless.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::engine::{
    EventKind, Failure, History, Import, Job, Lease, NAME_BYTES_MAX, NOTE_BYTES_MAX, QueueKey,
    State, Time,
};
use crate::import::redis::Reply;

/// The fields of a job's hash.
pub const FIELDS: [&str; 13] = [
    "klass",
    "queue",
    "worker",
    "priority",
    "retries",
    "remaining",
    "data",
    "tags",
    "failure",
    "time",
    "grace",
    "spawned_from_jid",
    "state",
];

/// The list in which a job was found, which determines its state.
#[derive(Clone, Copy, Debug)]
pub enum SourceList<'a> {
    /// Leased until `score`.
    Locks {
        queue: &'a str,
        score: f64,
    },
    /// Waiting: the score is `priority - time / 10,000,000,000`, with the time in seconds; infinite for a job that
    /// was timed out.
    Work {
        queue: &'a str,
        score: f64,
    },
    /// Due at `score`.
    Scheduled {
        queue: &'a str,
        score: f64,
    },
    /// Depends on others since `score`.
    Depends {
        queue: &'a str,
        score: f64,
    },
    Failed {
        group: &'a str,
    },
    /// Completed at `score`.
    Completed {
        score: f64,
    },
}

impl SourceList<'_> {
    pub fn state(&self) -> State {
        match self {
            SourceList::Locks { .. } => State::Running,
            SourceList::Work { score, .. } if score.is_infinite() => State::TimedOut,
            SourceList::Work { .. } => State::Waiting,
            SourceList::Scheduled { .. } => State::Scheduled,
            SourceList::Depends { .. } => State::Depends,
            SourceList::Failed { .. } => State::Failed,
            SourceList::Completed { .. } => State::Complete,
        }
    }
}

/// An entry of the history: the time in seconds, what happened, and an object.
#[derive(Deserialize)]
struct Entry<'a>(f64, String, #[serde(borrow, default)] Option<&'a RawValue>);

/// What qless-core records with an event.
#[derive(Default, Deserialize)]
struct Details {
    q: Option<String>,
    worker: Option<String>,
    group: Option<String>,
}

#[derive(Deserialize)]
struct StoredFailure {
    group: Option<String>,
    message: Option<String>,
    when: Option<f64>,
    worker: Option<String>,
}

/// What is read from a job's history.
#[derive(Default)]
struct HistoryFacts {
    history: History,
    first: Option<Time>,
    put: Option<Time>,
    popped: Option<Time>,
    timed_out: Option<Time>,
    /// The queue into which it was put last.
    queue: Option<String>,
}

/// Translates a job, from the fields of its hash (see [`FIELDS`]), the first entry of its history, and the last ones.
///
/// # Errors
/// The reason why it cannot be imported.
pub fn translate(
    jid: &str,
    place: &SourceList<'_>,
    fields: &[Reply],
    first: &Reply,
    events: &[Reply],
) -> Result<Import, String> {
    let [
        klass,
        queue,
        worker,
        priority_text,
        retries,
        remaining,
        data,
        tags_text,
        failure,
        time,
        grace,
        spawned_from,
        state,
    ] = fields
    else {
        return Err("its data is missing".to_owned());
    };
    let body = json_body(data)?;
    let past = history_facts(first, events);
    let time = time.number().and_then(Time::from_seconds);
    let created_at = past.first.or(time).unwrap_or_default();
    let queue = queue_name(place, queue.text().unwrap_or_default(), &past)?;
    let mut import = Import::new(
        QueueKey::qless(queue),
        jid.to_owned(),
        body.as_str().into(),
        created_at,
    );
    let job = &mut import.job;
    job.klass = klass.text().filter(|klass| !klass.is_empty());
    job.priority = priority(priority_text);
    job.retries = integer(retries).unwrap_or_default().max(-1);
    job.remaining = integer(remaining).unwrap_or(job.retries).max(-1);
    job.tags = tags(tags_text);
    job.spawned_from = spawned_from.text().filter(|jid| !jid.is_empty());
    job.failure = stored_failure(failure);
    let entered = past.put.or(time).unwrap_or(created_at);
    (job.since, job.ready_at) = (entered, entered);
    match place {
        SourceList::Locks { score, .. } => {
            let worker = worker.text().unwrap_or_default();
            if worker.is_empty() && state.text().as_deref() != Some("running") {
                return Err("its lease names no worker".to_owned());
            }
            job.since = past.popped.or(time).unwrap_or(entered);
            let is_warned = grace.number() == Some(1.0);
            job.lease = Some(lease(worker, *score, is_warned)?);
        }
        SourceList::Work { score, .. } if score.is_infinite() => {
            job.since = past.timed_out.or(time).unwrap_or(entered);
        }
        SourceList::Work { score, .. } => {
            job.ready_at = waiting_since(priority_text, *score).unwrap_or(entered);
            job.since = job.ready_at;
        }
        other => set_times(job, other, entered)?,
    }
    job.state = place.state();
    job.history = past.history;
    Ok(import)
}

/// The data of a job.
///
/// # Errors
/// If it is too long or not JSON.
fn json_body(data: &Reply) -> Result<String, String> {
    let body = match data {
        Reply::TooLong => return Err("its data exceeds 16 MiB".to_owned()),
        data => data.text().filter(|text| is_json(text)),
    };
    body.ok_or_else(|| "its data is not JSON".to_owned())
}

/// The lease of a worker until `score`, in seconds.
///
/// # Errors
/// If it has no end.
fn lease(worker: String, score: f64, in_grace_period: bool) -> Result<Lease, String> {
    Ok(Lease {
        worker,
        id: uuid::Uuid::new_v4().simple().to_string(),
        until: Time::from_seconds(score).ok_or("its lease has no expiry time")?,
        in_grace_period,
    })
}

/// Sets the times of a job that is neither leased nor waiting, and its failure.
///
/// # Errors
/// The reason why it cannot be imported.
fn set_times(job: &mut Job, place: &SourceList<'_>, entered: Time) -> Result<(), String> {
    match place {
        SourceList::Scheduled { score, .. } => {
            job.ready_at =
                Time::from_seconds(*score).ok_or("the time at which it is due is missing")?;
        }
        SourceList::Depends { score, .. } => {
            job.since = Time::from_seconds(*score).unwrap_or(entered);
            job.ready_at = job.since;
        }
        SourceList::Failed { group } => {
            let failure = job.failure.get_or_insert_with(|| Failure {
                group: String::new(),
                message: String::new(),
                worker: String::new(),
                at: entered,
            });
            failure.group = as_name(group);
            job.since = failure.at;
        }
        SourceList::Completed { score } => {
            job.failure = None;
            job.since = Time::from_seconds(*score).unwrap_or(entered);
        }
        SourceList::Locks { .. } | SourceList::Work { .. } => {}
    }
    Ok(())
}

/// A text as the name of a failure group: with spaces instead of control characters, and cut.
fn as_name(text: &str) -> String {
    let safe = |c: char| if c.is_control() { ' ' } else { c };
    let mut name: String = text.chars().map(safe).collect();
    name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
    name
}

/// The queue of a job: that of its list, which its hash must confirm. A complete job has none; it is listed in the one
/// in which it was completed.
fn queue_name(
    place: &SourceList<'_>,
    of_hash: String,
    past: &HistoryFacts,
) -> Result<String, String> {
    match place {
        SourceList::Locks { queue, .. }
        | SourceList::Work { queue, .. }
        | SourceList::Scheduled { queue, .. }
        | SourceList::Depends { queue, .. } => match of_hash == *queue {
            true => Ok(of_hash),
            false => Err(format!(
                "it is listed in the queue {queue}, but belongs to \"{of_hash}\""
            )),
        },
        SourceList::Failed { .. } => Ok(of_hash),
        SourceList::Completed { .. } => {
            let queue = past.queue.clone();
            queue.ok_or_else(|| "its history names no queue".to_owned())
        }
    }
}

/// The time at which a waiting job was put, from its score. A changed priority replaces the time with 0.
fn waiting_since(priority: &Reply, score: f64) -> Option<Time> {
    let seconds = (priority.number().unwrap_or_default() - score) * 1e10;
    Time::from_seconds(seconds).filter(|_| seconds > 1.0)
}

fn history_facts(first: &Reply, events: &[Reply]) -> HistoryFacts {
    let mut past = HistoryFacts::default();
    let before = (events.first() != Some(first)).then_some(first);
    for entry in before.into_iter().chain(events) {
        let Some(text) = entry.text() else { continue };
        let Ok(Entry(seconds, what, details)) = serde_json::from_str(&text) else {
            continue;
        };
        let Some(when) = Time::from_seconds(seconds) else {
            continue;
        };
        let object = details
            .map(RawValue::get)
            .filter(|text| text.starts_with('{'));
        let known: Details = object
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        past.first = past.first.or(Some(when));
        let history = &mut past.history;
        match what.as_str() {
            "put" => {
                history.push(EventKind::Put, when, cut(known.q.as_ref()), None);
                past.put = Some(when);
                past.queue = known.q.or(past.queue);
            }
            "popped" => {
                history.push(EventKind::Popped, when, cut(known.worker.as_ref()), None);
                past.popped = Some(when);
            }
            "timed-out" => {
                history.push(EventKind::TimedOut, when, None, None);
                past.timed_out = Some(when);
            }
            "failed" => {
                let (group, worker) = (cut(known.group.as_ref()), cut(known.worker.as_ref()));
                history.push(EventKind::Failed, when, group, worker);
            }
            "done" => history.push(EventKind::Done, when, None, None),
            note => {
                let object = object.filter(|object| object.len() <= NOTE_BYTES_MAX);
                let note = note.get(..note.floor_char_boundary(NOTE_BYTES_MAX));
                history.push(EventKind::Note, when, note, object);
            }
        }
    }
    past
}

/// The beginning of a name in the history.
fn cut(name: Option<&String>) -> Option<&str> {
    name?.get(..name?.floor_char_boundary(NAME_BYTES_MAX))
}

fn stored_failure(failure: &Reply) -> Option<Failure> {
    let failure: StoredFailure = serde_json::from_str(&failure.text()?).ok()?;
    Some(Failure {
        group: as_name(&failure.group?),
        message: failure
            .message
            .unwrap_or_default()
            .replace('\0', "\u{fffd}"),
        worker: failure.worker.unwrap_or_default().replace('\0', "\u{fffd}"),
        at: Time::from_seconds(failure.when?)?,
    })
}

/// The priority: in qless-core the highest number runs first, here the lowest.
pub fn priority(priority: &Reply) -> f64 {
    0.0 - priority
        .number()
        .filter(|it| it.is_finite())
        .unwrap_or_default()
}

/// A whole number, which Lua may have written with a fraction.
#[expect(clippy::cast_possible_truncation, reason = "saturates")]
pub fn integer(number: &Reply) -> Option<i64> {
    let number = number.number().filter(|number| number.is_finite())?;
    Some(number.floor() as i64)
}

/// The tags, in JSON. Lua writes an empty list as `{}`. Tags may be numbers.
pub fn tags(tags: &Reply) -> Vec<String> {
    let tags: Option<Vec<serde_json::Value>> = tags
        .text()
        .and_then(|text| serde_json::from_str(&text).ok());
    let text = |tag: serde_json::Value| match tag {
        serde_json::Value::String(tag) => tag.replace('\0', "\u{fffd}"),
        other => other.to_string(),
    };
    tags.unwrap_or_default().into_iter().map(text).collect()
}

pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Reply {
        Reply::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn a_score_tells_when_a_waiting_job_was_put() {
        let since = |priority: &str, score| waiting_since(&text(priority), score).map(|it| it.0);
        let put = 1_700_000_000.25_f64;
        for priority in [0.0, -3.0, 10.0] {
            let since = since(&priority.to_string(), priority - put / 1e10).unwrap();
            assert!((since - 1_700_000_000_250_000).abs() < 100_000, "{since}");
        }
        // `priority` replaces the time by 0.
        assert_eq!(since("5", 5.0), None);
    }

    #[test]
    fn a_history_has_its_first_entry_and_its_last_ones() {
        let first = text(r#"[10,"put",{"q":"mail"}]"#);
        let events = [
            text(r#"[11,"popped",{"worker":"w"}]"#),
            text(r#"[12,"failed",{"worker":"w","group":"g"}]"#),
            text(r#"[13,"looked at",{"by":"ada"}]"#),
            text("damaged"),
            text(r#"[14,"put",{"q":"next"}]"#),
            text(r#"[15,"done"]"#),
        ];
        let past = history_facts(&first, &events);
        assert_eq!(past.queue.as_deref(), Some("next"));
        let seconds = |time: Option<Time>| time.map(Time::whole_seconds);
        assert_eq!(
            (seconds(past.first), seconds(past.put)),
            (Some(10), Some(14))
        );
        let expected = r#"[["put",10000000,"mail",null],["popped",11000000,"w",null],["failed",12000000,"g","w"],["note",13000000,"looked at","{\"by\":\"ada\"}"],["put",14000000,"next",null],["done",15000000,null,null]]"#;
        assert_eq!(past.history.as_text(), expected);
    }
}
