//! The live feed: reads the counts of the whole server at most once a second, for all listeners together.
//!
//! An event says that counts or lists may have changed, and contains the current counts. If a listener misses an event,
//! the next one is sufficient.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::auth::AuthMethod;
use crate::engine::{Engine, Error, Result, keep_running};
use crate::request::network;
use crate::secret::Hash;
use crate::ui::http::Dashboard;
use crate::ui::http::authentication::{Authentication, RequestInfo, session};
use crate::ui::model::state::Counts;
use crate::ui::present;

/// Minimum time between two events, and maximum age of the counts.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long the feed waits for a write after [`INTERVAL`]. Then it reads the counts anyway, because leases expire and
/// scheduled jobs become due.
const IDLE_INTERVAL: Duration = Duration::from_secs(3);

/// Maximum time between two events, so that both sides detect a lost connection.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The latest counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Snapshot {
    /// Increases with every change.
    seq: u64,
    #[serde(flatten)]
    counts: Counts,
    /// The engine's count of changes.
    #[serde(skip)]
    version: u64,
}

/// The counts that pages show.
#[derive(Default)]
struct CachedCounts {
    /// The last ones, and when they were read.
    last: Option<(Instant, Counts)>,
    /// The last read, and when it began. While it runs, pages join it for as long as they may use its result.
    reading: Option<(Instant, Reading)>,
}

/// `None` until the read has ended.
type Reading = watch::Receiver<Option<Result<Counts>>>;

/// The feed; cheap to clone.
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

struct Inner {
    engine: Engine,
    stop: CancellationToken,
    snapshots: watch::Sender<Snapshot>,
    /// Notified when a listener subscribes.
    subscribed: Notify,
    cached: Mutex<CachedCounts>,
    streams: Streams,
}

impl Feed {
    /// Starts the task that reads the counts while there are listeners, until `stop` is canceled.
    pub fn start(engine: Engine, stop: CancellationToken) -> Feed {
        let feed = Feed(Arc::new(Inner {
            streams: Streams::of(&engine),
            engine,
            stop: stop.clone(),
            snapshots: watch::Sender::new(Snapshot::default()),
            subscribed: Notify::new(),
            cached: Mutex::default(),
        }));
        let task = feed.clone();
        tokio::spawn(async move {
            let running = keep_running("live feed", || task.clone().run());
            stop.run_until_cancelled(running).await;
        });
        feed
    }

    /// The sequence number of the latest state. A page rendered now shows that state or a later one.
    pub fn seq(&self) -> u64 {
        self.0.snapshots.borrow().seq
    }

    /// The number of open event streams.
    pub fn listeners(&self) -> usize {
        self.0.snapshots.receiver_count()
    }

    fn lock_cached(&self) -> MutexGuard<'_, CachedCounts> {
        self.0.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts of the whole server, at most 1 s old.
    pub async fn counts(&self) -> Result<Counts> {
        let mut reading = {
            let mut cached = self.lock_cached();
            if let Some((at, counts)) = cached.last
                && at.elapsed() < INTERVAL
            {
                return Ok(counts);
            }
            match &cached.reading {
                Some((began, reading))
                    if began.elapsed() < INTERVAL && reading.borrow().is_none() =>
                {
                    reading.clone()
                }
                _ => {
                    let reading = self.begin_reading();
                    cached.reading = Some((Instant::now(), reading.clone()));
                    reading
                }
            }
        };
        match reading.wait_for(Option::is_some).await {
            Ok(counts) => (*counts).clone().ok_or(Error::Unavailable)?,
            Err(_) => Err(Error::Unavailable),
        }
    }

    /// Reads the counts in a task of its own: the parts of a page that show them are not polled all the time.
    fn begin_reading(&self) -> Reading {
        let (sender, reading) = watch::channel(None);
        let feed = self.clone();
        tokio::spawn(async move {
            let counts = present::total(&feed.0.engine).await;
            if let Ok(counts) = counts {
                feed.lock_cached().last = Some((Instant::now(), counts));
            }
            sender.send_replace(Some(counts));
        });
        reading
    }

