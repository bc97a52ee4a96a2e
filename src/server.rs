//! The server: which front answers which path, and how it starts and stops.

use std::any::Any;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use crate::assets::Assets;
use crate::dashboard::{self, Dashboard};
use crate::engine::{Engine, Error, Options, Result};
use crate::protocol::qless;

/// How long requests that are under way may take to end once the server has been told to stop.
const GRACE: Duration = Duration::from_secs(8);

/// How a server is to behave.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub engine: Options,
    /// Whether `/flush` may empty everything.
    pub allow_flush: bool,
}

/// Opens the database and serves on `listener` until `stop` ends. Then running requests finish, long
/// polls and live feeds end, and the database is closed.
///
/// # Errors
/// If the database cannot be opened, or the listener fails.
pub async fn serve(
    listener: TcpListener,
    settings: &Settings,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let engine = Engine::open(&settings.engine).await?;
    serve_engine(listener, engine, settings, stop).await
}

/// [`serve`] with an engine that is open already.
///
/// # Errors
/// If the listener fails.
pub async fn serve_engine(
    listener: TcpListener,
    engine: Engine,
    settings: &Settings,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let stopping = CancellationToken::new();
    let router = router(&engine, settings, &stopping);
    // Answers are small and wanted at once.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "a connection would not send at once");
        }
    });
    let (stopped, waiting) = (stopping.clone(), engine.clone());
    tokio::spawn(async move {
        stop.await;
        stopped.cancel();
        waiting.stop_waiting();
    });
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let server =
        axum::serve(listener, service).with_graceful_shutdown(stopping.clone().cancelled_owned());
    let too_late = async {
        stopping.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let outcome = tokio::select! {
        outcome = server.into_future() => outcome.map_err(|error| Error::Store(error.to_string())),
        () = too_late => {
            tracing::warn!("some requests did not end in time");
            Ok(())
        }
    };
    engine.close().await;
    outcome
}

/// The whole server as one service. Its live feeds end when `stop` is cancelled.
pub fn router(engine: &Engine, settings: &Settings, stop: &CancellationToken) -> Router {
    let front = qless::Front {
        engine: engine.clone(),
        allow_flush: settings.allow_flush,
        stop: stop.clone(),
    };
    let dashboard = Dashboard::new(engine.clone(), Assets::load(), stop.clone());
    Router::new()
        .route("/health", get(health).with_state(engine.clone()))
        .merge(dashboard::router(dashboard))
        .merge(qless::router(front))
        .fallback(qless::no_such_endpoint)
        .layer(CatchPanicLayer::custom(panicked))
}

/// Whether the database answers.
async fn health(State(engine): State<Engine>) -> Response {
    match engine.queues(None).await {
        Ok(_) => "ok\n".into_response(),
        Err(error) => {
            tracing::error!(%error, "the database does not answer");
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "the database does not answer\n",
            )
                .into_response()
        }
    }
}

/// A bug ends its request, not the server.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a request panicked");
    qless::internal_error().into_response()
}
