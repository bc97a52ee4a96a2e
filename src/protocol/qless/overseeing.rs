//! Requests of operators: jobs, failures, queues and workers.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::answer::{Answer, JobView, number};
use super::call::{Call, Fields};
use super::refusal::Refusal;
use super::working::on_items;
use super::{Front, Outcome, recurring};
use crate::engine::{
    Durations, EffectiveState, Error, Job, JobKey, NAME_BYTES_MAX, Protocol, QueueCounts, QueueKey,
    WorkerCounts,
};

/// Default number of failures that `/unfail` moves (qless-core, Unfail).
const UNFAIL: i64 = 25;

/// A failure group can be named `failed-retries-` followed by a queue name.
const GROUP_BYTES_MAX: usize = NAME_BYTES_MAX + "failed-retries-".len();

// ---- jobs ----

pub async fn cancel(front: Front, call: Call) -> Outcome {
    let envelope = call.envelope()?;
    let now = front.now(&envelope)?;
    let (items, array) = envelope.items()?;
    let ids = items
        .into_iter()
        .map(|item| Fields::of_id_or_item(item)?.required_name("id"))
        .collect::<Result<Vec<_>, _>>()?;
    front
        .engine
        .cancel(ids.iter().map(JobKey::qless).collect(), now)
        .await?;
    Answer::of_items(ids.into_iter().map(Ok).collect(), array)
}

pub async fn job(front: Front, call: Call) -> Outcome {
    let (id, envelope) = (call.name("id")?, call.envelope()?);
    let now = front.now(&envelope)?;
    match front.engine.job(&JobKey::qless(id)).await? {
        Some(job) => Ok(Answer::new(&front.view(&job, now))),
        None => Err(Error::NoSuchJob { id: id.to_owned() }.into()),
    }
}

pub async fn multiget(front: Front, call: Call) -> Outcome {
    let (ids, envelope) = (call.names("id")?, call.envelope()?);
    let now = front.now(&envelope)?;
    let keys: Vec<_> = ids.into_iter().map(JobKey::qless).collect();
    let jobs = front.engine.jobs_by_key(&keys).await?;
    let views: Vec<_> = jobs
        .iter()
        .map(|job| job.as_ref().map(|job| front.view(job, now)))
        .collect();
    Ok(Answer::new(&views))
}

pub async fn priority(front: Front, call: Call) -> Outcome {
    let read = |item: &RawValue| {
        let fields = Fields::of(item)?;
        let key = JobKey::qless(fields.required_name("id")?);
        let priority = fields.number("priority")?;
        Ok((
            key,
            priority.ok_or_else(|| Refusal::bad("priority", "priority is missing"))?,
        ))
    };
    on_items(&front, &call, read, async |front, jobs, now| {
        let given: Vec<_> = jobs.iter().map(|(_, given)| number(*given)).collect();
        let done = front.engine.prioritize(jobs, now).await?;
        let done = given.into_iter().zip(done);
        Ok(done.map(|(given, done)| done.map(|()| given)).collect())
    })
    .await
}

pub async fn jobs(front: Front, call: Call) -> Outcome {
    let (state, queue) = (call.name("state")?, QueueKey::qless(call.name("queue")?));
    let standing = match EffectiveState::parse(state) {
        None if state == "recurring" => return recurring::list(&front, &call, &queue).await,
        Some(EffectiveState::Failed | EffectiveState::Complete) | None => {
            let message =
                "state must be waiting, running, stalled, scheduled, depends or recurring";
            return Err(Refusal::bad("state", message));
        }
        Some(standing) => standing,
    };
    list(&front, &call, standing, Some(queue)).await
}

pub async fn complete_jobs(front: Front, call: Call) -> Outcome {
    list(&front, &call, EffectiveState::Complete, None).await
}

async fn list(
    front: &Front,
    call: &Call,
    standing: EffectiveState,
    queue: Option<QueueKey>,
) -> Outcome {
    let (page, full, envelope) = (call.page()?, call.switch("full")?, call.envelope()?);
    let now = front.now(&envelope)?;
    let (engine, queue) = (&front.engine, queue.as_ref());
    Ok(if full {
        let jobs = engine.jobs(standing, queue, page, now).await?;
        Answer::new(&front.views(&jobs, now))
    } else {
        Answer::new(&engine.job_ids(standing, queue, page, now).await?)
    })
}

// ---- failures ----

pub async fn failed(front: Front, call: Call) -> Outcome {
    front.now(&call.envelope()?)?;
    let groups = front.engine.failures().await?;
    let groups: Map<String, Value> = groups
        .into_iter()
        .map(|group| (group.group, json!(group.count)))
        .collect();
    Ok(Answer::new(&groups))
}

pub async fn failed_group(front: Front, call: Call) -> Outcome {
    let (group, page) = (call.name_up_to("group", GROUP_BYTES_MAX)?, call.page()?);
    let now = front.now(&call.envelope()?)?;
    let (total, jobs) = front.engine.failed(group, page).await?;
    #[derive(Serialize)]
    struct Failed<'a> {
        total: i64,
        jobs: Vec<JobView<'a>>,
    }
    Ok(Answer::new(&Failed {
        total,
        jobs: front.views(&jobs, now),
    }))
}

