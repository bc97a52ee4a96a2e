//! Claim jobs from one queue or several, optionally waiting for one; peek at a queue.

use std::time::Duration;

use super::answer::{Answer, JobView};
use super::call::{Call, Envelope, Fields, one_to_max, wait};
use super::refusal::Refusal;
use super::{Front, Outcome};
use crate::engine::{Claim, Order, QueueKey};

/// Maximum number of queues that one request claims from.
const QUEUES_MAX: usize = 100;

pub async fn claim(front: Front, call: Call) -> Outcome {
    let wanted = Wanted {
        queues: vec![QueueKey::qless(call.name("queue")?)],
        count: call.count()?,
        order: Order::Ordered,
        wait: call.wait()?,
    };
    hand_out(&front, &call.envelope()?, wanted).await
}

/// Claims from several queues, which a GET names in its query and a POST in its `data`.
pub async fn claim_of_several(front: Front, call: Call) -> Outcome {
    let envelope = call.envelope()?;
    let wanted = if call.has_body() {
        let fields = Fields::of(envelope.data()?)?;
        let queues = fields.names("queues")?.unwrap_or_default();
        Wanted {
            queues: several("queues", queues.iter().map(String::as_str))?,
            count: fields.integer("count", 1)?.map(limited).transpose()?,
            order: order(fields.text("order")?.as_deref())?,
            wait: wait(fields.number("wait")?.unwrap_or_default())?,
        }
    } else {
        let queues = call.names("queue")?;
        if queues.is_empty() {
            // Without a queue, the path is unknown.
            return Err(Refusal::NoSuchEndpoint);
        }
        Wanted {
            queues: several("queue", queues.into_iter())?,
            count: call.count()?,
            order: order(call.word("order"))?,
            wait: call.wait()?,
        }
    };
    hand_out(&front, &envelope, wanted).await
}

pub async fn peek(front: Front, call: Call) -> Outcome {
    let (queue, count, envelope) = (call.name("queue")?, call.count()?, call.envelope()?);
    let now = front.now(&envelope)?;
    let jobs = front
        .engine
        .peek(&QueueKey::qless(queue), count.unwrap_or(1), now)
        .await?;
    Ok(one_or_many(front.views(&jobs, now), count))
}

/// The parameters of a claim.
struct Wanted {
    queues: Vec<QueueKey>,
    count: Option<usize>,
    order: Order,
    wait: Duration,
}

async fn hand_out(front: &Front, envelope: &Envelope<'_>, wanted: Wanted) -> Outcome {
    let now = front.now(envelope)?;
    let claim = Claim {
        worker: envelope.host.clone(),
        queues: wanted.queues,
        count: wanted.count.unwrap_or(1),
        order: wanted.order,
        grant: None,
        lease_s: None,
    };
    let jobs = front.engine.claim_or_wait(claim, wanted.wait, now).await?;
    let mut views = front.views(&jobs, now);
    for view in &mut views {
        view.claimed = Some(front.engine.config());
    }
    Ok(one_or_many(views, wanted.count))
}

/// The queues, without duplicates.
fn several<'a>(
    field: &'static str,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<QueueKey>, Refusal> {
    let mut queues: Vec<QueueKey> = Vec::new();
    for name in names {
        let queue = QueueKey::qless(name);
        if !queues.contains(&queue) {
            queues.push(queue);
        }
        if queues.len() > QUEUES_MAX {
            let message = format!("one request can name at most {QUEUES_MAX} queues");
            return Err(Refusal::bad(field, &message));
        }
    }
    if queues.is_empty() {
        return Err(Refusal::bad(field, &format!("{field} is missing")));
    }
    Ok(queues)
}

fn order(word: Option<&str>) -> Result<Order, Refusal> {
    match word {
        None | Some("ordered") => Ok(Order::Ordered),
        Some("round-robin") => Ok(Order::RoundRobin),
        Some(_) => Err(Refusal::bad(
            "order",
            "order must be ordered or round-robin",
        )),
    }
}

fn limited(count: i64) -> Result<usize, Refusal> {
    one_to_max("count", usize::try_from(count).ok())
}

/// The response to a claim: the job or null for a count of 1, an array otherwise.
fn one_or_many(jobs: Vec<JobView<'_>>, count: Option<usize>) -> Answer {
    match count {
        None | Some(1) => Answer::new(&jobs.into_iter().next()),
        Some(_) => Answer::new(&jobs),
    }
}
