//! Consume, acknowledge, peek and count jobs; destroy queues.

use std::time::Duration;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde_json::json;

use super::call::Call;
use super::error::ApiError;
use super::response::JobView;
use super::{Api, HandlerResult};
use crate::engine::{Claim, Job, JobKey, Order, QueueKey, Time};
use crate::protocol::body;

/// Default lease of a consumer, in seconds (API document, Consume jobs).
const TTR_S: u32 = 120;

/// Maximum number of jobs that one request consumes.
const COUNT_MAX: u32 = 100;

/// `GET /api/:namespace/:queue[,:queue]*`. The response is a job for a count of 1, an array for more, and
/// 404 if no job is available.
pub async fn consume(api: Api, call: Call) -> HandlerResult {
    let queues = call.queues()?;
    let ttr_s: u32 = call.number("ttr", TTR_S, "invalid ttr")?;
    let timeout_s: u32 = call.number("timeout", 0, "invalid timeout")?;
    let count: u32 = call.number("count", 1, "invalid count")?;
    if !(1..=COUNT_MAX).contains(&count) {
        return Err(ApiError::Bad("invalid count"));
    }
    let claim = Claim {
        worker: String::new(),
        queues: queues.clone(),
        count: count as usize,
        order: Order::Ordered,
        grant: call.grant.clone(),
        lease_s: Some(f64::from(ttr_s)),
        grace_s: 0.0,
    };
    // The request may wait for a job, and does not need its header for that.
    drop(call);
    let wait = Duration::from_secs(u64::from(timeout_s));
    let jobs = api.engine.claim_or_wait(claim, wait, None).await?;
    let now = api.engine.now(None);
    let mut views = jobs
        .iter()
        .filter_map(|job| Some(new_job(job, api.queue_of(job, &queues)?, now)));
    if count > 1 && !jobs.is_empty() {
        let text = body::text(&views.collect::<Vec<_>>())?;
        return Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response());
    }
    let view = views.next().ok_or(ApiError::NoJobAvailable)?;
    Ok(Json(view).into_response())
}

fn new_job<'a>(job: &'a Job, queue: &'a QueueKey, now: Time) -> JobView<'a> {
    JobView::of(job, queue, now).new_job()
}

/// `DELETE /api/:namespace/:queue/job/:job_id`
pub async fn acknowledge(api: Api, call: Call) -> HandlerResult {
    let ids = vec![call.job_id().to_owned()];
    api.engine.acknowledge(call.queue()?, ids).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET /api/:namespace/:queue/peek`
pub async fn peek(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue()?;
    let found = api.engine.next_ready_job(&queue).await?;
    job_response(found, &queue)
}

/// `GET /api/:namespace/:queue/job/:job_id`
pub async fn job(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue()?;
    let key = JobKey::lmstfy(call.job_id());
    let found = api.engine.unexpired_job(&queue, &key).await?;
    job_response(found, &queue)
}

fn job_response(found: Option<(Job, Time)>, queue: &QueueKey) -> HandlerResult {
    let (job, now) = found.ok_or(ApiError::NoSuchJob)?;
    Ok(Json(JobView::of(&job, queue, now)).into_response())
}

/// `GET /api/:namespace/:queue/size`
pub async fn size(api: Api, call: Call) -> HandlerResult {
    let queue = call.queue()?;
    let size = api.engine.count_ready(&queue).await?;
    Ok(size_response(&queue, size))
}

/// The response with a number of jobs of a queue.
pub fn size_response(queue: &QueueKey, size: i64) -> axum::response::Response {
    let QueueKey {
        namespace, name, ..
    } = queue;
    Json(json!({ "namespace": namespace, "queue": name, "size": size })).into_response()
}

/// `DELETE /api/:namespace/:queue`
pub async fn destroy(api: Api, call: Call) -> HandlerResult {
    api.engine.destroy(call.queue()?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

impl Api {
    /// The one of `queues` that contains the job.
    fn queue_of<'a>(&self, job: &Job, queues: &'a [QueueKey]) -> Option<&'a QueueKey> {
        let known = self.engine.known_queues().by_id(job.queue)?;
        queues.iter().find(|queue| **queue == known.key)
    }
}
