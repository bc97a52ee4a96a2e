//! The HTTP of the dashboard: routes, middleware, the context and the headers of pages, static files.

pub mod audit;
pub mod authentication;
pub mod base_path;
mod client_slots;
mod compression;
mod delta;
pub mod download;
mod export_slots;
pub mod exports;
pub mod feed;
pub mod find;
pub mod forms;
pub mod guard;
mod large_forms;
pub mod login;
mod markers;
pub mod page_forms;
mod page_slots;
mod recent_pages;
pub mod rejections;
pub mod rendered_pages;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{DefaultBodyLimit, FromRef, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_axum::{
    LeptosRoutes, ResponseOptions, generate_route_list, render_app_async_with_context,
};
use tokio_util::sync::CancellationToken;
use tower_http::limit::RequestBodyLimitLayer;

use crate::assets::Assets;
use crate::auth::{Auth, AuthMethod};
use crate::engine::{Engine, Error, RESPONSE_BYTES_MAX};
use crate::memory;
use crate::redis_clients::Clients;
use crate::request::{BasePath, Https};
use crate::ui::display::Display;
use crate::ui::http::authentication::{Authenticator, Principal};
use crate::ui::http::compression::compressed;
use crate::ui::http::export_slots::ExportSlots;
use crate::ui::http::feed::Feed;
use crate::ui::http::page_slots::PageSlots;
use crate::ui::http::rendered_pages::RenderedPages;
use crate::ui::model::failure_link::FailureLink;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::{App, shell};
use crate::ui::{access, cookies, urls};

/// The header of a live page's requests for its own refresh.
pub const REFRESH: &str = "x-switchyard-refresh";

/// The time limit for rendering a page, and for opening the live feed.
const PAGE_TIMEOUT: Duration = Duration::from_millis(4_500);

/// Maximum size of a form.
const FORM_BYTES_MAX: usize = 64 << 10;

/// Maximum size of the sign-in form, which strangers can send.
const LOGIN_BYTES_MAX: usize = 8 << 10;

/// Maximum size of a form with a payload or a state: the Jobq API accepts 2 MiB, and percent-encoding can triple the
/// size.
const PAYLOAD_FORM_BYTES_MAX: usize = 8 << 20;

/// The state of the dashboard's handlers.
#[derive(Clone, FromRef)]
pub struct Dashboard {
    pub engine: Engine,
    pub feed: Feed,
    rendered_pages: RenderedPages,
    page_slots: PageSlots,
    authenticator: Arc<Authenticator>,
    pub assets: Assets,
    /// Whether lmstfy namespaces need no token.
    pub no_auth: bool,
    /// The clients that are connected over the Redis protocol.
    pub clients: Arc<Clients>,
    /// Whether the server sends alerts.
    #[from_ref(skip)]
    pub sends_alerts: bool,
    /// Links from failures to a tracker.
    pub failure_link: Option<FailureLink>,
    /// Maximum size of a payload, a state or an event in a form of Jobq, in bytes: that of a Jobq request.
    #[from_ref(skip)]
    pub jobq_body_max: usize,
    /// The exports of jobs that are running.
    export_slots: ExportSlots,
    pub leptos: LeptosOptions,
}

impl Dashboard {
    /// `stop` ends the live feeds when it is canceled.
    pub fn new(
        engine: Engine,
        assets: Assets,
        auth: &Auth,
        environment: Option<&str>,
        no_auth: bool,
        clients: Arc<Clients>,
        stop: CancellationToken,
    ) -> Self {
        let authenticator = Authenticator::new(auth, environment);
        Self {
            authenticator: Arc::new(authenticator),
            feed: Feed::start(engine.clone(), stop),
            rendered_pages: RenderedPages::default(),
            page_slots: PageSlots::default(),
            engine,
            no_auth,
            clients,
            sends_alerts: false,
            failure_link: None,
            jobq_body_max: usize::MAX,
            export_slots: ExportSlots::default(),
            leptos: assets.leptos_options(),
            assets,
        }
    }

    /// The engine for what a user reads.
    fn engine_of(&self, user: Option<&Principal>) -> Engine {
        self.engine_for(user.map_or(AuthMethod::Unauthenticated, |user| user.method))
    }

    /// The engine for what a client reads. Clients without credentials leave connections for users and APIs.
    pub fn engine_for(&self, method: AuthMethod) -> Engine {
        match method.has_credentials() {
            true => self.engine.clone(),
            false => self.engine.for_guests(),
        }
    }

