//! The history of a job, stored as text in its row.

use serde::{Deserialize, Serialize};

use crate::engine::clock::Time;
use crate::engine::model::damage::{self, Text};

/// The longest note, with its data, in bytes.
pub const NOTE_BYTES_MAX: usize = 4_096;

/// How much of the message of a failure its event keeps, in bytes.
pub const HISTORY_MESSAGE_BYTES_MAX: usize = 2_048;

/// In a history longer than [`MESSAGES_BYTES_MAX`], only the newest [`MESSAGES_KEPT`] failures keep their messages.
const MESSAGES_BYTES_MAX: usize = 32 << 10;
const MESSAGES_KEPT: usize = 10;

/// The limits of a history, in events and bytes, regardless of `max-job-history`.
const EVENTS_MAX: usize = 10_000;
const BYTES_MAX: usize = 1 << 20;

/// The size of the smallest event in bytes. Shorter histories need not be parsed to check their length.
const EVENT_BYTES_MIN: usize = 16;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// Put, moved, retried by an operator, or advanced into the queue `subject`, by a request of the trace `detail`, if
    /// any.
    Put,
    /// Claimed by the worker `subject`.
    Popped,
    /// The lease expired, or `/timeout` took the job from its worker.
    TimedOut,
    /// Returned by its worker, with the failure group `subject`, if given. The dashboard shows this event; the qless
    /// API does not, because qless-core has no such event.
    Retried,
    /// Failed with the failure group `subject`, reported by the worker `detail`, if any.
    Failed,
    /// Completed.
    Done,
    /// The last attempt's lease expired; the job was dead-lettered.
    #[serde(rename = "died")]
    DeadLettered,
    /// Respawned: queued again after it was dead.
    Respawned,
    /// A note: the message `subject`, and optionally the JSON object `detail`.
    Note,
    /// Created (Jobq), by a request of the trace `detail`, if any.
    Created,
    /// The state changed from `subject` to `detail`, both JSON text (Jobq).
    Advanced,
    /// A client's event: the JSON text `detail` (Jobq).
    Event,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub what: EventKind,
    pub when: Time,
    pub subject: Option<String>,
    pub detail: Option<String>,
    /// The message of a failure, up to [`HISTORY_MESSAGE_BYTES_MAX`].
    pub message: Option<String>,
}

impl Event {
    /// The event as it is stored.
    fn as_text(&self) -> String {
        let (what, when, subject, detail) = (self.what, self.when, &self.subject, &self.detail);
        match &self.message {
            Some(message) => serde_json::to_string(&(what, when, subject, detail, message)),
            None => serde_json::to_string(&(what, when, subject, detail)),
        }
        .unwrap_or_default()
    }
}

/// An event in the row: an array whose last element is missing without a message.
#[derive(Deserialize)]
struct StoredEvent(
    EventKind,
    Time,
    Option<String>,
    Option<String>,
    #[serde(default)] Option<String>,
);

/// The events of a job, oldest first. Parsed only on demand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History(String);

impl Default for History {
    fn default() -> Self {
        History("[]".to_owned())
    }
}

impl History {
    /// A history that was not loaded.
    pub(in crate::engine) fn unread() -> History {
        History(String::new())
    }

    /// The text for the row, if the history was loaded.
    pub(in crate::engine) fn read(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(&self.0)
    }

    /// The history with the text of the row. An empty text is not a list; it becomes a space, because an empty text
    /// marks a history that was not loaded.
    pub fn from_text(text: String) -> History {
        match text.is_empty() {
            true => History(" ".to_owned()),
            false => History(text),
        }
    }

    /// The text for the row: a JSON array of `[what, when, subject, detail]`, of failures with a message
    /// `[what, when, subject, detail, message]`.
    pub fn as_text(&self) -> &str {
        &self.0
    }

    /// The events, oldest first; `None` if the text was not loaded or cannot be parsed.
    fn parse(&self) -> Option<Vec<Event>> {
        let rows: Vec<StoredEvent> = serde_json::from_str(&self.0).ok()?;
        let event = |StoredEvent(what, when, subject, detail, message)| Event {
            what,
            when,
            subject,
            detail,
            message,
        };
        Some(rows.into_iter().map(event).collect())
    }

