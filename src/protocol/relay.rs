//! Relay v2 over HTTP: the routes of `docs/protocols/relay.md`.
//!
//! A handler reads its parameters from a [`Call`], calls one engine method and returns a response. Errors are plain
//! text.

mod call;
mod error;
mod response;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter};

use call::Call;
pub use error::ApiError;
use response::views;

use crate::engine::{Claim, Engine, Job, QueueKey};
use crate::protocol::body;
use crate::protocol::common_error::CommonError;
use crate::protocol::request::{self, json, on};

const GET: MethodFilter = MethodFilter::GET;
const HEAD: MethodFilter = MethodFilter::HEAD;
const POST: MethodFilter = MethodFilter::POST;
const PUT: MethodFilter = MethodFilter::PUT;
const PATCH: MethodFilter = MethodFilter::PATCH;
const DELETE: MethodFilter = MethodFilter::DELETE;

/// Maximum number of jobs that one request claims. A larger `num_jobs` is accepted.
const NEXT_MAX: i64 = 1_000;

/// The state of the handlers.
#[derive(Clone)]
pub struct Api {
    pub engine: Engine,
    /// Maximum size of a request body, in bytes.
    pub body_max: usize,
}

/// A response or an error.
type HandlerResult = Result<Response, ApiError>;

/// All routes of Relay.
pub fn router(api: Api) -> Router {
    Router::new()
        .route("/v2/queues/jobs", on(POST, enqueue))
        .route(
            "/v2/queues/{queue}/jobs",
            // Otherwise axum handles HEAD with the handler of GET, which claims jobs.
            on(GET, next).head(async || ApiError::from(CommonError::MethodNotAllowed)),
        )
        .route("/v2/queues/{queue}/jobs/{id}", one_job())
        // The ID can be empty, but axum's path parameters cannot.
        .route("/v2/queues/{queue}/jobs/", one_job())
        .route(
            "/v2/queues/{queue}/jobs/{id}/run-id/{run_id}",
            on(PATCH, heartbeat)
                .merge(on(PUT, requeue))
                .merge(on(DELETE, complete)),
        )
        .method_not_allowed_fallback(async || ApiError::from(CommonError::MethodNotAllowed))
        .with_state(api)
}

/// The methods of a single job.
fn one_job() -> MethodRouter<Api> {
    on(GET, get)
        .merge(on(HEAD, exists))
        .merge(on(DELETE, delete))
}

impl request::Api for Api {
    type Call = Call;
    type Error = ApiError;

    async fn read(&self, request: Request) -> Result<Call, ApiError> {
        Call::read(request, self.body_max).await
    }
}

/// `POST /v2/queues/jobs`
async fn enqueue(api: Api, call: Call) -> HandlerResult {
    let jobs = call.jobs().await?;
    api.engine.enqueue(jobs, call.mode()).await?;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// `GET /v2/queues/{queue}/jobs`: claims available jobs, without waiting for more.
async fn next(api: Api, call: Call) -> HandlerResult {
    let count = call.requested_jobs()?.min(NEXT_MAX);
    let queue = call.queue()?;
    let claim = Claim::of(queue.clone(), "", usize::try_from(count).unwrap_or(1));
    let jobs = api.engine.claim(claim, None).await?;
    if jobs.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let bytes = jobs.iter().map(Job::text_bytes).sum();
    let text = body::process(bytes, || body::text(&views(&jobs, &queue)))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// `GET /v2/queues/{queue}/jobs/{id}`
async fn get(api: Api, call: Call) -> HandlerResult {
    let queue: QueueKey = call.queue()?;
    let job = api.engine.job_in(&queue, call.id()?).await?;
    let job = job.ok_or(ApiError::NoSuchJob)?;
    let view = || json(&views([&job], &queue).first());
    Ok(body::process(job.text_bytes(), view))
}

/// `HEAD /v2/queues/{queue}/jobs/{id}`
async fn exists(api: Api, call: Call) -> HandlerResult {
    let job = api.engine.job_in(&call.queue()?, call.id()?).await?;
    job.ok_or(ApiError::NoSuchJob)?;
    Ok(StatusCode::OK.into_response())
}

/// `DELETE /v2/queues/{queue}/jobs/{id}`
async fn delete(api: Api, call: Call) -> HandlerResult {
    let ids = vec![call.id()?.to_owned()];
    api.engine.delete(call.queue()?, ids).await?;
    Ok(StatusCode::OK.into_response())
}

/// `PATCH /v2/queues/{queue}/jobs/{id}/run-id/{run_id}`
async fn heartbeat(api: Api, call: Call) -> HandlerResult {
    api.engine
        .heartbeat_run(call.run()?, call.state().await?)
        .await?;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// `PUT /v2/queues/{queue}/jobs/{id}/run-id/{run_id}`. Succeeds without a change if the run does not exist.
async fn requeue(api: Api, call: Call) -> HandlerResult {
    let (run, jobs) = (call.run()?, call.jobs().await?);
    api.engine.requeue_run(run, jobs, call.mode()).await?;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// `DELETE /v2/queues/{queue}/jobs/{id}/run-id/{run_id}`
async fn complete(api: Api, call: Call) -> HandlerResult {
    api.engine.complete_run(call.run()?).await?;
    Ok(StatusCode::OK.into_response())
}
