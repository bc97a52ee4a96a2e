//! Records: the jobs of Jobq. A record has a payload, a state that any client may set by compare-and-set, and an
//! append-only log of events. It has no lease, and stays until it is deleted.

use crate::engine::clock::Time;
use crate::engine::model::history::{Event, EventKind, History};
use crate::engine::model::job::{Job, JobKey};
use crate::engine::model::queue::Queue;

/// Size of a log up to which lists count its events, in bytes.
const COUNTED_BYTES_MAX: usize = 16 * 1024;

/// A Jobq job as its clients see it. Payload and state are JSON text without whitespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The insertion number of the job.
    pub seq: i64,
    /// Unique within its queue; starts at 1.
    pub id: i64,
    pub payload: String,
    /// `None` for null.
    pub state: Option<String>,
    pub history: History,
    /// When it was last changed.
    pub modified: Time,
    pub created_at: Time,
}

impl Record {
    pub fn of(job: &Job) -> Record {
        Record {
            seq: job.seq,
            id: job.key.id.parse().unwrap_or_default(),
            payload: job.body.to_string(),
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

    /// The size of its texts in bytes.
    pub fn bytes(&self) -> usize {
        self.payload.len() + self.state_text().len() + self.history.as_text().len()
    }

    /// The log, oldest event first. Empty if it cannot be parsed, which the server's log reports.
    pub fn log(&self) -> Vec<Event> {
        self.known_log().unwrap_or_default()
    }

    /// The number of events, if the log was loaded, has up to 16 KiB and can be parsed.
    pub fn event_count(&self) -> Option<usize> {
        let is_short = self.history.as_text().len() <= COUNTED_BYTES_MAX;
        let log = is_short.then(|| self.known_log()).flatten();
        log.map(|events| events.len())
    }

    fn known_log(&self) -> Option<Vec<Event>> {
        self.history.events_of(self.seq, &self.id.to_string())
    }

    /// The log as JSON text (API document, Events): a list of `[kind, data]` with timestamps in seconds, as strings.
    pub fn events(&self) -> String {
        let events: Vec<_> = self.log().iter().filter_map(shown).collect();
        format!("[{}]", events.join(","))
    }
}

fn shown(event: &Event) -> Option<String> {
    let timestamp = event.when.whole_seconds();
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| NULL.to_owned());
    let (subject, detail) = (text(&event.subject), text(&event.detail));
    Some(match event.what {
        EventKind::Created => format!(r#"["job_created",{{"timestamp":"{timestamp}"}}]"#),
        EventKind::Advanced => format!(
            r#"["job_state_advanced",{{"old":{subject},"new":{detail},"timestamp":"{timestamp}"}}]"#
        ),
        EventKind::Event => {
            format!(r#"["user_event",{{"event":{detail},"timestamp":"{timestamp}"}}]"#)
        }
        _ => return None,
    })
}

const NULL: &str = "null";

pub fn state_text(job: &Job) -> &str {
    job.work_state.as_deref().unwrap_or(NULL)
}

/// The stored form of a state: `None` for null.
pub fn stored_state(state: &str) -> Option<String> {
    (state != NULL).then(|| state.to_owned())
}

/// The key of the record with this ID.
pub fn key(queue: &Queue, id: i64) -> JobKey {
    JobKey {
        scope: queue.id,
        id: id.to_string(),
    }
}
