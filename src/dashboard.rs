//! The dashboard's side of HTTP: its pages, their files, and what every page carries. The pages
//! themselves stand in `app`.

mod audit;
mod download;
mod entry;
mod feed;
mod find;
mod forms;
mod guard;
mod login;
mod numbers;
mod put;
mod records;
mod refused;
mod shared;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use axum::{
    Router,
    extract::{DefaultBodyLimit, FromRef, Path, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use leptos::{nonce::use_nonce, prelude::*};
use leptos_axum::{
    LeptosRoutes, ResponseOptions, generate_route_list, render_app_async_with_context,
};
use tokio_util::sync::CancellationToken;
use tower_http::{CompressionLevel, compression::CompressionLayer, limit::RequestBodyLimitLayer};

pub use audit::Noted;
use entry::{Entry, Principal};
pub use feed::Feed;
use shared::Shared;

use crate::{
    app::{
        App,
        display::Display,
        shell,
        visit::{self, AuthMethod, Flash, Visit},
    },
    assets::Assets,
    auth::Auth,
    engine::Engine,
    request::Https,
};

/// Sent by the live island when it fetches the page anew.
const REFRESH: &str = "x-switchyard-refresh";

/// The longest time until a page, or the beginning of the live feed, is answered.
const ANSWER_MAX: Duration = Duration::from_millis(4_500);

/// The longest form that is read.
const FORM_BYTES_MAX: usize = 64 << 10;

/// The longest form with a payload or a state. Jobq's API takes them up to 2 MiB long, and percent-encoding makes three
/// bytes of one.
const PAYLOAD_FORM_BYTES_MAX: usize = 8 << 20;

/// How much of the processor's time a page is worth: at 4, brotli takes a millisecond for what gzip does not come near.
const COMPRESSION: CompressionLevel = CompressionLevel::Precise(4);

/// What the dashboard's handlers may ask for.
#[derive(Clone, FromRef)]
pub struct Dashboard {
    pub engine: Engine,
    pub feed: Feed,
    shared: Shared,
    entry: Arc<Entry>,
    pub assets: Assets,
    /// Whether lmstfy's namespaces stand open to everybody.
    pub no_auth: bool,
    pub leptos: LeptosOptions,
}

impl Dashboard {
    /// Live feeds end when `stop` is cancelled.
    pub fn new(
        engine: Engine,
        assets: Assets,
        auth: &Auth,
        environment: Option<&str>,
        no_auth: bool,
        stop: CancellationToken,
    ) -> Self {
        let entry = Entry::new(auth, environment);
        Self {
            entry: Arc::new(entry),
            feed: Feed::start(engine.clone(), stop),
            shared: Shared::default(),
            engine,
            no_auth,
            leptos: assets.leptos_options(),
            assets,
        }
    }
}

/// Everything under `/ui`. Behind its door stands all but the files, which are the same for everybody and tell
/// nothing.
pub fn router(state: Dashboard) -> Router {
    let context = {
        let dashboard = state.clone();
        move || page_context(&dashboard)
    };
    let pages = Router::new()
        .leptos_routes_with_context(&state, generate_route_list(App), context, {
            let options = state.leptos.clone();
            move || shell(options.clone())
        })
        // `/ui/` is a route of its own in axum; it would reach the fallback.
        .route("/ui/", get(|| async { Redirect::permanent("/ui") }))
        .route("/ui/events", get(feed::events))
        .route("/ui/audit.csv", get(audit::csv))
        .route("/ui/audit.json", get(audit::json))
        .route("/ui/find", get(find::find))
        // Where the pages stand, too: what answers the form is one of them.
        .route("/ui/login", post(login::sign_in))
        .route("/ui/logout", post(login::sign_out))
        .route("/ui/namespaces", post(tokens::create))
        .route("/ui/namespaces/{name}", post(tokens::create_in))
        .route(
            "/ui/lmstfy/{namespace}/{name}/job/{id}/body",
            get(download::body),
        )
        .route("/ui/stats.csv", get(numbers::csv))
        .route("/ui/stats.json", get(numbers::json))
        .route("/ui/{*rest}", get(missing_page))
        .layer(RequestBodyLimitLayer::new(FORM_BYTES_MAX))
        .merge(payload_forms())
        .layer(middleware::from_fn_with_state(
            state.clone(),
            forms::explain,
        ))
        .layer(middleware::from_fn_with_state(state.clone(), shared::share))
        .layer(middleware::from_fn(in_time))
        // Unauthenticated of what is shared: a page that was made for one is handed to others.
        .layer(middleware::from_fn_with_state(state.clone(), entry::enter));
    Router::new()
        .route("/ui/favicon.svg", get(favicon))
        .route("/ui/pkg/{version}/{name}", get(package_file))
        .merge(pages)
        .layer(CompressionLayer::new().quality(COMPRESSION))
        .layer(middleware::from_fn(guard::guard))
        .with_state(state)
}

/// The forms with payloads, which their pages answer themselves: where the pages stand, too.
fn payload_forms() -> Router<Dashboard> {
    Router::new()
        .route("/ui/put", post(put::put))
        .route("/ui/jobq/{name}", post(records::create))
        .route("/ui/jobq/{name}/job/{id}", post(records::change))
        .layer(DefaultBodyLimit::disable())
        .layer(RequestBodyLimitLayer::new(PAYLOAD_FORM_BYTES_MAX))
}

/// A page asks the database several times; where each time takes as long as it may, it is turned away as a whole.
async fn in_time(request: Request, next: Next) -> Response {
    if request.method() != Method::GET {
        return next.run(request).await;
    }
    let answered = tokio::time::timeout(ANSWER_MAX, next.run(request)).await;
    answered.unwrap_or_else(|_| {
        let why = "The database is unavailable. Try again in a moment.\n";
        (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
    })
}

/// Runs before a page is rendered or a server function is called: hands them what they need
/// (`provide_context`), and gives the answer its Content-Security-Policy.
fn page_context(dashboard: &Dashboard) {
    let (Some(response), Some(request)) =
        (use_context::<ResponseOptions>(), use_context::<Parts>())
    else {
        return;
    };
    provide_context(dashboard.clone());
    let visit = visit(&request, dashboard);
    if visit.flash.is_some() {
        let used = format!(
            "{}=; Path=/ui; Max-Age=0; HttpOnly; SameSite=Strict",
            visit::FLASH_COOKIE
        );
        if let Ok(used) = HeaderValue::from_str(&used) {
            response.append_header(header::SET_COOKIE, used);
        }
    }
    provide_context(visit);
    response.insert_header(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    // leptos_axum makes a fresh nonce for each page; Leptos puts it on every inline script it writes.
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

/// What the page may know about the request.
fn visit(request: &Parts, dashboard: &Dashboard) -> Visit {
    let header = |name: &str| {
        request
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let cookies = header("cookie").unwrap_or_default();
    let refresh = header(REFRESH).is_some();
    let shows_a_page = request.method == Method::GET && !refresh;
    let principal = request.extensions.get::<Principal>();
    let who = principal.map(|principal| principal.identity.clone());
    Visit {
        path: request.uri.path().to_owned(),
        query: request.uri.query().unwrap_or_default().to_owned(),
        origin: origin(Https::is_set(&request.extensions), header("host")),
        now: dashboard.engine.now(None).0,
        refresh,
        seq: dashboard.feed.seq(),
        role: who.as_ref().map(|who| who.role).unwrap_or_default(),
        who: who.map(|who| who.name).unwrap_or_default(),
        method: principal.map_or(AuthMethod::Unauthenticated, |principal| principal.method),
        environment: dashboard.entry.environment.clone(),
        display: Display::of(|name| cookie(cookies, name)),
        flash: cookie(cookies, visit::FLASH_COOKIE)
            .filter(|_| shows_a_page)
            .and_then(flash),
    }
}

/// Where the API is, as the client calls it.
fn origin(https: bool, host: Option<&str>) -> String {
    let scheme = if https { "https" } else { "http" };
    let is_host = |host: &&str| {
        host.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte))
    };
    format!(
        "{scheme}://{}",
        host.filter(is_host).unwrap_or("127.0.0.1:3000")
    )
}

fn cookie<'a>(cookies: &'a str, name: &str) -> Option<&'a str> {
    cookies
        .split(';')
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

fn flash(value: &str) -> Option<Flash> {
    let (outcome, text) = value.split_once('.')?;
    Some(Flash {
        done: outcome == "done",
        text: visit::name_of(text),
    })
}

/// A page that no route knows: the shell around "Not found".
async fn missing_page(State(dashboard): State<Dashboard>, request: Request) -> Response {
    let options = dashboard.leptos.clone();
    let context = move || page_context(&dashboard);
    let render = render_app_async_with_context(context, move || shell(options.clone()));
    let refresh = request.headers().contains_key(REFRESH);
    let mut response = render(request).await.into_response();
    if !refresh {
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
