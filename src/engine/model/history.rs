//! What happened to a job, kept as text in its row.

use serde::{Deserialize, Serialize};

use crate::engine::clock::Time;

/// The longest word that somebody may add to a history, with its data, in bytes.
pub const NOTE_BYTES_MAX: usize = 4_096;

/// An event has at least so many bytes; a text that is short enough need not be counted.
const EVENT_BYTES_MIN: usize = 16;

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// Put, moved, retried by hand or advanced into the queue that `subject` names.
    Put,
    /// Claimed by the worker that `subject` names.
    Popped,
    /// The lease was lost.
    TimedOut,
    /// Given back by its worker, with the failure's group in `subject` if it gave one. The qless API does
    /// not show this, for qless-core has no such entry; the dashboard does.
    Retried,
    /// Failed with the group that `subject` names, by the worker in `detail` if a worker said so.
    Failed,
    /// Completed.
    Done,
    /// The last try was lost; it went to the dead letter.
    Died,
    /// Taken out of the dead letter, to be tried again.
    Respawned,
    /// What somebody had to say: the message is `subject`, and `detail` a JSON object, if there is one.
    Note,
    /// Recorded (Jobq).
    Created,
    /// The state `subject` became the state `detail`, both JSON text (Jobq).
    Advanced,
    /// An event of the user, which is `detail`, JSON text (Jobq).
    Event,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub what: EventKind,
    pub when: Time,
    pub subject: Option<String>,
    pub detail: Option<String>,
}

/// The events of a job, oldest first. It stays text until somebody wants to read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History(String);

impl Default for History {
    fn default() -> Self {
        History("[]".to_owned())
    }
}

impl History {
    /// From the text of the row.
    pub fn from_text(text: String) -> History {
        History(text)
    }

    /// The text for the row: a JSON array of `[what, when, subject, detail]`.
    pub fn as_text(&self) -> &str {
        &self.0
    }

    /// The events, oldest first.
    pub fn events(&self) -> Vec<Event> {
        let rows: Vec<(EventKind, Time, Option<String>, Option<String>)> =
            serde_json::from_str(&self.0).unwrap_or_default();
        rows.into_iter()
            .map(|(what, when, subject, detail)| Event {
                what,
                when,
                subject,
                detail,
            })
            .collect()
    }

    /// Whether there are more than `max` events.
    pub fn is_longer_than(&self, max: usize) -> bool {
        self.0.len() > max.saturating_mul(EVENT_BYTES_MIN) && self.events().len() > max
    }

    /// Appends an event.
    pub fn push(
        &mut self,
        what: EventKind,
        when: Time,
        subject: Option<&str>,
        detail: Option<&str>,
    ) {
        let Ok(event) = serde_json::to_string(&(what, when, subject, detail)) else {
            return;
        };
        self.0.pop();
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&event);
        self.0.push(']');
    }

    /// Keeps the first event, and the newest after it, `max` (at least one) together.
    pub fn shorten(&mut self, max: usize) {
        let max = max.max(1);
        if !self.is_longer_than(max) {
            return;
        }
        let mut events = self.events();
        events.drain(1..=events.len() - max);
        let rows: Vec<_> = events
            .iter()
            .map(|event| (event.what, event.when, &event.subject, &event.detail))
            .collect();
        if let Ok(text) = serde_json::to_string(&rows) {
            self.0 = text;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_in_order() {
        let mut history = History::default();
        history.push(EventKind::Put, Time(1), Some("a \"queue\""), None);
        history.push(EventKind::Failed, Time(2), Some("group"), Some("worker"));
        let events = history.events();
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].subject.as_deref(), Some("a \"queue\""));
        assert_eq!(events[1].detail.as_deref(), Some("worker"));
    }

    #[test]
    fn the_first_event_and_the_newest_survive() {
        let mut history = History::default();
        for moment in 0..250 {
            history.push(EventKind::Put, Time(moment), Some("q"), None);
        }
        let times = |history: &History| -> Vec<i64> {
            history.events().iter().map(|event| event.when.0).collect()
        };
        assert!(history.is_longer_than(249) && !history.is_longer_than(250));
        history.shorten(250);
        assert_eq!(times(&history).len(), 250);
        history.shorten(5);
        assert_eq!(times(&history), [0, 246, 247, 248, 249]);
        history.shorten(0);
        assert_eq!(times(&history), [0]);
    }
}
