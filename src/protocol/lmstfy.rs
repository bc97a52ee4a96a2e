//! lmstfy over HTTP: the routes of `docs/protocols/lmstfy.md`.
//!
//! A handler reads its parameters from a [`Call`], calls one engine method and returns a response. The token of the
//! namespace is checked while the request is read.

mod call;
mod consume;
mod dead_letter;
mod error;
mod publish;
mod response;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::MethodFilter;

use call::Call;
use consume::{acknowledge, consume, destroy, job, peek, size};
use dead_letter::{delete, peek_dead_letter, respawn};
pub use error::ApiError;
use publish::{publish, publish_several, republish};

use crate::engine::Engine;
use crate::protocol::request::{self, on, reject};

const GET: MethodFilter = MethodFilter::GET;
const PUT: MethodFilter = MethodFilter::PUT;
const DELETE: MethodFilter = MethodFilter::DELETE;

/// Namespaces that the path without `/api` excludes, because it would shadow paths of other APIs.
const RESERVED: &[&str] = &[
    "api",
    "v0",
    "v1",
    "v2",
    "get",
    "add",
    "heartbeat",
    "complete",
    "queues",
    "job",
    "token",
    "ui",
    "health",
    "metrics",
    "pkg",
];

/// The state of the handlers.
#[derive(Clone)]
pub struct Api {
    pub engine: Engine,
    /// Whether namespaces need no token.
    pub no_auth: bool,
    /// Maximum size of a job body, in bytes.
    pub body_max: usize,
}

/// A response or an error.
type HandlerResult = Result<Response, ApiError>;

/// All routes of lmstfy.
pub fn router(api: Api) -> Router {
    let queue = "/api/{namespace}/{queue}";
    let under = |path: &str| format!("{queue}/{path}");
    Router::new()
        .route(
            queue,
            on(GET, consume)
                // Otherwise axum handles HEAD with the handler of GET, which consumes a job.
                .head(async || StatusCode::METHOD_NOT_ALLOWED)
                .merge(on(PUT, publish))
                .merge(on(DELETE, destroy)),
        )
        .route(&under("bulk"), on(PUT, publish_several))
        .route(&under("peek"), on(GET, peek))
        .route(&under("size"), on(GET, size))
        .route(
            &under("job/{job_id}"),
            on(GET, job)
                .merge(on(DELETE, acknowledge))
                .merge(on(PUT, republish)),
        )
        .route(
            &under("deadletter"),
            on(GET, peek_dead_letter)
                .merge(on(PUT, respawn))
                .merge(on(DELETE, delete)),
        )
        .route(&under("deadletter/size"), on(GET, dead_letter::size))
        // The API document omits `/api` here.
        .route(
            "/{namespace}/{queue}/deadletter",
            on(DELETE, async |api, call: Call| {
                if RESERVED.contains(&call.namespace()) {
                    return Err(ApiError::NoSuchEndpoint);
                }
                delete(api, call).await
            }),
        )
        .method_not_allowed_fallback(async |request| {
            reject(request, ApiError::NoSuchEndpoint).await
        })
        .with_state(api)
}

impl request::Api for Api {
    type Call = Call;
    type Error = ApiError;

    async fn read(&self, request: Request) -> Result<Call, ApiError> {
        Call::read(request, self).await
    }
}
