//! Claim jobs from one queue or several, optionally waiting for one; peek at a queue.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::value::RawValue;

use super::call::{Call, Fields, one_to_max, wait};
use super::error::ApiError;
use super::response::{JobView, Results};
use super::{Api, HandlerResult};
use crate::engine::{Claim, Order, QueueKey};
use crate::memory;
use crate::protocol::body;

/// Maximum number of queues that one request claims from.
const QUEUES_MAX: usize = 100;

pub async fn claim(api: Api, call: Call) -> HandlerResult {
    let parameters = ClaimParameters {
        queues: vec![QueueKey::qless(call.name("queue")?)],
        count: call.count()?,
        order: Order::Ordered,
        wait: call.wait()?,
    };
    claim_jobs(&api, call, parameters).await
}

/// Claims from several queues, which a GET names in its query and a POST in its `data`.
pub async fn claim_of_several(api: Api, call: Call) -> HandlerResult {
    let parameters = of_several(&call).await?;
    claim_jobs(&api, call, parameters).await
}

async fn of_several(call: &Call) -> Result<ClaimParameters, ApiError> {
    if call.has_body() {
        let envelope = call.envelope().await?;
        let data = envelope.data()?;
        body::parse(data.get().len(), || in_data(data)).await?
    } else {
        let queues = call.names("queue")?;
        if queues.is_empty() {
            // Without a queue, the path is unknown.
            return Err(ApiError::NoSuchEndpoint);
        }
        Ok(ClaimParameters {
            queues: several("queue", queues.into_iter())?,
            count: call.count()?,
            order: order(call.parameter("order"))?,
            wait: call.wait()?,
        })
    }
}

fn in_data(data: &RawValue) -> Result<ClaimParameters, ApiError> {
    let fields = Fields::of(data)?;
    let queues = fields.names("queues")?.unwrap_or_default();
    Ok(ClaimParameters {
        queues: several("queues", queues.iter().map(String::as_str))?,
        count: fields.integer("count", 1)?.map(limited).transpose()?,
        order: order(fields.text("order")?.as_deref())?,
        wait: wait(fields.number("wait")?.unwrap_or_default())?,
    })
}

pub async fn peek(api: Api, call: Call) -> HandlerResult {
    let (queue, count, envelope) = (call.name("queue")?, call.count()?, call.envelope().await?);
    let now = api.now(&envelope)?;
    let jobs = api
        .engine
        .peek(&QueueKey::qless(queue), count.unwrap_or(1), now)
        .await?;
    Ok(one_or_many(api.views(&jobs, now), count))
}

/// The parameters of a claim.
struct ClaimParameters {
    queues: Vec<QueueKey>,
    count: Option<usize>,
    order: Order,
    wait: Duration,
}

async fn claim_jobs(api: &Api, call: Call, parameters: ClaimParameters) -> HandlerResult {
    let envelope = call.envelope().await?;
    let now = api.now(&envelope)?;
    let worker = envelope.host;
    // The request may wait for a job, and does not need its body for that.
    drop(call);
    memory::release();
    let claim = Claim {
        worker,
        queues: parameters.queues,
        count: parameters.count.unwrap_or(1),
        order: parameters.order,
        grant: None,
        lease_s: None,
        grace_s: 0.0,
    };
    let jobs = api
        .engine
        .claim_or_wait(claim, parameters.wait, now)
        .await?;
    let mut views = api.views(&jobs, now);
    for view in &mut views {
        view.claimed = Some(api.engine.config());
    }
    Ok(one_or_many(views, parameters.count))
}

/// The queues, without duplicates.
fn several<'a>(
    field: &'static str,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<QueueKey>, ApiError> {
    let (mut queues, mut seen) = (Vec::new(), HashSet::new());
    for name in names {
        if seen.insert(name) {
            queues.push(QueueKey::qless(name));
        }
        if queues.len() > QUEUES_MAX {
            let message = format!("one request can name at most {QUEUES_MAX} queues");
            return Err(ApiError::bad(field, &message));
        }
    }
    if queues.is_empty() {
        return Err(ApiError::bad(field, &format!("{field} is missing")));
    }
    Ok(queues)
}

fn order(word: Option<&str>) -> Result<Order, ApiError> {
    match word {
        None | Some("ordered") => Ok(Order::Ordered),
        Some("round-robin") => Ok(Order::RoundRobin),
        Some(_) => Err(ApiError::bad(
            "order",
            "order must be ordered or round-robin",
        )),
    }
}

fn limited(count: i64) -> Result<usize, ApiError> {
    one_to_max("count", usize::try_from(count).ok())
}

/// The response to a claim: the job or null for a count of 1, an array otherwise.
fn one_or_many(jobs: Vec<JobView<'_>>, count: Option<usize>) -> Results {
    match count {
        None | Some(1) => Results::new(&jobs.into_iter().next()),
        Some(_) => Results::new(&jobs),
    }
}
