//! Events: what is made public, on channels, in the order in which it happened. They are committed with
//! what they tell of, one row a group, and kept for a while.
//!
//! Channels: `log` for everything; `w:<worker>` for what a worker should know; and for tracked jobs one
//! for each thing that may happen to them, with the id alone.

use serde::Serialize;

use crate::engine::clock::Time;
use crate::store::Statement;

/// How many events are kept, about.
const EVENTS_MAX: i64 = 100_000;

/// What is said on the channel `log`, and of some things on a worker's.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LogEvent<'a> {
    Put {
        id: &'a str,
        queue: &'a str,
    },
    Completed {
        id: &'a str,
        queue: &'a str,
    },
    Advanced {
        id: &'a str,
        queue: &'a str,
        to: &'a str,
    },
    Failed {
        id: &'a str,
        group: &'a str,
        message: &'a str,
        worker: &'a str,
    },
    LockLost {
        id: &'a str,
        worker: &'a str,
    },
    Canceled {
        id: &'a str,
        queue: &'a str,
        worker: Option<&'a str>,
    },
    ConfigUnset {
        option: &'a str,
    },
    Paused {
        queue: &'a str,
    },
    Unpaused {
        queue: &'a str,
    },
}

/// Characters of a failure's message in its event. The job has the whole message.
const MESSAGE_CHARS: usize = 1_000;

/// The beginning of a failure's message.
pub fn excerpt(message: &str) -> &str {
    let end = message.char_indices().nth(MESSAGE_CHARS);
    end.map_or(message, |(end, _)| message.get(..end).unwrap_or_default())
}

/// The events of one group, as they are written.
#[derive(Debug, Default)]
pub struct Events {
    entries: String,
    n: i64,
}

impl Events {
    /// For everybody.
    pub fn log(&mut self, said: &LogEvent<'_>) {
        self.push("log", said);
    }

    /// For a worker.
    pub fn worker(&mut self, worker: &str, said: &LogEvent<'_>) {
        self.push(&format!("w:{worker}"), said);
    }

    /// For whoever follows tracked jobs.
    pub fn tracked(&mut self, channel: &str, id: &str) {
        self.push(channel, id);
    }

    /// An option was set to a value, which is JSON text.
    pub fn config_set(&mut self, option: &str, value: &str) {
        if let Ok(option) = serde_json::to_string(option) {
            let event = r#"{"event":"config_set","option":"#;
            self.add("log", &format!(r#"{event}{option},"value":{value}}}"#));
        }
    }

    fn push(&mut self, channel: &str, data: &(impl Serialize + ?Sized)) {
        if let Ok(data) = serde_json::to_string(data) {
            self.add(channel, &data);
        }
    }

    fn add(&mut self, channel: &str, data: &str) {
        if let Ok(entry) = serde_json::to_string(&(channel, data)) {
            self.entries
                .push(if self.entries.is_empty() { '[' } else { ',' });
            self.entries.push_str(&entry);
            self.n += 1;
        }
    }

    /// The statements that number and write them. They come last in a transaction: servers that share a
    /// database wait for each other from here on.
    pub fn into_statements(mut self, at: Time) -> Vec<Statement> {
        if self.n == 0 {
            return Vec::new();
        }
        self.entries.push(']');
        vec![
            Statement::new(NUMBER, [self.n.into()]).exactly(1),
            Statement::new(ADD, [self.n.into(), at.0.into(), self.entries.into()]),
        ]
    }
}

/// The statement that drops the oldest events, where there are too many.
pub fn drop_old() -> Statement {
    Statement::new(DROP, [EVENTS_MAX.into()])
}

const NUMBER: &str = "UPDATE state SET last_event = last_event + $1 WHERE id = 1";

const ADD: &str = "
INSERT INTO events (first, n, at, entries)
SELECT last_event - $1 + 1, $1, $2, $3 FROM state WHERE id = 1";

const DROP: &str =
    "DELETE FROM events WHERE first <= (SELECT last_event FROM state WHERE id = 1) - $1";