pub async fn unfail(front: Front, call: Call) -> Outcome {
    let (queue, envelope) = (call.name("queue")?, call.envelope()?);
    let now = front.now(&envelope)?;
    let fields = Fields::of(envelope.data()?)?;
    let group = fields
        .text("group")?
        .ok_or_else(|| Refusal::bad("group", "group is missing"))?;
    let count = fields.integer("count", 0)?.unwrap_or(UNFAIL);
    let count = usize::try_from(count).unwrap_or_default();
    let moved = front
        .engine
        .unfail(&group, Some(QueueKey::qless(queue)), count, now)
        .await?;
    Ok(Answer::new(&moved))
}

// ---- queues and workers ----

pub async fn queues(front: Front, call: Call) -> Outcome {
    let now = front.now(&call.envelope()?)?;
    let queues = front.engine.queues(now).await?;
    let of_qless = |queue: &&QueueCounts| queue.queue.key.protocol == Protocol::Qless;
    let listed = queues
        .iter()
        .filter(of_qless)
        .filter(|queue| !queue.queue.forgotten);
    let counts = listed.map(|queue| counts(&queue.queue.key.name, Some(queue)));
    Ok(Answer::new(&counts.collect::<Vec<_>>()))
}

pub async fn queue(front: Front, call: Call) -> Outcome {
    let name = call.name("queue")?;
    let now = front.now(&call.envelope()?)?;
    let queue = front.engine.queue(&QueueKey::qless(name), now).await?;
    Ok(Answer::new(&counts(name, queue.as_ref())))
}

fn counts(name: &str, queue: Option<&QueueCounts>) -> Value {
    let counts = queue.map(|queue| queue.counts).unwrap_or_default();
    json!({
        "name": name,
        "waiting": counts.waiting,
        "running": counts.running,
        "stalled": counts.stalled,
        "scheduled": counts.scheduled,
        "depends": counts.depends,
        "recurring": queue.map_or(0, |queue| queue.recurring),
        "paused": queue.is_some_and(|queue| queue.queue.paused),
        "length": counts.waiting + counts.running + counts.stalled + counts.scheduled,
    })
}

pub async fn forget_queue(front: Front, call: Call) -> Outcome {
    let queue = QueueKey::qless(call.name("queue")?);
    let now = front.now(&call.envelope()?)?;
    front.engine.forget_queue(queue, now).await?;
    Ok(Answer::new(&true))
}

pub async fn pause(front: Front, call: Call) -> Outcome {
    set_paused(front, call, true).await
}

pub async fn unpause(front: Front, call: Call) -> Outcome {
    set_paused(front, call, false).await
}

async fn set_paused(front: Front, call: Call, paused: bool) -> Outcome {
    let queue = QueueKey::qless(call.name("queue")?);
    let now = front.now(&call.envelope()?)?;
    front.engine.pause(queue, paused, now).await?;
    Ok(Answer::new(&true))
}

pub async fn workers(front: Front, call: Call) -> Outcome {
    let now = front.now(&call.envelope()?)?;
    let workers = front.engine.workers(now).await?;
    let view = |worker: &WorkerCounts| json!({ "name": worker.name, "jobs": worker.jobs, "stalled": worker.stalled });
    Ok(Answer::new(&workers.iter().map(view).collect::<Vec<_>>()))
}

pub async fn worker(front: Front, call: Call) -> Outcome {
    let name = call.name("worker")?;
    let now = front.now(&call.envelope()?)?;
    let (jobs, stalled) = front.engine.worker(name, now).await?;
    Ok(Answer::new(
        &json!({ "jobs": ids(&jobs), "stalled": ids(&stalled) }),
    ))
}

pub async fn forget_worker(front: Front, call: Call) -> Outcome {
    let worker = call.name("worker")?;
    let now = front.now(&call.envelope()?)?;
    front.engine.forget_worker(worker, now).await?;
    Ok(Answer::new(&true))
}

pub async fn stats(front: Front, call: Call) -> Outcome {
    let queue = call.name("queue")?;
    let now = front.now(&call.envelope()?)?;
    let moment = call.date()?.unwrap_or_else(|| front.engine.now(now));
    let stats = front.engine.stats(&QueueKey::qless(queue), moment).await?;
    let durations = |durations: &Durations| {
        json!({
            "total": durations.summary.n,
            "mean": number(durations.summary.mean),
            "variance": number(durations.summary.variance()),
            "histogram": durations.histogram,
        })
    };
    Ok(Answer::new(&json!({
        "failed": stats.failed,
        "failures": stats.failures,
        "retries": stats.retries,
        "wait": durations(&stats.wait),
        "run": durations(&stats.run),
    })))
}

fn ids(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|job| job.key.id.as_str()).collect()
}
