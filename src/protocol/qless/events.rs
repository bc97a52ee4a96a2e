//! Events: a list of past ones, or a stream (server-sent events).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, stream};
use serde::ser::{Serialize, SerializeMap, Serializer};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::sleep;

use super::call::Call;
use super::error::ApiError;
use super::response::{Results, number, response};
use super::{Api, HandlerResult};
use crate::auth::Rejected;
use crate::engine::{EventsFollowed, PublishedEvent};
use crate::memory::holding;
use crate::metrics::GaugeGuard;
use crate::protocol::{body, long_list};

/// Maximum number of events that a stream reads at a time.
const READY_MAX: usize = 1_000;

/// Bytes of events that a stream reads at a time, and keeps until its client has read them.
const READY_BYTES: i64 = 256 << 10;

/// Maximum number of streams that keep so much at once.
const FULL_STREAMS_MAX: usize = 128;

static FULL_STREAMS: Semaphore = Semaphore::const_new(FULL_STREAMS_MAX);

/// Bytes that each of the other streams reads at a time. So streams whose clients read nothing occupy little memory.
const OTHERS_READY_BYTES: i64 = 16 << 10;

/// Maximum number of streams. Each reads the database after every commit.
const STREAMS_MAX: usize = 1_000;

/// Streams that can be open although there are few connections.
const LEAST_STREAMS: usize = 8;

/// Maximum number of lists that are read and serialized at once. The memory of their events is counted only afterwards.
const LISTS_MAX: usize = 8;

static LISTS: Semaphore = Semaphore::const_new(LISTS_MAX);

/// Default number of events in a list.
const LIMIT: usize = 100;

/// How long a stream collects new events before it sends them.
const BATCH_DELAY: Duration = Duration::from_millis(25);

/// Interval of keep-alive messages, by which each side notices that the other has disconnected.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// `GET /events`
pub async fn events(
    State(api): State<Api>,
    headers: HeaderMap,
    call: Result<Call, ApiError>,
) -> Response {
    let started = Instant::now();
    let call = match call {
        Ok(call) => call,
        Err(error) => return response(Err(error), started),
    };
    let accepts = headers.get(header::ACCEPT).map(|value| value.to_str());
    if !accepts.is_some_and(|accepts| accepts.is_ok_and(|it| it.contains("text/event-stream"))) {
        return response(list(api, call).await, started);
    }
    let resumed = headers.get(HeaderName::from_static("last-event-id"));
    let resumed = resumed.and_then(|id| id.to_str().ok()?.parse().ok());
    match event_stream(api, &call, resumed).await {
        Ok(events) => {
            let headers = [
                (header::CACHE_CONTROL, "no-store"),
                // Otherwise nginx buffers events.
                (HeaderName::from_static("x-accel-buffering"), "no"),
            ];
            let alive = KeepAlive::new().interval(KEEP_ALIVE);
            (headers, Sse::new(events.stream()).keep_alive(alive)).into_response()
        }
        Err(error) => response(Err(error), started),
    }
}

async fn list(api: Api, call: Call) -> HandlerResult {
    let (after, limit) = (call.number("after")?, call.limit(LIMIT)?);
    api.now(&call.envelope().await?)?;
    let place = long_list::wait_for(&LISTS).await?;
    let list = async {
        let events = api
            .engine
            .events(after.unwrap_or_default(), limit, call.parameter("channel"));
        let (events, last) = events.await?;
        let events: Vec<_> = events.iter().map(EventView).collect();
        Ok(Results::new(&Events {
            events: &events,
            last,
        }))
    };
    holding(place, list).await
}

#[derive(serde::Serialize)]
struct Events<'a> {
    events: &'a [EventView<'a>],
    last: i64,
}

/// An event in a response.
struct EventView<'a>(&'a PublishedEvent);

impl Serialize for EventView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PublishedEvent {
            seq,
            when,
            channel,
            data,
        } = self.0;
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("seq", seq)?;
        map.serialize_entry("when", &number(when.seconds()))?;
        map.serialize_entry("channel", channel)?;
        map.serialize_entry("data", &body::stored(data))?;
        map.end()
    }
}

async fn event_stream(
    api: Api,
    call: &Call,
    resumed: Option<i64>,
) -> Result<EventStream, ApiError> {
    // A client whose stream is open is not displaced by new ones. So at most a sixteenth of the connections.
    let max = (api.engine.polls_max() / 12).clamp(LEAST_STREAMS, STREAMS_MAX);
    let open = api.streams.guard();
    if api.streams.get() > max {
        return Err(ApiError::Rejected(Rejected::Busy));
    }
    let followed = api.engine.follow_events();
    let after = match resumed.or(call.number("after")?) {
        Some(after) => after,
        None => api.engine.last_event().await?,
    };
    Ok(EventStream {
        changes: api.engine.changes(),
        channel: call.parameter("channel").map(str::to_owned),
        last: after,
        ready: VecDeque::new(),
        full: None,
        _open: open,
        _followed: followed,
        api,
    })
}

