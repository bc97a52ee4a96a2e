//! Published events, on channels, in commit order. They are stored with the change they describe, or shortly after it
//! (`unit_of_work/deferred.rs`), one row per transaction, and kept for a while.
//!
//! Channels: `log` for the events in [`LogEvent`] and for options that are set; `w:<worker>` for what concerns a
//! worker; and, for tracked jobs, one channel per kind of event, which carries only the ID.

use serde::Serialize;

use crate::engine::clock::Time;
use crate::store::{Connection, ROWS_BOUND_MAX, Statement, StatementResult, StoreError};

/// Events that are kept, approximately.
const EVENTS_MAX: i64 = 100_000;

/// An event on the channel `log`; some are also sent to a worker's channel.
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

/// Characters of a failure's message in its event, and their bytes as JSON within JSON. The job keeps the whole message.
const MESSAGE_CHARS: usize = 1_000;
const MESSAGE_BYTES: usize = 4_500;

/// The beginning of a failure's message: up to [`MESSAGE_CHARS`] characters, which have up to [`MESSAGE_BYTES`] bytes.
pub fn excerpt(message: &str) -> &str {
    let mut bytes = 0;
    let is_beyond = |(n, (_, char)): &(usize, (usize, char))| {
        bytes += match char {
            '"' | '\\' => 4,
            '\n' | '\t' | '\r' => 3,
            '\0'..' ' => 7,
            char => char.len_utf8(),
        };
        *n == MESSAGE_CHARS || bytes > MESSAGE_BYTES
    };
    let end = message.char_indices().enumerate().find(is_beyond);
    let end = end.map_or(message.len(), |(_, (end, _))| end);
    message.get(..end).unwrap_or_default()
}

/// Bytes of a row of events, unless a single one is longer. Readers load whole rows.
const ROW_BYTES_MAX: usize = 256 << 10;

/// The events of one transaction.
#[derive(Debug, Default)]
pub struct Events {
    /// Those before the last row.
    full: Vec<EventRow>,
    entries: String,
    n: i64,
}

/// A row of events: their number, and their JSON array.
type EventRow = (i64, String);

impl Events {
    /// Publishes on `log`.
    pub fn log(&mut self, event: &LogEvent<'_>) {
        self.push("log", event);
    }

    /// Publishes on the worker's channel.
    pub fn worker(&mut self, worker: &str, event: &LogEvent<'_>) {
        self.push(&format!("w:{worker}"), event);
    }

    /// Publishes the ID of a tracked job.
    pub fn tracked(&mut self, channel: &str, id: &str) {
        self.push(channel, id);
    }

    /// Publishes that an option was set. `value` is JSON text.
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
            if self.n > 0 && self.entries.len() + entry.len() > ROW_BYTES_MAX {
                self.end_row();
            }
            self.entries
                .push(if self.entries.is_empty() { '[' } else { ',' });
            self.entries.push_str(&entry);
            self.n += 1;
        }
    }

    fn end_row(&mut self) {
        self.entries.push(']');
        let (n, entries) = (&mut self.n, &mut self.entries);
        self.full.push((std::mem::take(n), std::mem::take(entries)));
    }

    /// The events, to be stored later.
    pub fn into_deferred(mut self, at: Time) -> Option<DeferredEvents> {
        if self.n == 0 {
            return None;
        }
        self.end_row();
        Some(DeferredEvents {
            at,
            rows: self.full,
        })
    }

    /// The statements that number and insert the events. They come last in a transaction, because numbering locks a row
    /// that all servers on the database share.
    pub fn into_statements(mut self, at: Time) -> Vec<Statement> {
        if self.n == 0 {
            return Vec::new();
        }
        self.end_row();
        let mut left = count(&self.full);
        let mut statements = vec![Statement::new(NUMBER, [left.into()]).exactly(1)];
        for (n, entries) in self.full {
            let args = [left.into(), n.into(), at.0.into(), entries.into()];
            statements.push(Statement::new(ADD, args));
            left -= n;
        }
        statements
    }
}

fn count(rows: &[EventRow]) -> i64 {
    rows.iter().map(|(n, _)| n).sum()
}

/// The events of a transaction that are stored later.
#[derive(Debug)]
pub struct DeferredEvents {
    at: Time,
    rows: Vec<EventRow>,
}

impl DeferredEvents {
    /// The memory that they occupy, approximately.
    pub fn bytes(&self) -> usize {
        let rows = self.rows.iter().map(|(_, entries)| entries.len());
        size_of::<DeferredEvents>() + size_of_val(self.rows.as_slice()) + rows.sum::<usize>()
    }
}

