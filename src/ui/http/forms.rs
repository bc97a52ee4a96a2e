//! Responses to forms: error pages, the page of the form, or a redirect with a message.

use std::error::Error;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Form, Json};
use bytes::BytesMut;
use futures::StreamExt;
use http_body_util::LengthLimitError;
use leptos::prelude::provide_context;
use leptos::server_fn::error::SERVER_FN_ERROR_HEADER;
use leptos_axum::render_app_async_with_context;
use serde::de::DeserializeOwned;

use crate::blocking::poll_blocking_if_many;
use crate::memory;
use crate::request::{ClientAddress, Https, count_parameters};
use crate::ui::actions::input::shortened;
use crate::ui::cookies;
use crate::ui::error::PageError;
use crate::ui::http::authentication::{Principal, RequestInfo, accepts};
use crate::ui::http::compression::with_slot;
use crate::ui::http::large_forms::{WHY_CHARS_MAX, end_processing, process};
use crate::ui::http::page_slots::{PageClient, PageSlot};
use crate::ui::http::{Dashboard, provide_page_context};
use crate::ui::page_request::{Flash, PageRequest, page_request};
use crate::ui::pages::shell;
use crate::ui::urls::LOGIN;
use crate::ui::urls::encoding::is_dashboard_page;

/// Maximum size of the error of a server function.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// Replaces the error of a server function with an error page. Without this, `server_fn` responds to an incomplete form
/// with status 500 and JSON, or with a redirect without a message.
pub async fn show_errors(
    State(dashboard): State<Dashboard>,
    request: Request,
    next: Next,
) -> Response {
    let info = RequestInfo::of(&request);
    let response = next.run(request).await;
    if !response.headers().contains_key(SERVER_FN_ERROR_HEADER) {
        return response;
    }
    let body = to_bytes(response.into_body(), ERROR_BYTES_MAX).await;
    let error = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok())
        .unwrap_or_else(|| PageError::Unavailable("The reason is unknown.".to_owned()));
    error_page(dashboard, info, error).await
}

/// Whether the client is a program that reads errors as JSON, such as the command line.
fn accepts_only_json(headers: &HeaderMap) -> bool {
    let accept = accepts(headers);
    accept.contains("application/json") && !accept.contains("text/html")
}

/// Maximum number of characters of an error in the log.
const LOGGED_CHARS_MAX: usize = 200;

/// The page that shows an error; JSON for programs that ask for it.
pub async fn error_page(dashboard: Dashboard, info: RequestInfo, error: PageError) -> Response {
    let status = match &error {
        PageError::Missing(_) => StatusCode::NOT_FOUND,
        PageError::Forbidden(_) => StatusCode::FORBIDDEN,
        PageError::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
        PageError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        PageError::Request(_) => StatusCode::BAD_REQUEST,
    };
    if dashboard.may_log(info.from) {
        // As a string, because the log escapes only those, and cut, because the error can quote a field of the form.
        let why = shortened(&error.to_string(), LOGGED_CHARS_MAX);
        tracing::warn!(error = why, "a dashboard request failed");
    }
    if accepts_only_json(&info.headers) {
        return (status, Json(error)).into_response();
    }
    let origin = match error {
        // This address is a page, which the user can reload.
        PageError::Forbidden(_) if !info.uri.path().starts_with("/ui/fn/") => info.uri.clone(),
        _ => origin_page(&info),
    };
    let more = move || {
        // The address of the request may accept only POST, so links lead back to the page that contains the form.
        provide_context(PageRequest {
            path: origin.path().to_owned(),
            query: origin.query().unwrap_or_default().to_owned(),
            ..page_request()
        });
        provide_context(error.clone());
    };
    // This address has no page, so the router renders the error (`MissingPage`).
    let nowhere = Uri::from_static("/ui/fn/unread");
    let mut response = render(dashboard, &nowhere, info, more).await;
    set_status(&mut response, status);
    response
}

/// Sets the status of a rendered page. That of "too many pages" stays.
pub fn set_status(response: &mut Response, status: StatusCode) {
    if response.status() != StatusCode::SERVICE_UNAVAILABLE {
        *response.status_mut() = status;
    }
}

/// Maximum number of fields of a form with a payload. The forms of the pages have far fewer.
const FIELDS_MAX: usize = 1_000;

