//! Health checks: `/health`, `/health/live` and `/health/ready`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, Error};

/// How long `/health` and `/health/ready` reuse the result of reading from the database, so that checks, which need no
/// credentials, cost nothing however many there are.
const REUSED_FOR: Duration = Duration::from_secs(1);

/// The time limit for reading from the database. Load balancers commonly wait longer.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

const NOT_WRITABLE: &str = "the server can no longer write to the database; restart it\n";
const FULL: &str = "the disk is full; new jobs are refused\n";
const UNAVAILABLE: &str = "the database is unavailable\n";

/// The state of the checks. Cheap to clone.
#[derive(Clone)]
pub struct Health {
    engine: Engine,
    stopping: CancellationToken,
    /// When the database was read last, and whether it responded.
    last: Arc<Mutex<Option<(Instant, bool)>>>,
}

impl Health {
    /// `stopping` is canceled when the server begins to stop.
    pub fn new(engine: Engine, stopping: CancellationToken) -> Health {
        Health {
            engine,
            stopping,
            last: Arc::default(),
        }
    }

    /// The routes of the checks.
    pub fn router(self) -> Router {
        Router::new()
            .route("/health", get(health))
            .route("/health/live", get(live))
            .route("/health/ready", get(ready))
            .with_state(self)
    }

    /// Whether the database responds. Checks at the same time share one read, which is also logged once. It continues
    /// if the client disconnects, so that clients that do so cannot start further reads.
    async fn is_reachable(&self) -> bool {
        let mut last = Arc::clone(&self.last).lock_owned().await;
        if let Some((at, is_reachable)) = *last
            && at.elapsed() < REUSED_FOR
        {
            return is_reachable;
        }
        let engine = self.engine.clone();
        let check = tokio::spawn(async move {
            let read = timeout(READ_TIMEOUT, engine.ping()).await;
            let outcome = read.unwrap_or(Err(Error::Unavailable));
            if let Err(error) = &outcome {
                tracing::error!(error = error.detail(), "the database is unavailable");
            }
            *last = Some((Instant::now(), outcome.is_ok()));
            outcome.is_ok()
        });
        check.await.unwrap_or(false)
    }
}

fn response(problem: Option<&'static str>) -> Response {
    match problem {
        None => "ok\n".into_response(),
        Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, problem).into_response(),
    }
}

/// `GET /health`: whether the database responds and is writable.
async fn health(State(health): State<Health>) -> Response {
    response(if health.is_reachable().await {
        write_problem(&health.engine)
    } else {
        Some(UNAVAILABLE)
    })
}

/// `GET /health/live`: fails if a restart of the process would help. Does not read from the database, because a
/// restart does not end an outage of the database.
async fn live(State(health): State<Health>) -> Response {
    response((!health.engine.can_write()).then_some(NOT_WRITABLE))
}

/// `GET /health/ready`: whether a load balancer should send requests here. The server accepts requests only after it
/// has run the migrations.
async fn ready(State(health): State<Health>) -> Response {
    if health.stopping.is_cancelled() {
        return response(Some("the server is stopping\n"));
    }
    response(match write_problem(&health.engine) {
        None if !health.is_reachable().await => Some(UNAVAILABLE),
        problem => problem,
    })
}

/// Why the server cannot write, or add jobs.
fn write_problem(engine: &Engine) -> Option<&'static str> {
    if !engine.can_write() {
        return Some(NOT_WRITABLE);
    }
    engine.is_disk_full().then_some(FULL)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;
    use crate::engine::engine_without_tasks;

    #[tokio::test]
    async fn checks_share_one_read_of_the_database() {
        let health = Health::new(engine_without_tasks().await, CancellationToken::new());
        // A result that differs from that of another read shows whether there was one.
        let later = Instant::now() + REUSED_FOR * 3_600;
        *health.last.lock().await = Some((later, false));
        for path in ["/health", "/health/ready"] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let answer = health.clone().router().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
        }
    }
}