/// Numbers and inserts the events of earlier transactions, in order.
pub async fn store(
    connection: &mut Connection,
    deferred: &[DeferredEvents],
) -> Result<(), StoreError> {
    let n: i64 = deferred.iter().map(|events| count(&events.rows)).sum();
    if n == 0 {
        return Ok(());
    }
    let number = Statement::new(NUMBER_ALL, [n.into()]).exactly(1);
    let answers = connection.run(vec![number]).await?;
    let last = answers.first().and_then(|answer| answer.rows.first());
    let last = last.ok_or(StoreError::Corrupt("the last event's number is missing"))?;
    let mut first = last.int(0)? - n + 1;
    let mut rows = Vec::with_capacity(deferred.len());
    for events in deferred {
        for (n, entries) in &events.rows {
            rows.push((first, *n, events.at.0, entries.as_str()));
            first += n;
        }
    }
    let some = rows.chunks(ROWS_BOUND_MAX);
    let writes = some.map(|some| Statement::of_rows(ADD_ALL, some));
    connection.run(writes.collect()).await.map(drop)
}

/// Rows of events that [`delete_old`] deletes, and their bytes without the last one: about as many as a transaction
/// can add. Older versions wrote rows of 2 MB.
pub const DELETED_ROWS_MAX: i64 = 32;
const DELETED_BYTES_MAX: i64 = 4 << 20;

/// The statement that deletes the oldest events above [`EVENTS_MAX`], of a bounded number of rows. Returns the bytes of
/// each row.
pub fn delete_old() -> Statement {
    let args = [EVENTS_MAX, DELETED_ROWS_MAX, DELETED_BYTES_MAX];
    Statement::new(DROP, args.map(Into::into))
}

/// Transactions between two deletions of old events, unless the last one has left some.
const DELETE_EVERY: u64 = 16;

/// When old events are deleted.
#[derive(Debug, Default)]
pub struct OldEvents {
    /// The number of committed transactions.
    transactions: u64,
    /// Whether the last deletion may have left some.
    has_more: bool,
}

impl OldEvents {
    /// Whether this transaction deletes some.
    pub fn is_deletion_due(&self, is_system_task: bool) -> bool {
        self.has_more || (!is_system_task && self.transactions.is_multiple_of(DELETE_EVERY))
    }

    /// Notes the result of [`delete_old`].
    pub fn deleted(&mut self, deleted: &[StatementResult]) -> Result<(), StoreError> {
        let rows = deleted.iter().flat_map(|result| &result.rows);
        let bytes: Vec<i64> = rows.map(|row| row.int(0)).collect::<Result<_, _>>()?;
        self.has_more = bytes.len() as i64 >= DELETED_ROWS_MAX
            || bytes.iter().sum::<i64>() >= DELETED_BYTES_MAX;
        Ok(())
    }

    pub fn note_transaction(&mut self) {
        self.transactions += 1;
    }
}

const NUMBER: &str = "UPDATE state SET last_event = last_event + $1 WHERE id = 1";

const ADD: &str = "
INSERT INTO events (first, n, at, entries)
SELECT last_event - $1 + 1, $2, $3, $4 FROM state WHERE id = 1";

const NUMBER_ALL: &str =
    "UPDATE state SET last_event = last_event + $1 WHERE id = 1 RETURNING last_event";

const ADD_ALL: &str = "
INSERT INTO events (first, n, at, entries) SELECT int(0), int(1), int(2), text(3) FROM rows($1)";

const DROP: &str = "
DELETE FROM events WHERE first <= (SELECT last_event FROM state WHERE id = 1) - $1
    AND first IN (
        SELECT s.first FROM (
            SELECT o.first, sum(o.bytes) OVER (ORDER BY o.first ROWS UNBOUNDED PRECEDING) - o.bytes AS before
            FROM (SELECT first, octet_length(entries) AS bytes FROM events
                  WHERE first <= (SELECT last_event FROM state WHERE id = 1) - $1 ORDER BY first LIMIT $2 + 0 {skip_locked}) AS o) AS s
        WHERE s.before < $3)
RETURNING octet_length(entries)";

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of events in each row.
    fn rows(sizes: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut events = Events::default();
        for size in sizes {
            events.tracked("put", &"x".repeat(size));
        }
        let deferred = events.into_deferred(Time(1)).unwrap();
        let read = |(n, entries): &EventRow| {
            let read: Vec<(String, String)> = serde_json::from_str(entries).unwrap();
            assert_eq!(read.len() as i64, *n);
            assert!(entries.len() <= ROW_BYTES_MAX + 1 || *n == 1);
            read.len()
        };
        deferred.rows.iter().map(read).collect()
    }

    #[test]
    fn a_row_has_256_kib_unless_a_single_event_is_longer() {
        assert_eq!(rows([10; 3]), [3]);
        assert_eq!(rows([60_000; 10]), [4, 4, 2]);
        assert_eq!(rows([300_000, 10, 300_000]), [1, 1, 1]);
    }
}