/// An event stream of one client.
struct EventStream {
    api: Api,
    changes: watch::Receiver<u64>,
    channel: Option<String>,
    last: i64,
    ready: VecDeque<PublishedEvent>,
    /// The permit to keep [`READY_BYTES`], while `ready` has events.
    full: Option<SemaphorePermit<'static>>,
    /// Counts the stream while it is open.
    _open: GaugeGuard,
    _followed: EventsFollowed,
}

impl EventStream {
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, async |mut events| {
            let event = events.next().await?;
            let text = serde_json::to_string(&EventView(&event)).unwrap_or_default();
            let message = Event::default().id(event.seq.to_string()).data(text);
            Some((Ok(message), events))
        })
    }

    /// The next event; `None` if the server stops or the database fails.
    async fn next(&mut self) -> Option<PublishedEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if self.ready.is_empty() {
                    self.full = None;
                }
                return Some(event);
            }
            self.changes.mark_unchanged();
            let engine = &self.api.engine;
            let full = FULL_STREAMS.try_acquire().ok();
            let bytes = match full {
                Some(_) => READY_BYTES,
                None => OTHERS_READY_BYTES,
            };
            let channel = self.channel.as_deref();
            let events = engine.events_of_stream(bytes, self.last, READY_MAX, channel);
            let (events, last) = events.await.ok()?;
            let is_ahead = last > self.last;
            self.last = last;
            self.ready = events.into();
            self.full = full.filter(|_| !self.ready.is_empty());
            if is_ahead {
                continue;
            }
            tokio::select! {
                () = self.api.stop.cancelled() => return None,
                changed = self.changes.changed() => changed.ok()?,
            }
            sleep(BATCH_DELAY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::extract::Request;
    use axum::http::StatusCode;
    use tokio_util::sync::CancellationToken;
    use tower::ServiceExt;

    use super::*;
    use crate::engine::engine_without_tasks;
    use crate::metrics::Gauge;

    async fn api() -> Api {
        Api {
            engine: engine_without_tasks().await,
            allow_flush: false,
            stop: CancellationToken::new(),
            streams: Gauge::default(),
        }
    }

    #[tokio::test]
    async fn streams_whose_clients_read_nothing_keep_few_events() {
        let api = api().await;
        let (count, bytes_each) = (100, 4_000);
        for n in 0..count {
            let (option, value) = (n.to_string(), "1".repeat(bytes_each));
            api.engine
                .configure(&option, Some(value), None)
                .await
                .unwrap();
        }
        let mut streams = Vec::new();
        for _ in 0..200 {
            let mut stream = EventStream {
                changes: api.engine.changes(),
                channel: None,
                last: 0,
                ready: VecDeque::new(),
                full: None,
                _open: api.streams.guard(),
                _followed: api.engine.follow_events(),
                api: api.clone(),
            };
            assert_eq!(stream.next().await.unwrap().seq, 1);
            streams.push(stream);
        }
        let events = streams.iter().flat_map(|stream| &stream.ready);
        let bytes: usize = events.map(|event| event.data.len()).sum();
        assert!(bytes < 40 << 20, "{bytes} bytes");
        // A stream that keeps few still gets all.
        let mut last = streams.pop().unwrap();
        for seq in 2..=count {
            assert_eq!(last.next().await.unwrap().seq, seq);
        }
        assert_eq!(FULL_STREAMS.available_permits(), 0);
        drop(streams);
        assert_eq!(FULL_STREAMS.available_permits(), FULL_STREAMS_MAX);
    }

    #[tokio::test]
    async fn a_list_beyond_the_limit_waits_2_s() {
        let api = api().await;
        let routes = Router::new().fallback(events).with_state(api);
        let list = async || {
            let request = Request::get("/events?host=w").body(Body::empty()).unwrap();
            routes.clone().oneshot(request).await.unwrap().status()
        };
        let others = u32::try_from(LISTS_MAX - 1).unwrap();
        let places = LISTS.acquire_many(others).await.unwrap();
        assert_eq!(list().await, StatusCode::OK);
        let last = LISTS.acquire().await.unwrap();
        tokio::time::pause();
        let began = tokio::time::Instant::now();
        assert_eq!(list().await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(began.elapsed().as_secs(), 2);
        tokio::time::resume();
        drop((places, last));
        assert_eq!(list().await, StatusCode::OK);
    }
}
