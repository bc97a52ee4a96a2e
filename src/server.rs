//! The server: which front answers which path, and how it starts and stops.

mod accept;
mod client;
mod connections;
mod guard;
mod io;
mod label;
mod limits;
mod reload;
mod tls;

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

pub use client::{ClientAddress, Https, Proxies, network};
pub use io::Late;
pub use label::RequestId;
pub use limits::{Limits, raise_open_files};
pub use reload::{Reload, hangups, reload_on};
pub use tls::Tls;

use self::accept::Transport;
use crate::assets::Assets;
use crate::config::{JOBQ_BODY_MAX, LMSTFY_BODY_MAX, RELAY_BODY_MAX};
use crate::dashboard::{self, Dashboard};
use crate::doors::{Doors, Hosts};
use crate::engine::{Engine, Options, Result};
use crate::protocol::{jobq, lmstfy, qless, relay, token};

/// How long requests that are under way may take to end once the server has been told to stop.
const GRACE: Duration = Duration::from_secs(8);

/// How a server is to behave.
#[derive(Clone, Debug)]
pub struct Settings {
    pub engine: Options,
    /// Whether `/flush` may empty everything.
    pub allow_flush: bool,
    /// Who may come in.
    pub doors: Doors,
    /// Which hosts requests may name.
    pub hosts: Hosts,
    /// What the dashboard calls this server.
    pub environment: Option<String>,
    /// lmstfy's namespaces need no token.
    pub no_auth: bool,
    /// The longest body of a job of lmstfy.
    pub lmstfy_body_max: usize,
    /// The largest body of a request of Relay.
    pub relay_body_max: usize,
    /// The largest body of a request of Jobq.
    pub jobq_body_max: usize,
    /// Limits on connections.
    pub limits: Limits,
    /// Proxies whose word about clients is taken.
    pub proxies: Proxies,
    /// The certificate and key of HTTPS; without them connections are plain.
    pub tls: Option<Arc<Tls>>,
    /// Seconds of `Strict-Transport-Security` in answers over HTTPS; without them, no such header.
    pub hsts: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            engine: Options::default(),
            allow_flush: false,
            doors: Doors::default(),
            hosts: Hosts::default(),
            environment: None,
            no_auth: false,
            lmstfy_body_max: LMSTFY_BODY_MAX,
            relay_body_max: RELAY_BODY_MAX,
            jobq_body_max: JOBQ_BODY_MAX,
            limits: Limits::default(),
            proxies: Proxies::default(),
            tls: None,
            hsts: None,
        }
    }
}

/// Opens the database and serves on `listener` until `stop` ends. Then running requests finish, long
/// polls and live feeds end, and the database is closed.
///
/// # Errors
/// If the database cannot be opened.
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
/// None now; callers handle one because serving may fail.
pub async fn serve_engine(
    listener: TcpListener,
    engine: Engine,
    settings: &Settings,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let stopping = CancellationToken::new();
    let router = router(&engine, settings, &stopping);
    let (stopped, waiting) = (stopping.clone(), engine.clone());
    tokio::spawn(async move {
        stop.await;
        stopped.cancel();
        waiting.stop_waiting();
    });
    let transport = Transport {
        tls: settings.tls.clone(),
        hsts: settings.hsts,
        proxies: settings.proxies.clone(),
    };
    let server = accept::serve(
        listener,
        router,
        settings.limits,
        transport,
        stopping.clone(),
    );
    let too_late = async {
        stopping.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        () = server => {}
        () = too_late => tracing::warn!("some requests did not end before shutdown"),
    }
    engine.close().await;
    Ok(())
}

/// The whole server as one service. Its live feeds end when `stop` is cancelled.
pub fn router(engine: &Engine, settings: &Settings, stop: &CancellationToken) -> Router {
    let front = qless::Front {
        engine: engine.clone(),
        allow_flush: settings.allow_flush,
        stop: stop.clone(),
    };
    let namespaces = lmstfy::Front {
        engine: engine.clone(),
        no_auth: settings.no_auth,
        body_max: settings.lmstfy_body_max,
    };
    let runs = relay::Front {
        engine: engine.clone(),
        body_max: settings.relay_body_max,
    };
    let records = jobq::Front {
        engine: engine.clone(),
        body_max: settings.jobq_body_max,
    };
    let dashboard = Dashboard::new(engine.clone(), Assets::load(), settings, stop.clone());
    let doors = &settings.doors;
    let routes = Router::new()
        .route("/health", get(health).with_state(engine.clone()))
        .merge(dashboard::router(dashboard))
        .merge(lmstfy::router(namespaces))
        .merge(doors.relay(relay::unauthorized).before(relay::router(runs)))
        .merge(doors.jobq(jobq::unauthorized).before(jobq::router(records)))
        .merge(
            doors
                .admin(token::unauthorized)
                .before(token::router(engine.clone())),
        )
        .merge(
            doors
                .qless(qless::unauthorized)
                .before(qless::router(front)),
        )
        .fallback(no_such_endpoint);
    finished(routes, &settings.hosts)
}

/// What goes around everything, outermost first: every request has its number, one that panics is answered, and one
/// that a hostile page makes a browser send reaches no route. It is one layer, because axum allocates for each.
fn finished(routes: Router, hosts: &Hosts) -> Router {
    routes.layer((
        middleware::from_fn(label::label),
        CatchPanicLayer::custom(panicked),
        guard::layer(hosts),
    ))
}

/// Whose a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Dashboard,
    Token,
    Relay,
    Jobq,
    Lmstfy,
    /// And of everything else.
    Qless,
}

impl Owner {
    fn of(path: &str) -> Owner {
        let is_below = |root: &str| {
            let rest = path.strip_prefix(root);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if is_below("/ui") {
            Owner::Dashboard
        } else if is_below("/token") {
            Owner::Token
        } else if is_below("/v2") {
            Owner::Relay
        } else if is_below("/api/v0") {
            Owner::Jobq
        } else if path.starts_with("/api/") {
            Owner::Lmstfy
        } else {
            Owner::Qless
        }
    }
}

/// The answer to a path that nobody serves, by whose it would be.
async fn no_such_endpoint(request: Request) -> Response {
    match Owner::of(request.uri().path()) {
        Owner::Relay => relay::no_such_endpoint(request).await,
        Owner::Jobq => jobq::no_such_endpoint(request).await,
        Owner::Lmstfy => lmstfy::no_such_endpoint(request).await,
        Owner::Dashboard | Owner::Token | Owner::Qless => {
            qless::no_such_endpoint(request).await.into_response()
        }
    }
}

/// Whether the database answers, and can be written.
async fn health(State(engine): State<Engine>) -> Response {
    let trouble = match engine.ping().await {
        Ok(()) if !engine.can_write() => "the database cannot be written\n",
        Ok(()) if engine.is_full() => "the disk is full; new jobs are refused\n",
        Ok(()) => return "ok\n".into_response(),
        Err(error) => {
            tracing::error!(error = error.detail(), "the database is unavailable");
            "the database is unavailable\n"
        }
    };
    (StatusCode::SERVICE_UNAVAILABLE, trouble).into_response()
}

/// A bug ends its request, not the server.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a request panicked");
    qless::internal_error().into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::extract::Request;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn a_request_that_panics_is_answered_with_its_number() {
        let panics = get(async || -> &'static str { panic!("a bug") });
        let routes = finished(Router::new().route("/", panics), &Hosts::default());
        let request = Request::builder().header("host", "localhost");
        let request = request.body(Body::empty()).unwrap();
        let response = routes.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(response.headers().contains_key("x-request-id"));
    }
}