    /// The events, oldest first; `None` if the text was not loaded, or cannot be parsed, which is logged with the job's
    /// number and ID.
    pub(in crate::engine) fn events_of(&self, seq: i64, id: &str) -> Option<Vec<Event>> {
        self.read()?;
        let events = self.parse();
        if events.is_none() {
            damage::report(Text::History, seq, id);
        }
        events
    }

    /// The `traceparent` of the request that created the job, if its trace was exported: the detail of the first event,
    /// which is always kept.
    pub fn traceparent(&self) -> Option<String> {
        let rest = self.0.strip_prefix('[')?;
        let mut events = serde_json::Deserializer::from_str(rest).into_iter::<StoredEvent>();
        let StoredEvent(what, _, _, detail, _) = events.next()?.ok()?;
        detail.filter(|_| matches!(what, EventKind::Put | EventKind::Created))
    }

    /// Whether the text can be parsed.
    pub(in crate::engine) fn is_readable(&self) -> bool {
        self.parse().is_some()
    }

    /// Whether there are more than `max` events.
    pub fn is_longer_than(&self, max: usize) -> bool {
        self.0.len() > max.saturating_mul(EVENT_BYTES_MIN)
            && self.parse().is_some_and(|events| events.len() > max)
    }

    /// Appends an event. Leaves a text that does not end with `]` unchanged.
    pub fn push(
        &mut self,
        what: EventKind,
        when: Time,
        subject: Option<&str>,
        detail: Option<&str>,
    ) {
        if let Ok(event) = serde_json::to_string(&(what, when, subject, detail)) {
            self.push_text(&event);
        }
    }

    /// Appends an event with the beginning of a failure's message.
    pub fn push_failure(
        &mut self,
        what: EventKind,
        when: Time,
        group: &str,
        worker: Option<&str>,
        message: &str,
    ) {
        let end = message.floor_char_boundary(HISTORY_MESSAGE_BYTES_MAX);
        let message = message.get(..end).unwrap_or_default();
        if let Ok(event) = serde_json::to_string(&(what, when, group, worker, message)) {
            self.push_text(&event);
        }
        if self.0.len() > MESSAGES_BYTES_MAX {
            self.drop_old_messages();
        }
    }

    /// Removes the messages of all failures but the newest ones.
    fn drop_old_messages(&mut self) {
        let Some(mut events) = self.parse() else {
            return;
        };
        let with_message = events.iter_mut().rev().filter(|it| it.message.is_some());
        for event in with_message.skip(MESSAGES_KEPT) {
            event.message = None;
        }
        let texts: Vec<String> = events.iter().map(Event::as_text).collect();
        self.0 = format!("[{}]", texts.join(","));
    }

    fn push_text(&mut self, event: &str) {
        if self.read().is_none() {
            debug_assert!(false, "a verb changes a history that it did not ask for");
            return;
        }
        if !self.0.ends_with(']') {
            return;
        }
        self.0.pop();
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(event);
        self.0.push(']');
    }

