//! The live feed: one measurement for everybody who listens, at most once a second.
//!
//! An event is a hint that the numbers or lists may have changed, with the numbers as they stand. It is
//! never more than that: who misses one sees the next, and loses a second.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use serde::Serialize;
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Dashboard;
use super::entry::{Asked, Authentication, session};
use crate::api::turn;
use crate::api::views::Tally;
use crate::app::visit::AuthMethod;
use crate::engine::{Engine, Result};
use crate::request::network;
use crate::secret::Hash;

/// The least time between two events, and for how long a measurement counts as fresh.
const PACE: Duration = Duration::from_secs(1);

/// How often is measured though nothing was written: leases are lost and delays end by themselves.
const LULL: Duration = Duration::from_secs(3);

/// How often a listener hears something, so that both sides know when the other has gone.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How things stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct News {
    /// Grows with every change; the same number means the same state.
    seq: u64,
    #[serde(flatten)]
    tally: Tally,
    /// The engine's count of changes.
    #[serde(skip)]
    version: u64,
}

/// The feed; cheap to clone.
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

struct Inner {
    engine: Engine,
    stop: CancellationToken,
    news: watch::Sender<News>,
    /// Wakes the measuring when the first listener comes.
    wanted: Notify,
    glance: Mutex<Option<(Instant, Tally)>>,
    streams: Streams,
}

impl Feed {
    /// Begins to measure, as long as somebody listens and until `stop`.
    pub fn start(engine: Engine, stop: CancellationToken) -> Feed {
        let feed = Feed(Arc::new(Inner {
            engine,
            stop: stop.clone(),
            news: watch::Sender::new(News::default()),
            wanted: Notify::new(),
            glance: Mutex::new(None),
            streams: Streams::default(),
        }));
        let measuring = feed.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(measuring.measure()).await;
        });
        feed
    }

    /// The state that a page made now shows at least.
    pub fn seq(&self) -> u64 {
        self.0.news.borrow().seq
    }

    /// The numbers of the whole server, not older than a second.
    pub async fn glance(&self) -> Result<Tally> {
        let mut glance = self.0.glance.lock().await;
        if let Some((at, tally)) = *glance
            && at.elapsed() < PACE
        {
            return Ok(tally);
        }
        let tally = turn::total(&self.0.engine).await?;
        *glance = Some((Instant::now(), tally));
        Ok(tally)
    }

    async fn measure(&self) {
        let mut changes = self.0.engine.changes();
        loop {
            while self.0.news.receiver_count() == 0 {
                self.0.wanted.notified().await;
            }
            let version = *changes.borrow_and_update();
            match turn::total(&self.0.engine).await {
                Ok(tally) => self.publish(version, tally).await,
                Err(error) => tracing::warn!(%error, "the live feed failed to read counts"),
            }
            sleep(PACE).await;
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = sleep(LULL) => {}
                () = self.0.wanted.notified() => {}
            }
        }
    }

    async fn publish(&self, version: u64, tally: Tally) {
        *self.0.glance.lock().await = Some((Instant::now(), tally));
        self.0.news.send_if_modified(|news| {
            let changed = news.seq == 0 || news.version != version || news.tally != tally;
            if changed {
                *news = News {
                    seq: news.seq + 1,
                    tally,
                    version,
                };
            }
            changed
        });
    }

    /// What one listener hears: how things stand, then every change, and a word now and then.
    fn listen(&self) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
        let mut news = self.0.news.subscribe();
        if news.borrow().seq > 0 {
            news.mark_changed();
        }
        self.0.wanted.notify_one();
        let (engine, stop) = (self.0.engine.clone(), self.0.stop.clone());
        stream::unfold(news, move |mut news| {
            let (engine, stop) = (engine.clone(), stop.clone());
            async move {
                let kind = tokio::select! {
                    () = stop.cancelled() => return None,
                    changed = news.changed() => changed.map(|()| "change").ok()?,
                    () = sleep(HEARTBEAT) => "beat",
                };
                let latest = *news.borrow_and_update();
                let now = engine.now(None).0;
                Some((Ok(event(kind, &latest, now)), news))
            }
        })
    }
}

fn event(kind: &'static str, news: &News, now: i64) -> Event {
    #[derive(Serialize)]
    struct Data<'a> {
        #[serde(flatten)]
        news: &'a News,
        /// The server's time, in microseconds.
        now: i64,
    }
    let event = Event::default()
        .event(kind)
        .id(news.seq.to_string())
        .retry(PACE * 2);
    event.json_data(Data { news, now }).unwrap_or_default()
}

/// The most streams of one session, of one key, or of the guests at one address.
const STREAMS_MAX: usize = 128;

/// How many streams each listener has open.
#[derive(Clone, Default)]
struct Streams(Arc<StdMutex<HashMap<String, usize>>>);

impl Streams {
    /// Counts one more stream of a listener; `None` if it has as many as it may have.
    fn open(&self, listener: String) -> Option<Counted> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.entry(listener.clone()).or_default();
        if *count >= STREAMS_MAX {
            return None;
        }
        *count += 1;
        let streams = self.clone();
        Some(Counted { streams, listener })
    }
}

/// An open stream, which counts until this is dropped.
struct Counted {
    streams: Streams,
    listener: String,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let all = &self.streams.0;
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.listener) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.listener);
            }
        }
    }
}

/// The key under which the streams of a request are counted.
fn listener(asked: &Asked) -> String {
    let principal = asked.principal.as_ref();
    let method = principal.map(|principal| (principal.method, &principal.identity.name));
    match (method, session(&asked.headers), asked.from) {
        (Some((AuthMethod::Session, _)), Some(secret), _) => Hash::of(secret).hex(),
        (Some((AuthMethod::Key, name)), ..) => format!("key {name}"),
        (.., from) => from
            .map(network)
            .map(|it| it.to_string())
            .unwrap_or_default(),
    }
}

/// Ends when the listener may not come in any longer, for example because it has signed out.
async fn is_out(dashboard: Dashboard, asked: Asked) {
    let mut replacements = dashboard.entry.keyring.replacements();
    loop {
        tokio::select! {
            () = sleep(HEARTBEAT) => {}
            // A session whose key was removed ends at once.
            _ = replacements.changed() => {}
        }
        let (engine, headers) = (&dashboard.engine, &asked.headers);
        let principal = dashboard.entry.principal(engine, headers, asked.from).await;
        // Without an answer of the database nothing is known.
        if matches!(
            principal,
            Ok(Authentication::Unknown | Authentication::Throttled(_))
        ) {
            return;
        }
    }
}

/// `GET /ui/events`
pub async fn events(State(dashboard): State<Dashboard>, asked: Asked) -> Response {
    let Some(counted) = dashboard.feed.0.streams.open(listener(&asked)) else {
        let why = format!("too many event streams are open; the limit is {STREAMS_MAX}\n");
        let later = [(header::RETRY_AFTER, "15")];
        return (StatusCode::TOO_MANY_REQUESTS, later, why).into_response();
    };
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        // Else nginx would collect events before it passes them on.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let events = dashboard.feed.listen().inspect(move |_| {
        // The stream is open as long as this closure lives.
        let _ = &counted;
    });
    let events = events.take_until(is_out(dashboard, asked));
    (headers, Sse::new(events)).into_response()
}
