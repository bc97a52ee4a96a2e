//! The HTTP server: the listener, limits on connections, TLS, proxies, request IDs, the routes of all APIs, and
//! graceful shutdown.

mod accept;
mod connections;
mod counts;
mod every_request;
mod guard;
mod health;
mod io;
mod limits;
mod metrics;
mod notify;
mod openapi;
mod proxies;
mod redis;
mod reload;
mod tls;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use counts::REQUESTS;
pub use limits::{Limits, raise_open_files};
pub use notify::ServiceManager;
pub use proxies::Proxies;
pub use reload::{Reload, hangups, reload_on};
pub use tls::Tls;

use self::accept::Transport;
use self::every_request::{EveryRequest, Observer};
use self::guard::Guard;
use self::health::Health;
use self::metrics::{Gauges, Monitor};
use crate::alerts;
use crate::assets::Assets;
use crate::auth::{Auth, Hosts};
use crate::engine::{Engine, EngineSettings, Result};
use crate::metrics::Gauge;
use crate::protocol::common_error::CommonError;
use crate::protocol::redis::RedisApi;
use crate::protocol::request::{reject, unauthorized};
use crate::protocol::{jobq, lmstfy, qless, relay, token};
use crate::redis_clients::Clients;
use crate::request::BasePath;
use crate::ui::http::{self as ui, Dashboard};
pub use crate::ui::model::failure_link::FailureLink;

/// How long requests may run after the stop signal.
const GRACE: Duration = Duration::from_secs(8);

/// Maximum number of connections to the listener for metrics.
const METRICS_CONNECTIONS: usize = 64;

/// How long requests for metrics may run after all other requests.
const METRICS_GRACE: Duration = Duration::from_secs(1);

/// Maximum size of a Relay request body, in bytes, as in the original.
pub const RELAY_BODY_MAX: usize = 2 << 20;

/// Maximum size of a Jobq request body, in bytes; its API document sets no limit.
pub const JOBQ_BODY_MAX: usize = 2 << 20;

/// Maximum size of an lmstfy job body, in bytes: less than 64 kB (lmstfy's document, The limits on parameters).
pub const LMSTFY_BODY_MAX: usize = 65_535;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    pub engine: EngineSettings,
    /// Whether `/flush`, and `FLUSHALL` and `FLUSHDB` over the Redis protocol, are enabled.
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
    /// The path below which clients reach the server, unless they reach it at the root.
    pub base_path: Option<BasePath>,
    /// The certificate and key of HTTPS; `None` for plain HTTP.
    pub tls: Option<Arc<Tls>>,
    /// Seconds of `Strict-Transport-Security` in responses over HTTPS; `None` omits the header.
    pub hsts: Option<u32>,
    /// Who can read the metrics at their own listener, if there is one.
    pub metrics: MetricsAccess,
    /// Whether each request is logged.
    pub log_requests: bool,
    /// Alerts are sent only with these.
    pub alerts: Option<alerts::Settings>,
    /// Links from failures to a tracker.
    pub failure_link: Option<FailureLink>,
}

/// Who can read the metrics at their own listener.
#[derive(Clone, Debug, Default)]
pub struct MetricsAccess {
    /// Whether admin credentials are required.
    pub requires_credentials: bool,
    /// The hosts that requests may name.
    pub hosts: Hosts,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            engine: EngineSettings::default(),
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
            base_path: None,
            tls: None,
            hsts: None,
            metrics: MetricsAccess::default(),
            log_requests: false,
            alerts: None,
            failure_link: None,
        }
    }
}

/// Where a server listens.
pub struct Listeners {
    pub main: TcpListener,
    /// Serves only metrics and health checks.
    pub metrics: Option<TcpListener>,
    /// Serves qless over the Redis protocol.
    pub redis: Option<TcpListener>,
}

