//! Jobq over HTTP: the routes of `docs/protocols/jobq.md`.
//!
//! A handler reads its parameters from a [`Call`], calls one engine method and returns a response. Bodies are parsed
//! as JSON regardless of their content type.

mod call;
mod error;
mod response;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{self, MethodFilter};
use serde_json::json;

use call::Call;
pub use error::ApiError;
use response::{QueueView, QueuesView, job, jobs};

use crate::blocking::poll_blocking_if_many;
use crate::engine::{CompareAndSet, Engine, Queue};
use crate::protocol::common_error::CommonError;
use crate::protocol::long_list;
use crate::protocol::request::{self, json, on, reject};

const GET: MethodFilter = MethodFilter::GET;
const POST: MethodFilter = MethodFilter::POST;
const DELETE: MethodFilter = MethodFilter::DELETE;

/// The state of the handlers.
#[derive(Clone)]
pub struct Api {
    pub engine: Engine,
    /// Maximum size of a request body, in bytes.
    pub body_max: usize,
}

/// A response or an error.
type HandlerResult = Result<Response, ApiError>;

/// All routes of Jobq.
pub fn router(api: Api) -> Router {
    let queue = "/api/v0/queue/{queue}";
    let under = |path: &str| format!("{queue}/{path}");
    Router::new()
        .route(
            "/api/v0/queue",
            on(GET, queues).merge(on(POST, create_queue)),
        )
        .route(queue, on(DELETE, delete_queue))
        .route(&under("query_jobs"), on(POST, query))
        .route(&under("poll_job"), on(POST, poll))
        .route(&under("job"), on(GET, list).merge(on(POST, create)))
        .route(&under("job/{id}"), on(GET, get).merge(on(DELETE, delete)))
        .route(&under("job/{id}/state"), on(POST, advance))
        .route(&under("job/{id}/event"), on(POST, append))
        // The paths of the original server's clients, which have a single queue.
        .route("/api/v0/job", on(GET, list).merge(on(POST, query)))
        .route("/api/v0/job/create", on(POST, create_in_default_queue))
        .route("/api/v0/job/poll", on(POST, poll))
        .route("/api/v0/job/{id}", on(GET, get).merge(on(DELETE, delete)))
        .route("/api/v0/job/{id}/state", on(POST, advance))
        .route("/api/v0/job/{id}/event", on(POST, append))
        .route(
            "/api/v0/{*rest}",
            routing::any(async |request| reject(request, ApiError::NoSuchEndpoint).await),
        )
        .method_not_allowed_fallback(async |request| {
            reject(request, ApiError::from(CommonError::MethodNotAllowed)).await
        })
        .with_state(api)
}

impl request::Api for Api {
    type Call = Call;
    type Error = ApiError;

    async fn read(&self, request: Request) -> Result<Call, ApiError> {
        Call::read(request, self.body_max).await
    }
}

/// `GET /api/v0/queue`
async fn queues(api: Api, _: Call) -> HandlerResult {
    let _permit = long_list::of_queues(&api.engine).await?;
    poll_blocking_if_many(api.engine.known_queues().count(), async {
        let queues = api.engine.record_queues().await?;
        let queues = queues.iter().map(|queue| QueueView::of(queue)).collect();
        Ok(json(&QueuesView { queues }))
    })
    .await
}

/// `POST /api/v0/queue`
async fn create_queue(api: Api, call: Call) -> HandlerResult {
    let name = call.name()?;
    let id = api.engine.create_queue(&name).await?;
    Ok(json(&QueueView { id, name: &name }))
}

/// `DELETE /api/v0/queue/{queue}`
async fn delete_queue(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue(&api.engine).await?;
    api.engine.delete_queue(&queue).await?;
    Ok(json(&json!({})))
}

/// `GET /api/v0/queue/{queue}/job`
async fn list(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue(&api.engine).await?;
    let (after, limit) = call.page()?;
    let page = api.engine.records(&queue, after, limit).await?;
    let next = page.records.last().map(|record| record.id);
    Ok(jobs(&page.records, next.filter(|_| page.more))?)
}

/// `POST /api/v0/queue/{queue}/query_jobs`
async fn query(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue(&api.engine).await?;
    let (query, limit) = call.query().await?;
    let found = api.engine.query_records(&queue, &query, limit).await?;
    Ok(jobs(&found, None)?)
}

/// `POST /api/v0/queue/{queue}/poll_job`
async fn poll(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue(&api.engine).await?;
    let (query, state) = call.poll().await?;
    let claimed = api.engine.poll_record(&queue, &query, state).await?;
    Ok(job(&claimed.ok_or(ApiError::NotFound("no job matches"))?))
}

/// Creates a job with this payload and state.
async fn create_record(
    api: &Api,
    queue: &Arc<Queue>,
    (payload, state): (String, String),
) -> HandlerResult {
    let created = api.engine.create_record(queue, payload, state);
    Ok(job(&created.await?))
}

/// `POST /api/v0/queue/{queue}/job`
async fn create(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue(&api.engine).await?;
    create_record(&api, &queue, call.new_job().await?).await
}

/// `POST /api/v0/job/create`: clients of the original server send `{"payload": …, "state": …}`; its first client sends
/// only the payload.
async fn create_in_default_queue(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue(&api.engine).await?;
    create_record(&api, &queue, call.new_job_or_payload().await?).await
}

/// `GET /api/v0/queue/{queue}/job/{id}`
async fn get(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue(&api.engine).await?;
    let found = api.engine.record_by_id(&queue, call.id()?).await?;
    Ok(job(&found.ok_or_else(|| call.no_such_job())?))
}

/// `DELETE /api/v0/queue/{queue}/job/{id}`
async fn delete(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue(&api.engine).await?;
    // An invalid ID names no job, and deleting a missing job succeeds.
    if let Ok(id) = call.id() {
        api.engine.delete_record(&queue, id).await?;
    }
    Ok(json(&json!({})))
}

/// `POST /api/v0/queue/{queue}/job/{id}/state`
async fn advance(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue(&api.engine).await?;
    let (id, (old, new)) = (call.id()?, call.state_change().await?);
    match api.engine.advance_record(&queue, id, old, new).await? {
        CompareAndSet::Done(record) => Ok(job(&record)),
        CompareAndSet::Differs(record) => {
            Ok((StatusCode::CONFLICT, response::conflict(&record)).into_response())
        }
    }
}

/// `POST /api/v0/queue/{queue}/job/{id}/event`
async fn append(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue(&api.engine).await?;
    let (id, event) = (call.id()?, call.event().await?);
    Ok(job(&api.engine.append_event(&queue, id, event).await?))
}
