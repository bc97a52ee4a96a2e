//! `GET /metrics`: the server's metrics in Prometheus' text format or in OpenMetrics.
//!
//! A scrape reads from the database like a page of the dashboard. For the newest statistics, it waits for the writer
//! for at most 500 ms. Scrapes within one second share one response.

mod families;
mod process;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use self::families::{DatabaseMetrics, Snapshot};
use super::counts::HttpCounts;
use crate::auth::{AuthLayer, BASIC};
use crate::engine::{Engine, Result};
use crate::metrics::Gauge;
use crate::metrics::text::Format;
use crate::ui::http::feed::Feed;

/// How long a response is reused.
const REUSED_FOR: Duration = Duration::from_secs(1);

/// The time limit for reading from the database. After it, the response has all metrics that do not come from there.
const READ_TIMEOUT: Duration = Duration::from_secs(4);

/// What the metrics are read from. Cheap to clone.
#[derive(Clone)]
pub struct Monitor(Arc<Inner>);

struct Inner {
    engine: Engine,
    http: Arc<HttpCounts>,
    feed: Feed,
    gauges: Gauges,
    /// The last response in each [`Format`], and when it was made.
    responses: [Mutex<Option<(Instant, Bytes)>>; 2],
}

/// The gauges that the listener and the protocols share with the monitor.
#[derive(Clone, Default)]
pub struct Gauges {
    /// Open connections of clients.
    pub connections: Gauge,
    /// Open connections over the Redis protocol.
    pub redis_connections: Gauge,
    /// Open event streams of qless.
    pub qless_streams: Gauge,
}

impl Monitor {
    pub fn new(engine: Engine, http: Arc<HttpCounts>, feed: Feed, gauges: Gauges) -> Monitor {
        Monitor(Arc::new(Inner {
            engine,
            http,
            feed,
            gauges,
            responses: Default::default(),
        }))
    }

    /// What the listeners and the protocols count.
    pub fn gauges(&self) -> &Gauges {
        &self.0.gauges
    }

    /// The route of the metrics; `auth` is the layer in front of it, `None` if they need no credentials.
    pub fn router(self, auth: Option<AuthLayer>) -> Router {
        let routes = Router::new()
            .route("/metrics", get(metrics))
            .with_state(self);
        // The texts repeat the same names, so the fastest level saves nine tenths.
        let compression = CompressionLayer::new().quality(CompressionLevel::Fastest);
        let routes = match auth {
            Some(auth) => auth.protect(routes),
            None => routes,
        };
        routes.layer(compression)
    }

    /// The metrics as text, at most 1 s old.
    async fn text(self, format: Format) -> Bytes {
        let [prometheus, open_metrics] = &self.0.responses;
        let response = match format {
            Format::Prometheus => prometheus,
            Format::OpenMetrics => open_metrics,
        };
        let mut response = response.lock().await;
        if let Some((at, text)) = &*response
            && at.elapsed() < REUSED_FOR
        {
            return text.clone();
        }
        let began = Instant::now();
        let database = match timeout(READ_TIMEOUT, self.read_database()).await {
            Ok(Ok(found)) => Some(found),
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to read metrics from the database");
                None
            }
            Err(_) => {
                tracing::warn!("the database did not respond in time to a request for metrics");
                None
            }
        };
        let snapshot = Snapshot {
            monitor: self.clone(),
            database,
            began,
        };
        // On a blocking thread, because it reads files and can write megabytes.
        let text = tokio::task::spawn_blocking(move || snapshot.to_text(format)).await;
        let text = Bytes::from(text.unwrap_or_default());
        *response = Some((Instant::now(), text.clone()));
        text
    }

    async fn read_database(&self) -> Result<DatabaseMetrics> {
        let engine = &self.0.engine;
        Ok(DatabaseMetrics {
            info: engine.database_info().await?,
            queues: engine.queues(None).await?,
            workers: engine.count_workers().await?,
        })
    }
}

/// The response to a request without valid credentials.
pub fn unauthorized() -> Response {
    let why = "admin credentials are required\n";
    let challenge = [(header::WWW_AUTHENTICATE, BASIC)];
    (StatusCode::UNAUTHORIZED, challenge, why).into_response()
}

/// `GET /metrics`
async fn metrics(State(monitor): State<Monitor>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    // In a task of its own, so that it completes for the others if this client disconnects.
    let text = tokio::spawn(monitor.text(format)).await;
    let text = text.unwrap_or_default();
    if text.is_empty() {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static(format.content_type()),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::VARY, HeaderValue::from_static("accept")),
    ];
    (headers, text).into_response()
}