/// Reserves memory for a form with a payload, as it arrives.
pub async fn reserve_form_memory(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let (mut form, mut rest) = (BytesMut::new(), body.into_data_stream());
    let mut is_busy = false;
    while let Some(part) = rest.next().await {
        let part = match part {
            Ok(part) => part,
            Err(error) => return unread(&error).into_response(),
        };
        let length = form.len() + part.len();
        if !is_busy && length > memory::SMALL_MAX {
            is_busy = memory::reserve(part.len()).await.is_err();
            if is_busy {
                memory::release();
            }
        }
        // The rest is discarded, because browsers read the response only after they have written the form.
        match is_busy {
            true => form = BytesMut::new(),
            false => form.extend_from_slice(&part),
        }
    }
    if is_busy {
        return busy();
    }
    if count_parameters(&form) > FIELDS_MAX {
        return (StatusCode::BAD_REQUEST, "The form has too many fields.\n").into_response();
    }
    let bytes = form.len();
    let user = parts.extensions.get::<Principal>();
    let client = PageClient::of(user, ClientAddress::of(&parts.extensions), false);
    let request = Request::from_parts(parts, Body::from(form.freeze()));
    process(bytes, client, next.run(request)).await
}

/// The status of a form that could not be read.
fn unread(error: &(dyn Error + 'static)) -> StatusCode {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    match causes.any(<dyn Error>::is::<LengthLimitError>) {
        true => StatusCode::PAYLOAD_TOO_LARGE,
        false => StatusCode::BAD_REQUEST,
    }
}

/// The response if the memory for a large form or page is not free.
pub fn busy() -> Response {
    let why = "The server is busy with other large requests. Try again in a moment.\n";
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

/// The fields of a form. Invalid fields are rejected with an error page.
pub struct PageForm<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequest<Dashboard> for PageForm<T> {
    type Rejection = Response;

    async fn from_request(request: Request, dashboard: &Dashboard) -> Result<Self, Response> {
        let info = RequestInfo::of(&request);
        match Form::from_request(request, dashboard).await {
            Ok(Form(form)) => Ok(PageForm(form)),
            Err(why) => {
                let why = shortened(&why.body_text(), WHY_CHARS_MAX);
                let why = PageError::Request(why);
                Err(error_page(dashboard.clone(), info, why).await)
            }
        }
    }
}

/// Renders the page at this address as the response to a form; `more` adds context.
pub async fn render(
    dashboard: Dashboard,
    uri: &Uri,
    info: RequestInfo,
    more: impl Fn() + Clone + Send + Sync + 'static,
) -> Response {
    match take_slot(&dashboard, uri, &info).await {
        Ok(slot) => render_in(slot, dashboard, uri, info, more).await,
        Err(busy) => busy,
    }
}

/// Waits until the page at this address may be rendered.
///
/// # Errors
/// The response, if there are too many.
pub async fn take_slot(
    dashboard: &Dashboard,
    uri: &Uri,
    info: &RequestInfo,
) -> Result<PageSlot, Response> {
    end_processing();
    let user = info.principal.as_ref();
    let slot = dashboard
        .page_slots
        .take(user, info.from, uri.path() == LOGIN);
    slot.await
}

/// Like [`render`], after waiting.
pub async fn render_in(
    slot: PageSlot,
    dashboard: Dashboard,
    uri: &Uri,
    info: RequestInfo,
    more: impl Fn() + Clone + Send + Sync + 'static,
) -> Response {
    let options = dashboard.leptos.clone();
    let queues = dashboard.engine.known_queues().count();
    let context = move || {
        provide_page_context(&dashboard);
        more();
    };
    let handler = render_app_async_with_context(context, move || shell(options.clone()));
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = uri.clone();
    *request.headers_mut() = info.headers;
    if let Some(principal) = info.principal {
        request.extensions_mut().insert(principal);
    }
    if let Some(id) = info.request_id {
        request.extensions_mut().insert(id);
    }
    if let Some(base_path) = info.base_path {
        request.extensions_mut().insert(base_path);
    }
    if info.https {
        request.extensions_mut().insert(Https);
    }
    let response = poll_blocking_if_many(queues, handler(request)).await;
    with_slot(response.into_response(), slot)
}

/// Redirects to a page, which shows the message.
pub fn redirect_with_message(info: &RequestInfo, page: &str, message: String) -> Response {
    redirect_with_undo(info, page, message, None)
}

/// Redirects to a page, which shows the message and offers to undo the operation.
pub fn redirect_with_undo(
    info: &RequestInfo,
    page: &str,
    message: String,
    undo: Option<i64>,
) -> Response {
    info.set_outcome(true, &message);
    let flash = Flash {
        done: true,
        text: message,
        undo,
    };
    let headers = [
        (header::LOCATION, page.to_owned()),
        (header::SET_COOKIE, cookies::flash(&flash)),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// The page that contains the form, from the `Referer` header; otherwise the overview.
pub fn origin_page(info: &RequestInfo) -> Uri {
    let referer = info.headers.get(header::REFERER);
    let referer = referer.and_then(|value| value.to_str().ok()?.parse::<Uri>().ok());
    let base_path = info.base_path.as_ref();
    let referer = referer.map(|uri| base_path.and_then(|base| base.rest(&uri)).unwrap_or(uri));
    referer
        .filter(|uri| is_dashboard_page(uri.path()))
        .unwrap_or_else(|| Uri::from_static("/ui"))
}
