//! qless over HTTP: the routes of `docs/protocols/qless.md`.
//!
//! A handler reads its fields from a [`Call`], calls one engine method and returns [`Results`]. Where the API document
//! allows it, `data` is one item or an array of items. The items of an array are processed in order and independently.

mod admin;
mod annotations;
mod call;
mod claims;
mod error;
mod events;
mod jobs;
mod maintenance;
mod options;
mod recurring;
mod response;

use std::future::Future;
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::{self, MethodFilter, MethodRouter};
use tokio_util::sync::CancellationToken;

use admin::{
    cancel, complete_jobs, failed, failed_group, forget_queue, forget_worker, job, jobs, multiget,
    pause, priority, queue, queues, stats, unfail, unpause, worker, workers,
};
pub(super) use admin::{counts, is_listed, length, worker_view};
pub(super) use annotations::TOP_TAG;
use annotations::{depends, log, tag, tagged, time_out, top_tags, track, tracked, untag, untrack};
use call::{Call, Envelope};
pub(super) use call::{Fields, ITEMS_MAX, invalid_name_reason};
use claims::{claim, claim_of_several, peek};
pub use error::ApiError;
use jobs::{add, complete, fail, heartbeat, requeue, retry};
use maintenance::{check, flush, repair};
use options::{option, options, set_option, unset_option};
use recurring::{change, recur, recurring, unrecur};
pub(super) use response::{EventView, FailureView, number};
use response::{JobView, Results, response};

use crate::engine::{Engine, Job, Time};
use crate::metrics::Gauge;

const GET: MethodFilter = MethodFilter::GET;
const POST: MethodFilter = MethodFilter::POST;
const PUT: MethodFilter = MethodFilter::PUT;
const DELETE: MethodFilter = MethodFilter::DELETE;

/// The state of the handlers.
#[derive(Clone)]
pub struct Api {
    pub engine: Engine,
    pub allow_flush: bool,
    /// Ends event streams when the server stops.
    pub stop: CancellationToken,
    /// Open event streams.
    pub streams: Gauge,
}

type HandlerResult = Result<Results, ApiError>;

/// All routes of qless, at the root.
pub fn router(api: Api) -> Router {
    Router::new()
        .route("/get", claim_routes(claim_of_several))
        .route("/get/{queue}", claim_routes(claim))
        .route("/get/{queue}/{count}", claim_routes(claim))
        .route("/peek/{queue}", on(GET, peek))
        .route("/peek/{queue}/{count}", on(GET, peek))
        .route("/add/{queue}", on(POST, add))
        .route("/requeue/{queue}", on(POST, requeue))
        .route("/heartbeat", on(POST, heartbeat))
        .route("/heartbeat/{queue}", on(POST, heartbeat))
        .route("/complete/{queue}", on(POST, complete))
        .route("/fail", on(POST, fail))
        .route("/fail/{queue}", on(POST, fail))
        .route("/retry/{queue}", on(POST, retry))
        .route("/cancel", on(POST, cancel))
        .route("/priority", on(POST, priority))
        .route("/depends", on(POST, depends))
        .route("/tag", on(POST, tag))
        .route("/untag", on(POST, untag))
        .route("/tag/{tag}", on(GET, tagged))
        .route("/tags", on(GET, top_tags))
        .route("/track", on(POST, track))
        .route("/untrack", on(POST, untrack))
        .route("/tracked", on(GET, tracked))
        .route("/timeout", on(POST, time_out))
        .route("/log", on(POST, log))
        .route("/job/{id}", on(GET, job))
        .route("/jobs", on(GET, multiget))
        .route("/jobs/complete", on(GET, complete_jobs))
        .route("/jobs/{state}/{queue}", on(GET, jobs))
        .route("/queues", on(GET, queues))
        .route(
            "/queue/{queue}",
            on(GET, queue).merge(on(DELETE, forget_queue)),
        )
        .route("/pause/{queue}", on(POST, pause))
        .route("/unpause/{queue}", on(POST, unpause))
        .route("/stats/{queue}", on(GET, stats))
        .route("/stats/{queue}/{date}", on(GET, stats))
        .route("/workers", on(GET, workers))
        .route(
            "/worker/{worker}",
            on(GET, worker).merge(on(DELETE, forget_worker)),
        )
        .route("/failed", on(GET, failed))
        .route("/failed/{group}", on(GET, failed_group))
        .route("/unfail/{queue}", on(POST, unfail))
        .route("/config", on(GET, options))
        .route(
            "/config/{option}",
            on(GET, option)
                .merge(on(PUT, set_option))
                .merge(on(DELETE, unset_option)),
        )
        .route("/recur/{queue}", on(POST, recur))
        .route(
            "/recurring/{id}",
            on(GET, recurring)
                .merge(on(POST, change))
                .merge(on(DELETE, unrecur)),
        )
        .route("/events", routing::get(events::events))
        .route("/check", on(GET, check).merge(on(POST, repair)))
        .route("/flush", on(POST, flush))
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .with_state(api)
}

/// The response to an internal error.
pub fn internal_error() -> impl IntoResponse {
    ApiError::Internal
}

/// The route of a method: reads the request, calls the handler and wraps its outcome.
fn on<F, Fut>(method: MethodFilter, handler: F) -> MethodRouter<Api>
where
    F: Fn(Api, Call) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send,
{
    routing::on(
        method,
        async move |State(api): State<Api>, call: Result<Call, ApiError>| {
            let started = Instant::now();
            let outcome = match call {
                Ok(call) => handler(api, call).await,
                Err(error) => Err(error),
            };
            response(outcome, started)
        },
    )
}

/// The routes of GET and POST for a handler that claims jobs. Rejects HEAD, which axum would handle like GET.
fn claim_routes<F, Fut>(handler: F) -> MethodRouter<Api>
where
    F: Fn(Api, Call) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send,
{
    on(GET.or(POST), handler)
        .head(async || ([(header::ALLOW, "GET,POST")], ApiError::MethodNotAllowed))
}

// ---- shared by the handlers ----

impl Api {
    fn now(&self, envelope: &Envelope<'_>) -> Result<Option<Time>, ApiError> {
        envelope.now(self.engine.trusts_client_clock())
    }

    fn view<'a>(&'a self, job: &'a Job, now: Option<Time>) -> JobView<'a> {
        let engine = &self.engine;
        JobView {
            job,
            queues: engine.known_queues(),
            tracked: engine.known_tracked(),
            now: engine.now(now),
            claimed: None,
        }
    }

    fn views<'a>(&'a self, jobs: &'a [Job], now: Option<Time>) -> Vec<JobView<'a>> {
        jobs.iter().map(|job| self.view(job, now)).collect()
    }
}