    /// Whether to log that a request of a client without credentials was rejected. It must not fill the log.
    fn may_log(&self, from: Option<IpAddr>) -> bool {
        self.authenticator.throttle.may_log(from)
    }
}

/// All routes under `/ui`. Static files need no authentication: they are public.
pub fn router(state: Dashboard) -> Router {
    let context = {
        let dashboard = state.clone();
        move || provide_page_context(&dashboard)
    };
    let pages = Router::new()
        .leptos_routes_with_context(&state, generate_route_list(App), context, {
            let options = state.leptos.clone();
            move || shell(options.clone())
        })
        .route("/ui/{*rest}", get(missing_page))
        .route("/ui/find", get(find::find))
        .route("/ui/stats.csv", get(exports::statistics_as_csv))
        .route(
            "/ui/lmstfy/{namespace}/{name}/job/{id}/body",
            get(download::body),
        )
        .route("/ui/stats.json", get(exports::statistics_as_json))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            page_slots::take_slots,
        ))
        // axum does not treat `/ui/` as `/ui`.
        .route("/ui/", get(without_slash))
        .route("/ui/events", get(feed::events))
        .route("/ui/audit.csv", get(exports::audit_as_csv))
        .route("/ui/audit.json", get(exports::audit_as_json))
        .route("/ui/jobs.csv", get(exports::jobs_as_csv))
        .route("/ui/jobs.jsonl", get(exports::jobs_as_json_lines))
        // Forms that are posted to the address of a page.
        .route("/ui/check", post(page_forms::check))
        .route(
            "/ui/login",
            post(login::sign_in).layer(RequestBodyLimitLayer::new(LOGIN_BYTES_MAX)),
        )
        .route("/ui/logout", post(login::sign_out))
        .route("/ui/namespaces", post(page_forms::create_token))
        .route("/ui/namespaces/{name}", post(page_forms::create_token_in))
        .layer(RequestBodyLimitLayer::new(FORM_BYTES_MAX))
        .merge(payload_forms())
        .layer(middleware::from_fn(markers::remove))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            forms::show_errors,
        ))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            rendered_pages::share,
        ))
        .layer(middleware::from_fn(limit_time))
        // Outside of `share`, so that a shared page is sent only to users who may see it.
        .layer(middleware::from_fn_with_state(
            state.clone(),
            authentication::authenticate,
        ))
        // Outside of `authenticate`, so that redirects to the sign-in page get the base path, too.
        .layer(middleware::from_fn(base_path::add))
        .layer(middleware::from_fn(reserve_response_memory));
    Router::new()
        // These files exist in compressed forms, too.
        .route("/ui/favicon.svg", get(favicon))
        .route("/ui/pkg/{version}/{name}", get(package_file))
        .merge(compressed(pages))
        .layer(middleware::from_fn_with_state(state.clone(), guard::guard))
        .with_state(state)
}

/// Forms with payloads, which are posted to the address of their page.
fn payload_forms() -> Router<Dashboard> {
    Router::new()
        .route("/ui/put", post(page_forms::put))
        .route("/ui/edit", post(page_forms::edit_and_retry))
        .route("/ui/jobq/{name}", post(page_forms::create_record))
        .route("/ui/jobq/{name}/job/{id}", post(page_forms::change))
        .layer(middleware::from_fn(forms::reserve_form_memory))
        .layer(DefaultBodyLimit::disable())
        .layer(RequestBodyLimitLayer::new(PAYLOAD_FORM_BYTES_MAX))
}

/// Limits the total time of a request that only reads. Each database read has its own limit, but a page makes several.
/// A `HEAD` request takes as long as a `GET` request.
async fn limit_time(request: Request, next: Next) -> Response {
    if !guard::is_safe(request.method()) && !access::is_read_function(request.uri().path()) {
        return next.run(request).await;
    }
    let response = tokio::time::timeout(PAGE_TIMEOUT, next.run(request)).await;
    response.unwrap_or_else(|_| database_unavailable())
}

/// Reserves the memory of a page until it is compressed or sent. Events and exports stay streams, which keep only a part
/// in memory.
async fn reserve_response_memory(request: Request, next: Next) -> Response {
    let (parts, body) = next.run(request).await.into_parts();
    if !is_page(&parts.headers) && HttpBody::size_hint(&body).exact().is_none() {
        return Response::from_parts(parts, body);
    }
    let Ok(body) = to_bytes(body, RESPONSE_BYTES_MAX).await else {
        let why = "The page is too large.\n";
        return (StatusCode::INTERNAL_SERVER_ERROR, why).into_response();
    };
    match memory::fit_response(body.len() as u64).await {
        Ok(()) => Response::from_parts(parts, Body::from(body)),
        Err(memory::Busy) => forms::busy(),
    }
}

/// Whether a response with these headers is a page.
fn is_page(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE);
    media_type.is_some_and(|its| its.as_bytes().starts_with(b"text/html"))
}

/// Logs an error of the engine, and responds with 503.
fn unavailable(error: &Error, what: &str) -> Response {
    tracing::error!(%error, "{what}");
    database_unavailable()
}

