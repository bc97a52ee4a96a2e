//! Published events, for the event stream.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::store::{Row, Statement, StoreError};

/// Groups whose events are read at once.
const GROUPS_READ: usize = 200;

/// An event, as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedEvent {
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
    ) -> Result<(Vec<PublishedEvent>, i64)> {
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

fn events(rows: &[Row]) -> Result<Vec<PublishedEvent>, StoreError> {
    let mut events = Vec::new();
    for row in rows {
        let (first, when, entries) = (row.int(0)?, Time(row.int(1)?), row.text(2)?);
        let entries: Vec<(String, String)> = serde_json::from_str(&entries)
            .map_err(|_| StoreError::Corrupt("events that cannot be read"))?;
        events.extend(
            (first..)
                .zip(entries)
                .map(|(seq, (channel, data))| PublishedEvent {
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

// The first group may hold events of which only the later ones are wanted.
const READ: &str = "
SELECT first, at, entries FROM events
WHERE first >= coalesce((SELECT max(first) FROM events WHERE first <= $1 + 1), 0) AND first + n - 1 > $1
ORDER BY first LIMIT $2 + 0";