impl From<TcpListener> for Listeners {
    fn from(main: TcpListener) -> Listeners {
        Listeners {
            main,
            metrics: None,
            redis: None,
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
    listeners: impl Into<Listeners>,
    engine: Engine,
    settings: &Settings,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let listeners = listeners.into();
    let stopping = CancellationToken::new();
    let clients = Arc::new(Clients::default());
    let (router, monitor) = routes(&engine, settings, &clients, &stopping);
    alerts::start(&engine, settings.alerts.as_ref(), &stopping);
    let health = Health::new(engine.clone(), stopping.clone());
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
        base_path: settings.base_path.clone(),
        connections: monitor.gauges().connections.clone(),
    };
    let redis_transport = Transport {
        connections: monitor.gauges().redis_connections.clone(),
        ..transport.clone()
    };
    // Health checks and metrics remain available while the last requests finish.
    let drained = CancellationToken::new();
    let monitoring = listeners.metrics.map(|listener| {
        let auth = settings.metrics.requires_credentials;
        let auth = auth.then(|| settings.auth.admin(metrics::unauthorized));
        let routes = monitor.router(auth).merge(health.router());
        let hosts = &settings.metrics.hosts;
        let routes = with_layers(routes, hosts, &settings.auth, Observer::default());
        let transport = Transport {
            base_path: None,
            connections: Gauge::default(),
            ..transport.clone()
        };
        let limits = Limits::with_connections(METRICS_CONNECTIONS);
        let stop = drained.clone();
        tokio::spawn(accept::serve(listener, routes, limits, transport, stop))
    });
    let limits = match &listeners.redis {
        Some(_) => settings.limits.of_two(),
        None => settings.limits,
    };
    let redis = serve_redis(
        listeners.redis,
        &engine,
        settings,
        limits,
        clients,
        redis_transport,
        &stopping,
    );
    let server = accept::serve(listeners.main, router, limits, transport, stopping.clone());
    let too_late = async {
        stopping.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let server = async { tokio::join!(server, redis) };
    tokio::select! {
        _ = server => {}
        () = too_late => tracing::warn!("some requests did not end before shutdown"),
    }
    drained.cancel();
    if let Some(monitoring) = monitoring {
        drop(tokio::time::timeout(METRICS_GRACE, monitoring).await);
    }
    engine.close().await;
    Ok(())
}

/// Serves qless over the Redis protocol, if it has a listener.
async fn serve_redis(
    listener: Option<TcpListener>,
    engine: &Engine,
    settings: &Settings,
    limits: Limits,
    clients: Arc<Clients>,
    transport: Transport,
    stopping: &CancellationToken,
) {
    let Some(listener) = listener else { return };
    clients.listen();
    let (auth, stop) = (&settings.auth, stopping.clone());
    let api = RedisApi::new(engine, auth, settings.allow_flush, clients, stop.clone());
    redis::serve(listener, Arc::new(api), limits, transport, stop).await;
}

/// The routes of the whole server. Live feeds end when `stop` is canceled.
pub fn router(engine: &Engine, settings: &Settings, stop: &CancellationToken) -> Router {
    routes(engine, settings, &Arc::default(), stop).0
}

/// The routes of the whole server, and what reads its metrics.
fn routes(
    engine: &Engine,
    settings: &Settings,
    clients: &Arc<Clients>,
    stop: &CancellationToken,
) -> (Router, Monitor) {
    let observer = Observer {
        log_requests: settings.log_requests,
        ..Observer::default()
    };
    let mut dashboard = Dashboard::new(
        engine.clone(),
        Assets::load(),
        &settings.auth,
        settings.environment.as_deref(),
        settings.no_auth,
        Arc::clone(clients),
        stop.clone(),
    );
    dashboard.sends_alerts = settings.alerts.is_some();
    dashboard.failure_link = settings.failure_link.clone();
    dashboard.jobq_body_max = settings.jobq_body_max;
    let gauges = Gauges::default();
    let monitor = Monitor::new(
        engine.clone(),
        Arc::clone(&observer.counts),
        dashboard.feed.clone(),
        gauges.clone(),
    );
    let auth = &settings.auth;
    let routes = Health::new(engine.clone(), stop.clone())
        .router()
        .merge(
            monitor
                .clone()
                .router(Some(auth.admin(metrics::unauthorized))),
        )
        .merge(openapi::router())
        .merge(ui::router(dashboard))
        .merge(protocols(engine, settings, stop, gauges.qless_streams))
        .fallback(no_such_endpoint);
    (
        with_layers(routes, &settings.hosts, auth, observer),
        monitor,
    )
}

/// The routes of the protocols, each behind its authentication.
fn protocols(
    engine: &Engine,
    settings: &Settings,
    stop: &CancellationToken,
    streams: Gauge,
) -> Router {
    let qless_api = qless::Api {
        engine: engine.clone(),
        allow_flush: settings.allow_flush,
        stop: stop.clone(),
        streams,
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
    let auth = &settings.auth;
    Router::new()
        .merge(lmstfy::router(lmstfy_api))
        .merge(
            auth.relay(|| unauthorized(relay::ApiError::from(CommonError::Unauthorized)))
                .protect(relay::router(relay_api)),
        )
        .merge(
            auth.jobq(|| unauthorized(jobq::ApiError::from(CommonError::Unauthorized)))
                .protect(jobq::router(jobq_api)),
        )
        .merge(
            auth.admin(token::unauthorized)
                .protect(token::router(engine.clone())),
        )
        .merge(
            auth.qless(|| unauthorized(qless::ApiError::Unauthorized))
                .protect(qless::router(qless_api)),
        )
}

/// Adds what is done for every request in front of all routes.
fn with_layers(routes: Router, hosts: &Hosts, auth: &Auth, observer: Observer) -> Router {
    routes.layer(EveryRequest::new(
        observer,
        Guard::new(hosts, &auth.throttle),
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
        Owner::Relay => reject(request, relay::ApiError::NoSuchEndpoint).await,
        Owner::Jobq => reject(request, jobq::ApiError::NoSuchEndpoint).await,
        Owner::Lmstfy => reject(request, lmstfy::ApiError::NoSuchEndpoint).await,
        Owner::Dashboard | Owner::Token | Owner::Qless => {
            reject(request, qless::ApiError::NoSuchEndpoint).await
        }
    }
}

/// Logs a panic, and returns the error response. A panic ends its request, not the server.
fn panicked() -> Response {
    tracing::error!("a request panicked");
    qless::internal_error().into_response()
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "otlp")]
    mod traces;

    use axum::body::Body;
    use axum::extract::Request;
    use axum::http::{StatusCode, Uri};
    use tower::ServiceExt;

    use super::*;
    use crate::memory::{self, SharedBody};

    #[tokio::test]
    async fn a_request_that_panics_gets_a_response_with_its_id() {
        let panics = async || -> &'static str { panic!("a bug") };
        let routes = with_layers(
            Router::new().fallback(panics),
            &Hosts::default(),
            &Auth::default(),
            Observer::default(),
        );
        let request = Request::builder().header("host", "localhost");
        let request = request.body(Body::empty()).unwrap();
        let response = routes.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(response.headers().contains_key("x-request-id"));
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_belong_to_the_server_need_no_memory() {
        let routes = openapi::router().fallback(async |uri: Uri| {
            let mut response = "x".repeat(memory::SMALL_MAX + 1).into_response();
            if uri.path() == "/shared" {
                response.extensions_mut().insert(SharedBody);
            }
            response
        });
        let (hosts, auth) = (Hosts::default(), Auth::default());
        let routes = with_layers(routes, &hosts, &auth, Observer::default());
        let _all = memory::reserve_until_dropped(memory::MEMORY_MAX).await;
        for (path, expected) in [
            ("/large", StatusCode::SERVICE_UNAVAILABLE),
            ("/shared", StatusCode::OK),
            ("/openapi/qless.json", StatusCode::OK),
        ] {
            let request = Request::get(path).header("host", "localhost");
            let request = request.body(Body::empty()).unwrap();
            let response = memory::of_request(routes.clone().oneshot(request)).await.0;
            assert_eq!(response.unwrap().status(), expected, "{path}");
        }
    }
}