    async fn run(self) {
        let mut changes = self.0.engine.changes();
        loop {
            while self.0.snapshots.receiver_count() == 0 {
                self.0.subscribed.notified().await;
            }
            let version = *changes.borrow_and_update();
            match present::total(&self.0.engine).await {
                Ok(counts) => self.publish(version, counts).await,
                Err(error) => tracing::warn!(%error, "the live feed failed to read counts"),
            }
            sleep(INTERVAL).await;
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = sleep(IDLE_INTERVAL) => {}
                () = self.0.subscribed.notified() => {}
            }
        }
    }

    async fn publish(&self, version: u64, counts: Counts) {
        self.lock_cached().last = Some((Instant::now(), counts));
        self.0.snapshots.send_if_modified(|snapshot| {
            let changed =
                snapshot.seq == 0 || snapshot.version != version || snapshot.counts != counts;
            if changed {
                *snapshot = Snapshot {
                    seq: snapshot.seq + 1,
                    counts,
                    version,
                };
            }
            changed
        });
    }

    /// The events of one listener: the current state, each change, and heartbeats.
    fn subscribe(&self) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
        let mut snapshots = self.0.snapshots.subscribe();
        if snapshots.borrow().seq > 0 {
            snapshots.mark_changed();
        }
        self.0.subscribed.notify_one();
        let (engine, stop) = (self.0.engine.clone(), self.0.stop.clone());
        stream::unfold(snapshots, move |mut snapshots| {
            let (engine, stop) = (engine.clone(), stop.clone());
            async move {
                let kind = tokio::select! {
                    () = stop.cancelled() => return None,
                    changed = snapshots.changed() => changed.map(|()| "change").ok()?,
                    () = sleep(HEARTBEAT) => "beat",
                };
                let latest = *snapshots.borrow_and_update();
                let now = engine.now(None).0;
                Some((Ok(event(kind, &latest, now)), snapshots))
            }
        })
    }
}

fn event(kind: &'static str, snapshot: &Snapshot, now: i64) -> Event {
    #[derive(Serialize)]
    struct Data<'a> {
        #[serde(flatten)]
        snapshot: &'a Snapshot,
        /// The server's time, in microseconds since 1970.
        now: i64,
    }
    let event = Event::default()
        .event(kind)
        .id(snapshot.seq.to_string())
        .retry(INTERVAL * 2);
    event.json_data(Data { snapshot, now }).unwrap_or_default()
}

/// Maximum number of streams per session, per key, or per address of guests (for IPv6, per network).
const STREAMS_MAX: usize = 128;

/// Streams that can be open although there are few connections.
const LEAST_STREAMS: usize = 8;

/// The open streams.
#[derive(Clone)]
struct Streams {
    open: Arc<Mutex<OpenStreams>>,
    /// Maximum number of streams. Half of them can be those of guests.
    max: usize,
}

#[derive(Default)]
struct OpenStreams {
    by_listener: HashMap<Listener, usize>,
    all: usize,
    guests: usize,
}

/// Why a stream is refused.
#[derive(Debug, PartialEq, Eq)]
enum Limit {
    OfListener,
    OfServer,
}

impl Streams {
    /// An eighth of the connections, because a client whose stream is open is not displaced by new ones.
    fn of(engine: &Engine) -> Streams {
        Streams {
            open: Arc::default(),
            max: (engine.polls_max() / 6).max(LEAST_STREAMS),
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenStreams> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maximum number of streams of one listener.
    fn max_each(&self) -> usize {
        STREAMS_MAX.min(self.max / 2)
    }

    /// Counts a stream.
    fn open(&self, listener: Listener) -> Result<StreamGuard, Limit> {
        let mut open = self.lock();
        let guest = usize::from(listener.is_guest());
        if open.all >= self.max || open.guests + guest > self.max / 2 {
            return Err(Limit::OfServer);
        }
        let count = open.by_listener.entry(listener.clone()).or_default();
        if *count >= self.max_each() {
            return Err(Limit::OfListener);
        }
        *count += 1;
        open.all += 1;
        open.guests += guest;
        let streams = self.clone();
        Ok(StreamGuard { streams, listener })
    }
}

/// An open stream; dropping it decrements the count.
struct StreamGuard {
    streams: Streams,
    listener: Listener,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        open.all -= 1;
        open.guests -= usize::from(self.listener.is_guest());
        if let Some(count) = open.by_listener.get_mut(&self.listener) {
            *count -= 1;
            if *count == 0 {
                open.by_listener.remove(&self.listener);
            }
        }
    }
}

/// Whose streams are counted together.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Listener {
    /// By the hash of its secret.
    Session(String),
    /// By its name.
    Key(String),
    Guests(Option<IpAddr>),
}

impl Listener {
    fn of(info: &RequestInfo) -> Listener {
        let principal = info.principal.as_ref();
        let method = principal.map(|principal| (principal.method, &principal.identity.name));
        match (method, session(&info.headers)) {
            (Some((AuthMethod::Session, _)), Some(secret)) => {
                Listener::Session(Hash::of(secret).hex())
            }
            (Some((AuthMethod::Key, name)), _) => Listener::Key(name.clone()),
            _ => Listener::Guests(info.from.map(network)),
        }
    }