fn database_unavailable() -> Response {
    let why = "The database is unavailable. Try again in a moment.\n";
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

/// Provides the context of a page or a server function, and sets the headers of the response.
pub fn provide_page_context(dashboard: &Dashboard) {
    let (Some(response), Some(request)) =
        (use_context::<ResponseOptions>(), use_context::<Parts>())
    else {
        return;
    };
    provide_context(dashboard.clone());
    let request = page_request(&request, dashboard);
    // From the first visit on, the page can say what is new.
    if request.path == urls::FAILURES
        && request.failures_seen.is_none()
        && !request.is_refresh
        && let Ok(cookie) = HeaderValue::from_str(&cookies::failures_seen(request.now))
    {
        response.append_header(header::SET_COOKIE, cookie);
    }
    if request.flash.is_some()
        && let Ok(cookie) = HeaderValue::from_str(&cookies::delete_flash())
    {
        response.append_header(header::SET_COOKIE, cookie);
    }
    provide_context(request);
    response.insert_header(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    // leptos_axum creates a nonce for each page; Leptos sets it on every inline script.
    let nonce = use_nonce()
        .map(|nonce| format!(" 'nonce-{nonce}'"))
        .unwrap_or_default();
    let policy = format!(
        "default-src 'none'; script-src 'self'{nonce} 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; \
         font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
}

/// Redirects to the overview. Not cached, because a proxy can choose the prefix of the address for each request.
async fn without_slash() -> impl IntoResponse {
    let headers = [(header::CACHE_CONTROL, "no-store")];
    (headers, Redirect::permanent("/ui"))
}

/// The page request that pages get as context.
fn page_request(request: &Parts, dashboard: &Dashboard) -> PageRequest {
    let header = |name: &str| {
        request
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let cookies = header("cookie").unwrap_or_default();
    let is_refresh = header(REFRESH).is_some();
    let shows_a_page = request.method == Method::GET && !is_refresh;
    let base_path = BasePath::of(&request.extensions).map_or("", BasePath::as_str);
    let principal = request.extensions.get::<Principal>();
    let user = principal.map(|principal| principal.identity.clone());
    PageRequest {
        path: request.uri.path().to_owned(),
        query: request.uri.query().unwrap_or_default().to_owned(),
        origin: origin(
            Https::is_set(&request.extensions),
            header("host"),
            base_path,
        ),
        base_path: base_path.to_owned(),
        now: dashboard.engine.now(None).0,
        is_refresh,
        seq: dashboard.feed.seq(),
        role: user.as_ref().map(|user| user.role).unwrap_or_default(),
        user: user.map(|user| user.name).unwrap_or_default(),
        method: principal.map_or(AuthMethod::Unauthenticated, |principal| principal.method),
        environment: dashboard.authenticator.environment.clone(),
        display: Display::of(|name| cookies::get(cookies, name)),
        failures_seen: cookies::get_failures_seen(cookies),
        flash: cookies::get_flash(cookies).filter(|_| shows_a_page),
    }
}

/// The address of the API, as the client reaches it.
fn origin(https: bool, host: Option<&str>, base_path: &str) -> String {
    let scheme = if https { "https" } else { "http" };
    let is_host = |host: &&str| {
        host.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte))
    };
    format!(
        "{scheme}://{}{base_path}",
        host.filter(is_host).unwrap_or("127.0.0.1:3000")
    )
}

/// The page for an unknown address.
async fn missing_page(State(dashboard): State<Dashboard>, request: Request) -> Response {
    let options = dashboard.leptos.clone();
    let context = move || provide_page_context(&dashboard);
    let render = render_app_async_with_context(context, move || shell(options.clone()));
    let is_refresh = request.headers().contains_key(REFRESH);
    let mut response = render(request).await.into_response();
    if !is_refresh {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

async fn package_file(
    State(assets): State<Assets>,
    Path((version, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    assets.package_file(&version, &name, &headers)
}

async fn favicon(State(assets): State<Assets>, headers: HeaderMap) -> Response {
    assets.public_file("favicon.svg", &headers)
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_that_only_read_have_a_time_limit() {
        let never = || std::future::pending::<Response>();
        let routes = Router::new()
            .fallback(never)
            .layer(middleware::from_fn(limit_time));
        for (method, is_limited) in [
            (Method::GET, true),
            (Method::HEAD, true),
            (Method::POST, false),
        ] {
            let request = Request::builder().method(&method).uri("/ui/queues");
            let request = request.body(Body::empty()).unwrap();
            let response = routes.clone().oneshot(request);
            let ended = tokio::time::timeout(2 * PAGE_TIMEOUT, response).await;
            let status = ended.map(|response| response.unwrap().status());
            let expected = is_limited.then_some(StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(status.ok(), expected, "{method}");
        }
    }
}
