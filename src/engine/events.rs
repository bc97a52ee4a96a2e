//! Events: what is made public, on channels, in the order in which it happened. They are committed with
//! what they tell of, one row a group, and kept for a while.
//!
//! Channels: `log` for everything; `w:<worker>` for what a worker should know; and for tracked jobs one
//! for each thing that may happen to them, with the id alone.

use serde::Serialize;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::store::{Row, Statement, StoreError};

/// How many events are kept, about.
const EVENTS_MAX: i64 = 100_000;

/// Groups whose events are read at once.
const GROUPS_READ: usize = 200;

/// What is said on the channel `log`, and of some things on a worker's.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Said<'a> {
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

/// The events of one group, as they are written.
#[derive(Debug, Default)]
pub struct Events {
    entries: String,
    n: i64,
}

impl Events {
    /// For everybody.
    pub fn log(&mut self, said: &Said<'_>) {
        self.push("log", said);
    }

    /// For a worker.
    pub fn worker(&mut self, worker: &str, said: &Said<'_>) {
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

/// An event, as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its number; they rise by one.
    pub seq: i64,
    pub when: Time,
    pub channel: String,
    /// JSON text: an object on `log` and the workers' channels, else the job's id.
    pub data: String,
}

impl Engine {
    /// Up to `limit` events after the one numbered `after`, of one channel or of all. Also the number
    /// after which the next question should ask.
    pub async fn events(
        &self,
        after: i64,
        limit: usize,
        channel: Option<&str>,
    ) -> Result<(Vec<Published>, i64)> {
        let mut found = Vec::new();
        let mut last = after;
        loop {
            let rows = self
                .readers()
                .rows(Statement::new(
                    READ,
                    [last.into(), (GROUPS_READ as i64).into()],
                ))
                .await?;
            if rows.is_empty() {
                // Who asks from beyond the newest event is led back to it; what has come meanwhile is not skipped.
                let newest = self.last_event().await?;
                return Ok((found, last.min(newest)));
            }
            for event in events(&rows)? {
                if event.seq <= last {
                    continue;
                }
                last = event.seq;
                if channel.is_none_or(|channel| channel == event.channel) {
                    found.push(event);
                    if found.len() >= limit {
                        return Ok((found, last));
                    }
                }
            }
            if rows.len() < GROUPS_READ {
                return Ok((found, last));
            }
        }
    }

    /// The number of the newest event; 0 if there is none.
    pub async fn last_event(&self) -> Result<i64> {
        let rows = self.readers().rows(Statement::new(LAST, [])).await?;
        rows.first().map_or(Ok(0), |row| Ok(row.int(0)?))
    }
}

fn events(rows: &[Row]) -> Result<Vec<Published>, StoreError> {
    let mut events = Vec::new();
    for row in rows {
        let (first, when, entries) = (row.int(0)?, Time(row.int(1)?), row.text(2)?);
        let entries: Vec<(String, String)> = serde_json::from_str(&entries)
            .map_err(|_| StoreError::Corrupt("events that cannot be read"))?;
        events.extend(
            (first..)
                .zip(entries)
                .map(|(seq, (channel, data))| Published {
                    seq,
                    when,
                    channel,
                    data,
                }),
        );
    }
    Ok(events)
}

const LAST: &str = "SELECT last_event FROM state WHERE id = 1";

const NUMBER: &str = "UPDATE state SET last_event = last_event + $1 WHERE id = 1";

const ADD: &str = "
INSERT INTO events (first, n, at, entries)
SELECT last_event - $1 + 1, $1, $2, $3 FROM state WHERE id = 1";

const DROP: &str =
    "DELETE FROM events WHERE first <= (SELECT last_event FROM state WHERE id = 1) - $1";

// The first group may hold events of which only the later ones are wanted.
const READ: &str = "
SELECT first, at, entries FROM events
WHERE first >= coalesce((SELECT max(first) FROM events WHERE first <= $1 + 1), 0) AND first + n - 1 > $1
ORDER BY first LIMIT $2 + 0";