    fn is_guest(&self) -> bool {
        matches!(self, Listener::Guests(_))
    }
}

/// Completes when the listener is no longer authenticated, for example after a sign-out.
async fn unauthenticated(dashboard: Dashboard, info: RequestInfo) {
    let mut replacements = dashboard.authenticator.keyring.replacements();
    loop {
        tokio::select! {
            () = sleep(HEARTBEAT) => {}
            // Removing a key ends its sessions immediately.
            _ = replacements.changed() => {}
        }
        let (engine, headers) = (&dashboard.engine, &info.headers);
        let authenticator = &dashboard.authenticator;
        let found = authenticator.authenticate(engine, headers, info.from).await;
        // An error of the database does not end the stream.
        if matches!(
            found,
            Ok(Authentication::Unknown | Authentication::Throttled(_))
        ) {
            return;
        }
    }
}

/// `GET /ui/events`
pub async fn events(State(dashboard): State<Dashboard>, info: RequestInfo) -> Response {
    let guard = match dashboard.feed.0.streams.open(Listener::of(&info)) {
        Ok(guard) => guard,
        Err(limit) => {
            let streams = &dashboard.feed.0.streams;
            let (status, max) = match limit {
                Limit::OfListener => (StatusCode::TOO_MANY_REQUESTS, streams.max_each()),
                Limit::OfServer => (StatusCode::SERVICE_UNAVAILABLE, streams.max),
            };
            let why = format!("too many event streams are open; the limit is {max}\n");
            return (status, [(header::RETRY_AFTER, "15")], why).into_response();
        }
    };
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        // Stops nginx from buffering events.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let events = dashboard.feed.subscribe().inspect(move |_| {
        // Dropped with the stream.
        let _ = &guard;
    });
    // In a task of its own, so that a slow client does not keep what authentication needs.
    let unauthenticated = AbortOnDropHandle::new(tokio::spawn(unauthenticated(dashboard, info)));
    let events = events.take_until(unauthenticated);
    (headers, Sse::new(events)).into_response()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::engine::engine_without_tasks;

    #[test]
    fn streams_occupy_an_eighth_of_the_connections_and_half_of_these_are_for_guests() {
        let streams = Streams {
            open: Arc::default(),
            max: 300,
        };
        let open = |listener: Listener, count: usize| -> Vec<_> {
            (0..count).map(|_| streams.open(listener.clone())).collect()
        };
        let refused = |opened: &[Result<StreamGuard, Limit>]| {
            let refused = opened.iter().filter_map(|it| it.as_ref().err());
            let (of_listener, of_server): (Vec<_>, Vec<_>) =
                refused.partition(|limit| **limit == Limit::OfListener);
            (of_listener.len(), of_server.len())
        };
        let guests = |n: u8| Listener::Guests(Some([10, 0, 0, n].into()));
        let first = open(guests(1), 129);
        assert_eq!(refused(&first), (1, 0));
        let second = open(guests(2), 23);
        assert_eq!(refused(&second), (0, 1), "150 of guests");
        let key = open(Listener::Key("k".to_owned()), 128);
        let session = open(Listener::Session("s".to_owned()), 23);
        assert_eq!((refused(&key), refused(&session)), ((0, 0), (0, 1)));
        drop(first);
        let again = open(guests(2), 150);
        assert_eq!(refused(&again), (44, 0), "106 and 22");
        drop((second, key, session, again));
        let open = streams.lock();
        assert_eq!((open.all, open.guests, open.by_listener.len()), (0, 0, 0));
    }

    /// A page begins to load all its parts, and then completes one after the other; or its client disconnects.
    #[tokio::test]
    async fn the_parts_of_a_page_wait_for_the_same_counts_which_are_read_without_them() {
        let engine = engine_without_tasks().await;
        let feed = Feed::start(engine.clone(), CancellationToken::new());
        let mut parts: Vec<_> = (0..3).map(|_| Box::pin(feed.counts())).collect();
        assert!(parts.iter_mut().all(|it| it.now_or_never().is_none()));
        let (_, mut reading) = feed.lock_cached().reading.clone().unwrap();
        drop(parts.pop());
        reading.wait_for(Option::is_some).await.unwrap();
        assert!(feed.lock_cached().last.is_some());
        for part in parts {
            assert_eq!(part.await, Ok(Counts::default()));
        }
        engine.close().await;
    }
}
