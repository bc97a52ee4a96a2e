//! The HTTP server: the listener, limits on connections, TLS, proxies, request IDs, the routes of all APIs, and
//! graceful shutdown.

mod accept;
mod connections;
mod guard;
mod io;
mod limits;
mod proxies;
mod reload;
mod request_id;
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

pub use limits::{Limits, raise_open_files};
pub use proxies::Proxies;
pub use reload::{Reload, hangups, reload_on};
pub use tls::Tls;

use self::accept::Transport;
use crate::assets::Assets;
use crate::auth::{Auth, Hosts};
use crate::engine::{Engine, Options, Result};
use crate::protocol::{jobq, lmstfy, qless, relay, token};
use crate::ui::http::{self as ui, Dashboard};

/// How long requests may run after the stop signal.
const GRACE: Duration = Duration::from_secs(8);

/// Maximum size of a Relay request body, as in the original.
pub const RELAY_BODY_MAX: usize = 2 << 20;

/// Maximum size of a Jobq request body; its document sets no limit.
pub const JOBQ_BODY_MAX: usize = 2 << 20;

/// Maximum size of an lmstfy job body: less than 64 kB (lmstfy's document, The limits on parameters).
pub const LMSTFY_BODY_MAX: usize = 65_535;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    pub engine: Options,
    /// Whether `/flush` is enabled.
    pub allow_flush: bool,
    pub auth: Auth,
    /// The hosts that requests may name.
    pub hosts: Hosts,
    /// The name of this server on dashboard pages.
    pub environment: Option<String>,
    /// Whether lmstfy namespaces need no token.
    pub no_auth: bool,
    /// Maximum size of an lmstfy job body, in bytes.
    pub lmstfy_body_max: usize,
    /// Maximum size of a Relay request body, in bytes.
    pub relay_body_max: usize,
    /// Maximum size of a Jobq request body, in bytes.
    pub jobq_body_max: usize,
    pub limits: Limits,
    /// Trusted proxies.
    pub proxies: Proxies,
    /// The certificate and key of HTTPS; `None` for plain HTTP.
    pub tls: Option<Arc<Tls>>,
    /// Seconds of `Strict-Transport-Security` in responses over HTTPS; `None` omits the header.
    pub hsts: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            engine: Options::default(),
            allow_flush: false,
            auth: Auth::default(),
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

/// Opens the database and serves on `listener` until `stop` completes. Then running requests finish, long polls and
/// live feeds end, and the database is closed.
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

/// [`serve`] with an open engine.
///
/// # Errors
/// None at present.
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

/// The routes of the whole server. Live feeds end when `stop` is canceled.
pub fn router(engine: &Engine, settings: &Settings, stop: &CancellationToken) -> Router {
    let qless_api = qless::Api {
        engine: engine.clone(),
        allow_flush: settings.allow_flush,
        stop: stop.clone(),
    };
    let lmstfy_api = lmstfy::Api {
        engine: engine.clone(),
        no_auth: settings.no_auth,
        body_max: settings.lmstfy_body_max,
    };
    let relay_api = relay::Api {
        engine: engine.clone(),
        body_max: settings.relay_body_max,
    };
    let jobq_api = jobq::Api {
        engine: engine.clone(),
        body_max: settings.jobq_body_max,
    };
    let dashboard = Dashboard::new(
        engine.clone(),
        Assets::load(),
        &settings.auth,
        settings.environment.as_deref(),
        settings.no_auth,
        stop.clone(),
    );
    let auth = &settings.auth;
    let routes = Router::new()
        .route("/health", get(health).with_state(engine.clone()))
        .merge(ui::router(dashboard))
        .merge(lmstfy::router(lmstfy_api))
        .merge(
            auth.relay(relay::unauthorized)
                .protect(relay::router(relay_api)),
        )
        .merge(
            auth.jobq(jobq::unauthorized)
                .protect(jobq::router(jobq_api)),
        )
        .merge(
            auth.admin(token::unauthorized)
                .protect(token::router(engine.clone())),
        )
        .merge(
            auth.qless(qless::unauthorized)
                .protect(qless::router(qless_api)),
        )
        .fallback(no_such_endpoint);
    with_layers(routes, &settings.hosts)
}

/// Adds the layers around all routes, outermost first: the request ID, the response to panics, and the checks of host
/// and site. They are one layer, because axum allocates for each.
fn with_layers(routes: Router, hosts: &Hosts) -> Router {
    routes.layer((
        middleware::from_fn(request_id::assign_request_id),
        CatchPanicLayer::custom(panicked),
        guard::layer(hosts),
    ))
}

/// The API that owns a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Dashboard,
    Token,
    Relay,
    Jobq,
    Lmstfy,
    /// Also owns all other paths.
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

/// 404 in the form of the API that owns the path.
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

/// Whether the database responds and is writable.
async fn health(State(engine): State<Engine>) -> Response {
    let problem = match engine.ping().await {
        Ok(()) if !engine.can_write() => {
            "the server can no longer write to the database; restart it\n"
        }
        Ok(()) if engine.is_full() => "the disk is full; new jobs are refused\n",
        Ok(()) => return "ok\n".into_response(),
        Err(error) => {
            tracing::error!(error = error.detail(), "the database is unavailable");
            "the database is unavailable\n"
        }
    };
    (StatusCode::SERVICE_UNAVAILABLE, problem).into_response()
}

/// A panic ends its request, not the server.
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
    async fn a_request_that_panics_gets_a_response_with_its_id() {
        let panics = get(async || -> &'static str { panic!("a bug") });
        let routes = with_layers(Router::new().route("/", panics), &Hosts::default());
        let request = Request::builder().header("host", "localhost");
        let request = request.body(Body::empty()).unwrap();
        let response = routes.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(response.headers().contains_key("x-request-id"));
    }
}
