//! What becomes of a form that its server function cannot take. server_fn answers an incomplete form with
//! status 500 and JSON, or leads a browser back without a word; a person must read why nothing was done.

use axum::Form;
use axum::body::to_bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use leptos::prelude::provide_context;
use leptos::server_fn::error::SERVER_FN_ERROR_HEADER;
use leptos_axum::render_app_async_with_context;
use serde::de::DeserializeOwned;

use super::entry::Asked;
use super::{Dashboard, page_context};
use crate::api::Trouble;
use crate::api::desk::flash_cookie;
use crate::app::shell;
use crate::app::visit::{self, Flash, is_ours};
use crate::request::Https;

/// The longest error that is read.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// Puts a page in the place of a server function's error.
pub async fn explain(State(dashboard): State<Dashboard>, request: Request, next: Next) -> Response {
    let asked = Asked::by(&request);
    let response = next.run(request).await;
    if !response.headers().contains_key(SERVER_FN_ERROR_HEADER) {
        return response;
    }
    let body = to_bytes(response.into_body(), ERROR_BYTES_MAX).await;
    let trouble = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok())
        .unwrap_or_else(|| Trouble::Unavailable("The reason is unknown.".to_owned()));
    page(dashboard, asked, trouble).await
}

/// The page that says why a form could not be answered.
pub async fn page(dashboard: Dashboard, asked: Asked, trouble: Trouble) -> Response {
    let status = match &trouble {
        Trouble::Missing(_) => StatusCode::NOT_FOUND,
        Trouble::Forbidden(_) => StatusCode::FORBIDDEN,
        Trouble::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        Trouble::Request(_) => StatusCode::BAD_REQUEST,
    };
    tracing::warn!(path = asked.uri.path(), %trouble, "a dashboard request failed");
    let origin = match trouble {
        // One that can be looked at again.
        Trouble::Forbidden(_) if !asked.uri.path().starts_with("/ui/fn/") => asked.uri.clone(),
        _ => origin_page(&asked.headers),
    };
    let more = move || {
        // The page's own address takes forms only; what leads back leads to where the form stood.
        provide_context(visit::Visit {
            path: origin.path().to_owned(),
            query: origin.query().unwrap_or_default().to_owned(),
            ..visit::visit()
        });
        provide_context(trouble.clone());
    };
    // A page that answers its forms itself would show itself.
    let nowhere = Uri::from_static("/ui/fn/unread");
    let mut response = answer(dashboard, &nowhere, asked, more).await;
    *response.status_mut() = status;
    response
}

/// A form that is answered by the page on which it stands. One that cannot be read is answered with a page that says
/// so.
pub struct Filled<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequest<Dashboard> for Filled<T> {
    type Rejection = Response;

    async fn from_request(request: Request, dashboard: &Dashboard) -> Result<Self, Response> {
        let asked = Asked::by(&request);
        match Form::from_request(request, dashboard).await {
            Ok(Form(form)) => Ok(Filled(form)),
            Err(why) => {
                let why = Trouble::Request(why.body_text());
                Err(page(dashboard.clone(), asked, why).await)
            }
        }
    }
}

/// The page at this address as the answer to a form, with what `more` puts into its context.
pub async fn answer(
    dashboard: Dashboard,
    uri: &Uri,
    asked: Asked,
    more: impl Fn() + Clone + Send + Sync + 'static,
) -> Response {
    let options = dashboard.leptos.clone();
    let context = move || {
        page_context(&dashboard);
        more();
    };
    let render = render_app_async_with_context(context, move || shell(options.clone()));
    let mut request = Request::new(axum::body::Body::empty());
    *request.uri_mut() = uri.clone();
    *request.headers_mut() = asked.headers;
    if let Some(principal) = asked.principal {
        request.extensions_mut().insert(principal);
    }
    if let Some(id) = asked.request_id {
        request.extensions_mut().insert(id);
    }
    if asked.https {
        request.extensions_mut().insert(Https);
    }
    render(request).await.into_response()
}

/// To a page, which tells what was done.
pub fn lead_to(asked: &Asked, page: &str, done: String) -> Response {
    asked.say(true, &done);
    let flash = Flash {
        done: true,
        text: done,
    };
    let headers = [
        (header::LOCATION, page.to_owned()),
        (header::SET_COOKIE, flash_cookie(&flash)),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// The page on which the form stood, if the browser says so.
pub fn origin_page(headers: &HeaderMap) -> Uri {
    let referer = headers
        .get(header::REFERER)
        .and_then(|value| value.to_str().ok()?.parse::<Uri>().ok());
    referer
        .filter(|uri| is_ours(uri.path()))
        .unwrap_or_else(|| Uri::from_static("/ui"))
}
