//! Published events, for the event stream.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::store::{Row, Statement, StoreError};

/// Limits of a batch: rows, and bytes of their events (at least one row is read). Parsing them takes about 1 ms.
const ROWS_READ: i64 = 200;
const BATCH_BYTES: i64 = 256 * 1024;

/// Bytes of events after which one call ends. A caller that wants more events calls again.
const READ_BYTES_MAX: i64 = 1024 * 1024;

/// A published event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedEvent {
    /// Its number; events are numbered consecutively.
    pub seq: i64,
    pub when: Time,
    pub channel: String,
    /// JSON text: an object on `log` and the workers' channels, otherwise the job's ID.
    pub data: String,
}

/// Rows that are read together. A row has the events of one transaction.
struct Batch {
    /// The numbers of the first and the last row. A row's number is that of its first event.
    first: i64,
    last: i64,
    /// The number of the last event.
    end: i64,
    bytes: i64,
}

/// Who reads events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// A request.
    Request,
    /// The task that sends events to subscribers, for which commands wait: it does not wait for lists, and no events are
    /// deferred meanwhile.
    Follower,
}

impl Engine {
    /// Up to `limit` events with numbers above `after`, of one channel or of all; fewer, or none, after
    /// [`READ_BYTES_MAX`] of all channels. Also returns the number to continue from.
    pub async fn events(
        &self,
        after: i64,
        limit: usize,
        channel: Option<&str>,
    ) -> Result<(Vec<PublishedEvent>, i64)> {
        self.events_within(Reader::Request, READ_BYTES_MAX, after, limit, channel)
            .await
    }

    /// Like [`Engine::events`], for a task that follows all events ([`Engine::follow_events`]).
    pub async fn followed_events(
        &self,
        after: i64,
        limit: usize,
    ) -> Result<(Vec<PublishedEvent>, i64)> {
        self.events_within(Reader::Follower, READ_BYTES_MAX, after, limit, None)
            .await
    }

    /// Like [`Engine::events`], for a stream that keeps the events until its client has read them: a call ends after
    /// `bytes_max`, and of the events of a large transaction it returns only the first ones.
    pub async fn events_of_stream(
        &self,
        bytes_max: i64,
        after: i64,
        limit: usize,
        channel: Option<&str>,
    ) -> Result<(Vec<PublishedEvent>, i64)> {
        self.events_within(Reader::Request, bytes_max, after, limit, channel)
            .await
    }

    async fn events_within(
        &self,
        reader: Reader,
        bytes_max: i64,
        after: i64,
        limit: usize,
        channel: Option<&str>,
    ) -> Result<(Vec<PublishedEvent>, i64)> {
        // The statement adds 1.
        let after = after.min(i64::MAX - 1);
        let (mut found, mut last, mut bytes, mut kept) = (Vec::new(), after, 0, 0);
        while bytes < bytes_max {
            let batch = self.next_events(reader, last, bytes_max.min(BATCH_BYTES));
            let Some(batch) = batch.await? else {
                // A caller beyond the newest event continues from there, and misses none that came meanwhile.
                let newest = self.newest_event(reader).await?;
                return Ok((found, last.min(newest)));
            };
            bytes += batch.bytes;
            let range = [batch.first.into(), batch.last.into()];
            let rows = self.event_rows(reader, Statement::new(READ, range)).await?;
            for event in events(&rows)?.into_iter().filter(|event| event.seq > after) {
                last = event.seq;
                if channel.is_none_or(|channel| channel == event.channel) {
                    kept += i64::try_from(event.data.len()).unwrap_or(i64::MAX);
                    found.push(event);
                    if found.len() >= limit || kept >= bytes_max {
                        return Ok((found, last));
                    }
                }
            }
            // Old events may have been deleted meanwhile.
            last = last.max(batch.end);
        }
        Ok((found, last))
    }

    /// The next rows with events after this one, up to `bytes_max`, unless the first one has more.
    async fn next_events(
        &self,
        reader: Reader,
        after: i64,
        bytes_max: i64,
    ) -> Result<Option<Batch>> {
        let sizes = Statement::new(SIZES, [after.into(), ROWS_READ.into()]);
        let mut batch: Option<Batch> = None;
        for row in self.event_rows(reader, sizes).await? {
            let (first, n, bytes) = (row.int(0)?, row.int(1)?, row.int(2)?);
            match &mut batch {
                None => {
                    batch = Some(Batch {
                        first,
                        last: first,
                        end: first + n - 1,
                        bytes,
                    });
                }
                Some(batch) if batch.bytes + bytes <= bytes_max => {
                    batch.last = first;
                    batch.end = first + n - 1;
                    batch.bytes += bytes;
                }
                Some(_) => break,
            }
        }
        Ok(batch)
    }

    /// The number of the newest event; 0 if there are none.
    pub async fn last_event(&self) -> Result<i64> {
        self.newest_event(Reader::Request).await
    }

    /// Like [`Engine::last_event`], for a task that begins to follow all events.
    pub async fn first_followed_event(&self) -> Result<i64> {
        self.store_deferred().await;
        self.newest_event(Reader::Follower).await
    }

    /// Like [`Engine::last_event`], for a task that follows all events.
    pub async fn last_followed_event(&self) -> Result<i64> {
        self.newest_event(Reader::Follower).await
    }

    async fn newest_event(&self, reader: Reader) -> Result<i64> {
        let rows = self.event_rows(reader, Statement::new(LAST, [])).await?;
        rows.first().map_or(Ok(0), |row| Ok(row.int(0)?))
    }

    async fn event_rows(&self, reader: Reader, statement: Statement) -> Result<Vec<Row>> {
        if reader == Reader::Follower {
            return Ok(self.readers().keyed_rows(statement).await?);
        }
        self.store_deferred_events().await;
        Ok(self.readers().rows(statement).await?)
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

// The first row may begin before the wanted events.
const SIZES: &str = "
SELECT first, n, CAST(octet_length(entries) AS BIGINT) FROM events
WHERE first >= coalesce((SELECT max(first) FROM events WHERE first <= $1 + 1), 0) AND first + n - 1 > $1
ORDER BY first LIMIT $2 + 0";

const READ: &str =
    "SELECT first, at, entries FROM events WHERE first >= $1 AND first <= $2 ORDER BY first";