    /// Keeps the first event and the newest ones after it: `max` (at least 1) in total, and up to [`BYTES_MAX`]. Of a
    /// text that cannot be parsed, keeps the first [`BYTES_MAX`].
    pub fn shorten(&mut self, max: usize) {
        let max = max.clamp(1, EVENTS_MAX);
        if self.0.len() <= BYTES_MAX && !self.is_longer_than(max) {
            return;
        }
        let Some(events) = self.parse() else {
            self.0.truncate(self.0.floor_char_boundary(BYTES_MAX));
            return;
        };
        let Some(first) = events.first().map(Event::as_text) else {
            return;
        };
        let mut bytes = first.len() + "[]".len();
        let mut kept: Vec<String> = Vec::new();
        for event in events
            .iter()
            .skip(1)
            .rev()
            .take(max - 1)
            .map(Event::as_text)
        {
            bytes += event.len() + ",".len();
            if bytes > BYTES_MAX {
                break;
            }
            kept.push(event);
        }
        kept.push(first);
        kept.reverse();
        self.0 = format!("[{}]", kept.join(","));
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
        let events = history.parse().unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].subject.as_deref(), Some("a \"queue\""));
        assert_eq!(events[1].detail.as_deref(), Some("worker"));
    }

    #[test]
    fn a_history_has_up_to_1_mib_and_10000_events() {
        let mut history = History::default();
        let note = "n".repeat(4_000);
        for n in 0..300 {
            history.push(EventKind::Note, Time(n), Some(&note), None);
        }
        history.shorten(usize::MAX);
        let bytes = history.as_text().len();
        assert!((BYTES_MAX - 4_100..=BYTES_MAX).contains(&bytes), "{bytes}");
        let events = history.parse().unwrap();
        assert_eq!(
            (events[0].when, events[1].when),
            (Time(0), Time(300 - events.len() as i64 + 1))
        );
        let mut history = History::default();
        for n in 0..10_001 {
            history.push(EventKind::Note, Time(n), None, None);
        }
        history.shorten(usize::MAX);
        let events = history.parse().unwrap();
        assert_eq!((events.len(), events[1].when), (10_000, Time(2)));
    }

    #[test]
    fn a_failure_keeps_up_to_2_kib_of_its_message() {
        let mut history = History::default();
        history.push(EventKind::Put, Time(1), Some("q"), None);
        let long = format!("{}é", "m".repeat(HISTORY_MESSAGE_BYTES_MAX - 1));
        for (n, message) in ["", "connection \"reset\"", &long].into_iter().enumerate() {
            let when = Time(2 + n as i64);
            history.push_failure(EventKind::Failed, when, "group", Some("worker"), message);
        }
        history.push(EventKind::Failed, Time(9), Some("group"), None);
        let messages = |history: &History| -> Vec<Option<String>> {
            let events = history.parse().unwrap().into_iter();
            events.map(|event| event.message).collect()
        };
        let cut = "m".repeat(HISTORY_MESSAGE_BYTES_MAX - 1);
        let expected = [
            None,
            Some(""),
            Some("connection \"reset\""),
            Some(&cut),
            None,
        ];
        let expected = expected.map(|message| message.map(str::to_owned));
        assert_eq!(messages(&history), expected);
        history.shorten(4);
        assert_eq!(messages(&history)[1..], expected[2..]);
        assert_eq!(
            history.parse().unwrap()[1].detail.as_deref(),
            Some("worker")
        );
    }

    #[test]
    fn in_a_long_history_the_newest_failures_keep_their_messages() {
        let mut history = History::default();
        for n in 0..40 {
            let message = format!("{n} {}", "m".repeat(2_000));
            history.push_failure(EventKind::Retried, Time(n), "group", None, &message);
        }
        let events = history.parse().unwrap();
        assert_eq!(events.len(), 40);
        let kept = events
            .iter()
            .filter(|event| event.message.is_some())
            .count();
        assert!((MESSAGES_KEPT..20).contains(&kept), "{kept}");
        assert!(history.as_text().len() <= MESSAGES_BYTES_MAX);
        assert!(events[39].message.as_ref().unwrap().starts_with("39 m"));
    }

    #[test]
    fn a_text_that_cannot_be_parsed_stays_and_does_not_grow() {
        for text in [
            "[[\"put\",1,\"q\"",
            "x",
            "{}",
            "[[\"unknown\",1,null,null]] ",
        ] {
            let mut history = History::from_text(text.to_owned());
            assert!(!history.is_readable(), "{text}");
            history.push(EventKind::Put, Time(2), None, None);
            history.shorten(1);
            assert_eq!(history.as_text(), text);
            assert_eq!(history.events_of(1, "a"), None);
        }
        let empty = History::from_text(String::new());
        assert!(empty.read().is_some() && !empty.is_readable());
        let mut history = History::from_text("[x]".to_owned());
        for n in 0..300 {
            history.push(EventKind::Note, Time(n), Some(&"ä".repeat(2_000)), None);
            history.shorten(10);
        }
        assert!(!history.is_readable());
        assert!(history.as_text().len() <= BYTES_MAX);
    }

    #[test]
    fn the_first_event_and_the_newest_survive() {
        let mut history = History::default();
        for moment in 0..250 {
            history.push(EventKind::Put, Time(moment), Some("q"), None);
        }
        let times = |history: &History| -> Vec<i64> {
            history
                .parse()
                .unwrap()
                .iter()
                .map(|event| event.when.0)
                .collect()
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
