//! The dashboard's side of HTTP: its pages, their files, and what every page carries. The pages
//! themselves stand in `app`.

use axum::{
    Router,
    extract::{FromRef, Path, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use leptos::{nonce::use_nonce, prelude::*};
use leptos_axum::{
    LeptosRoutes, ResponseOptions, generate_route_list, render_app_async_with_context,
};

use tokio_util::sync::CancellationToken;

use crate::{
    app::{App, shell},
    assets::Assets,
    engine::Engine,
};

/// What the dashboard's handlers may ask for.
#[derive(Clone, FromRef)]
pub struct Dashboard {
    pub engine: Engine,
    pub assets: Assets,
    pub leptos: LeptosOptions,
    /// Cancelled when the server stops; live feeds then end.
    pub stop: CancellationToken,
}

impl Dashboard {
    pub fn new(engine: Engine, assets: Assets, stop: CancellationToken) -> Self {
        Self {
            engine,
            leptos: assets.leptos_options(),
            assets,
            stop,
        }
    }
}

/// Everything under `/ui`.
pub fn router(state: Dashboard) -> Router {
    Router::new()
        .leptos_routes_with_context(&state, generate_route_list(App), page_context, {
            let options = state.leptos.clone();
            move || shell(options.clone())
        })
        // `/ui/` is a route of its own in axum; it would reach the fallback.
        .route("/ui/", get(|| async { Redirect::permanent("/ui") }))
        .route("/ui/favicon.svg", get(favicon))
        .route("/ui/pkg/{version}/{name}", get(package_file))
        .route("/ui/{*rest}", get(missing_page))
        .with_state(state)
}

/// Runs before a page is rendered or a server function is called: hands them what they need
/// (`provide_context`), and gives the answer its Content-Security-Policy.
fn page_context() {
    let Some(response) = use_context::<ResponseOptions>() else {
        return;
    };
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

/// A page that no route knows: the shell around "Not found".
async fn missing_page(State(options): State<LeptosOptions>, request: Request) -> Response {
    let render = render_app_async_with_context(page_context, move || shell(options.clone()));
    let mut response = render(request).await.into_response();
    *response.status_mut() = StatusCode::NOT_FOUND;
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
