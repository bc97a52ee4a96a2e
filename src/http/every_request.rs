//! What is done for every request: it gets an ID, is checked, and is counted, and a panic ends only the request. This
//! is one service instead of four, because each would allocate and move the request once more.
//!
//! The ID is in the response's `X-Request-ID`, and in each log line of the request. The server ignores IDs from
//! clients, because a client could repeat the ID of another request.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use futures::FutureExt;
use futures::future::BoxFuture;
use tower_layer::Layer;
use tower_service::Service;
use uuid::Uuid;

use super::counts::{HttpCounts, RequestInProgress};
use super::guard::Guard;
use super::{Owner, guard, panicked};
use crate::auth::Rejected;
use crate::memory::{self, SharedBody};
use crate::request::logged::LoggedRequest;
use crate::request::{ClientAddress, RequestId};
use crate::traces::{RequestSpan, of_request};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// What counts and logs requests.
#[derive(Clone, Default)]
pub struct Observer {
    pub counts: Arc<HttpCounts>,
    /// Whether each request is logged.
    pub log_requests: bool,
}

/// The layer in front of all routes.
#[derive(Clone)]
pub struct EveryRequest(Arc<Shared>);

struct Shared {
    observer: Observer,
    guard: Guard,
}

impl EveryRequest {
    pub fn new(observer: Observer, guard: Guard) -> EveryRequest {
        EveryRequest(Arc::new(Shared { observer, guard }))
    }
}

impl<S> Layer<S> for EveryRequest {
    type Service = Observed<S>;

    fn layer(&self, inner: S) -> Observed<S> {
        Observed {
            inner,
            shared: Arc::clone(&self.0),
        }
    }
}

/// Routes behind this layer.
#[derive(Clone)]
pub struct Observed<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Service<Request> for Observed<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let in_progress = RequestInProgress::begin(&request);
        let id = Uuid::now_v7();
        let logged = LoggedRequest::new(id, &request);
        let mut text = [0; 32];
        let id = &*id.simple().encode_lower(&mut text);
        if request.uri().path().starts_with("/ui") {
            request.extensions_mut().insert(RequestId(id.to_owned()));
        }
        let (method, route) = in_progress.labels();
        let traced = RequestSpan::begin(&request, method, route, id);
        let id = HeaderValue::from_str(id).ok();
        let owner = Owner::of(request.uri().path());
        let response = match self.shared.guard.check(&request) {
            Ok(()) => Ok(self.inner.call(request)),
            Err(why) => Err((why, ClientAddress::of(request.extensions()))),
        };
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let response = logged.scope(async {
                match response {
                    Ok(response) => caught(response).await,
                    Err((why, client)) => shared.guard.reject(why, client, owner),
                }
            });
            let response = of_request(&traced, response).await;
            let response = (response, owner, id);
            Ok(finish(&shared.observer, in_progress, traced, response).await)
        })
    }
}

/// The response, or after a panic an error response.
async fn caught(response: impl Future<Output = Result<Response, Infallible>>) -> Response {
    match AssertUnwindSafe(response).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => panicked(),
    }
}

/// Counts a response, and adds the headers that all have.
async fn finish(
    observer: &Observer,
    in_progress: RequestInProgress,
    traced: Option<RequestSpan>,
    (mut response, owner, id): (Response, Owner, Option<HeaderValue>),
) -> Response {
    // A stream keeps what was reserved for it.
    if let Some(bytes) = response.body().size_hint().exact()
        && !memory::fits_response(bytes)
        && response.extensions().get::<SharedBody>().is_none()
        && Box::pin(memory::fit_response(bytes)).await.is_err()
    {
        response = guard::response(owner, Rejected::Busy);
    }
    // Outside of the span, which shows the path.
    let text = id.as_ref().and_then(|id| id.to_str().ok());
    let (text, log) = (text.unwrap_or_default(), observer.log_requests);
    in_progress.end(&observer.counts, &response, text, log);
    if let Some(traced) = traced {
        traced.end(&mut response);
    }
    let headers = response.headers_mut();
    if let Some(id) = id {
        headers.insert(X_REQUEST_ID, id);
    }
    // Responses contain payloads, and the address of a request can contain a token. The dashboard has rules of its own.
    if !matches!(owner, Owner::Dashboard) {
        headers.entry(CACHE_CONTROL).or_insert(NO_STORE);
        headers.entry(X_CONTENT_TYPE_OPTIONS).or_insert(NOSNIFF);
    }
    response
}
