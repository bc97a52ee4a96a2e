//! Requests of operators: jobs, failures, queues and workers.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::call::{Call, Fields};
use super::error::ApiError;
use super::jobs::run_on_items;
use super::response::{JobView, Results, number};
use super::{Api, HandlerResult, recurring};
use crate::blocking::poll_blocking_if_many;
use crate::engine::{
    Durations, EffectiveState, Error, FAILURE_GROUP_BYTES_MAX, JobKey, Protocol, Queue,
    QueueCounts, QueueKey, WorkerCounts,
};
use crate::memory::holding;
use crate::protocol::{body, long_list};

/// Default number of failures that `/unfail` moves (qless-core, Unfail).
const UNFAIL: i64 = 25;

// ---- jobs ----

pub async fn cancel(api: Api, call: Call) -> HandlerResult {
    let envelope = call.envelope().await?;
    let now = api.now(&envelope)?;
    let read = |item: &RawValue| Fields::of_id_or_item(item)?.required_name("id");
    let (ids, array) = envelope.items(read).await?;
    let ids = ids.into_iter().collect::<Result<Vec<_>, _>>()?;
    api.engine
        .cancel(ids.iter().map(JobKey::qless).collect(), now)
        .await?;
    Results::of_items(ids.into_iter().map(Ok).collect(), array).await
}

pub async fn job(api: Api, call: Call) -> HandlerResult {
    let (id, envelope) = (call.name("id")?, call.envelope().await?);
    let now = api.now(&envelope)?;
    match api.engine.job(&JobKey::qless(id)).await? {
        Some(job) => Ok(Results::new(&api.view(&job, now))),
        None => Err(Error::NoSuchJob { id: id.to_owned() }.into()),
    }
}

pub async fn multiget(api: Api, call: Call) -> HandlerResult {
    let (ids, envelope) = (call.names("id")?, call.envelope().await?);
    let now = api.now(&envelope)?;
    let keys: Vec<_> = ids.into_iter().map(JobKey::qless).collect();
    let jobs = api.engine.jobs_by_key(&keys).await?;
    let views: Vec<_> = jobs
        .iter()
        .map(|job| job.as_ref().map(|job| api.view(job, now)))
        .collect();
    Ok(Results::new(&views))
}

pub async fn priority(api: Api, call: Call) -> HandlerResult {
    let read = |item: &RawValue| {
        let fields = Fields::of(item)?;
        let key = JobKey::qless(fields.required_name("id")?);
        let priority = fields.number("priority")?;
        Ok((
            key,
            priority.ok_or_else(|| ApiError::bad("priority", "priority is missing"))?,
        ))
    };
    run_on_items(&api, &call, read, async |api, jobs, now| {
        let given: Vec<_> = jobs.iter().map(|(_, given)| number(*given)).collect();
        let done = api.engine.prioritize(jobs, now).await?;
        let done = given.into_iter().zip(done);
        Ok(done.map(|(given, done)| done.map(|()| given)).collect())
    })
    .await
}

pub async fn jobs(api: Api, call: Call) -> HandlerResult {
    let (state, queue) = (call.name("state")?, QueueKey::qless(call.name("queue")?));
    let effective_state = match EffectiveState::parse(state) {
        None if state == "recurring" => return recurring::list(&api, &call, &queue).await,
        Some(EffectiveState::Failed | EffectiveState::Complete) | None => {
            let message =
                "state must be waiting, running, stalled, scheduled, depends or recurring";
            return Err(ApiError::bad("state", message));
        }
        Some(effective_state) => effective_state,
    };
    list(&api, &call, effective_state, Some(queue)).await
}

pub async fn complete_jobs(api: Api, call: Call) -> HandlerResult {
    list(&api, &call, EffectiveState::Complete, None).await
}

async fn list(
    api: &Api,
    call: &Call,
    effective_state: EffectiveState,
    queue: Option<QueueKey>,
) -> HandlerResult {
    let (page, full, envelope) = (
        call.page()?,
        call.bool_parameter("full")?,
        call.envelope().await?,
    );
    let now = api.now(&envelope)?;
    let (engine, queue) = (&api.engine, queue.as_ref());
    Ok(if full {
        let jobs = engine.jobs(effective_state, queue, page, now).await?;
        Results::new(&api.views(&jobs, now))
    } else {
        Results::new(&engine.job_ids(effective_state, queue, page, now).await?)
    })
}

// ---- failures ----

pub async fn failed(api: Api, call: Call) -> HandlerResult {
    api.now(&call.envelope().await?)?;
    let groups = api.engine.failure_counts().await?;
    let groups = groups.iter();
    let groups = groups.map(|(group, count)| (group.clone(), json!(count)));
    Ok(Results::new(&groups.collect::<Map<String, Value>>()))
}

pub async fn failed_group(api: Api, call: Call) -> HandlerResult {
    let (group, page) = (
        call.name_up_to("group", FAILURE_GROUP_BYTES_MAX)?,
        call.page()?,
    );
    let now = api.now(&call.envelope().await?)?;
    let (total, jobs) = api.engine.jobs_of_failure_group(group, page).await?;
    #[derive(Serialize)]
    struct Failed<'a> {
        total: i64,
        jobs: Vec<JobView<'a>>,
    }
    Ok(Results::new(&Failed {
        total,
        jobs: api.views(&jobs, now),
    }))
}

pub async fn unfail(api: Api, call: Call) -> HandlerResult {
    let (queue, envelope) = (call.name("queue")?, call.envelope().await?);
    let now = api.now(&envelope)?;
    let data = envelope.data()?;
    let read = || {
        let fields = Fields::of(data)?;
        let group = fields.text("group")?;
        let group = group.ok_or_else(|| ApiError::bad("group", "group is missing"))?;
        Ok::<_, ApiError>((group, fields.integer("count", 0)?.unwrap_or(UNFAIL)))
    };
    let (group, count) = body::parse(data.get().len(), read).await??;
    let count = usize::try_from(count).unwrap_or_default();
    let moved = api
        .engine
        .unfail(&group, Some(QueueKey::qless(queue)), count, now)
        .await?;
    Ok(Results::new(&moved))
}

// ---- queues and workers ----

pub async fn queues(api: Api, call: Call) -> HandlerResult {
    let now = api.now(&call.envelope().await?)?;
    let permit = long_list::of_queues(&api.engine).await?;
    let list = async {
        let queues = api.engine.queues(now).await?;
        let listed = queues.iter().filter(|queue| is_listed(&queue.queue));
        let views = listed.map(|queue| view(&queue.queue.key.name, Some(queue)));
        Ok(Results::new(&views.collect::<Vec<_>>()))
    };
    let queues = api.engine.known_queues().count();
    holding(permit, poll_blocking_if_many(queues, list)).await
}

pub async fn queue(api: Api, call: Call) -> HandlerResult {
    let name = call.name("queue")?;
    let now = api.now(&call.envelope().await?)?;
    let queue = api.engine.queue(&QueueKey::qless(name), now).await?;
    Ok(Results::new(&view(name, queue.as_ref())))
}

/// Whether a list of qless's queues has the queue.
pub fn is_listed(queue: &Queue) -> bool {
    queue.key.protocol == Protocol::Qless && !queue.forgotten
}

/// A queue: its counts, and their sum as qless-core defines it.
fn view<'a>(name: &'a str, queue: Option<&QueueCounts>) -> CountsView<'a> {
    CountsView {
        length: Some(length(queue)),
        ..counts(name, queue)
    }
}

/// The number of jobs that `length` of qless-core counts: without those that wait for others.
pub fn length(queue: Option<&QueueCounts>) -> i64 {
    let counts = queue.map(|queue| queue.counts).unwrap_or_default();
    counts.waiting + counts.running + counts.stalled + counts.scheduled
}

/// A queue with the counts of qless-core.
#[derive(Serialize)]
pub struct CountsView<'a> {
    name: &'a str,
    waiting: i64,
    running: i64,
    stalled: i64,
    scheduled: i64,
    depends: i64,
    recurring: i64,
    paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<i64>,
}

/// The counts of a queue that need not exist.
pub fn counts<'a>(name: &'a str, queue: Option<&QueueCounts>) -> CountsView<'a> {
    let counts = queue.map(|queue| queue.counts).unwrap_or_default();
    CountsView {
        name,
        waiting: counts.waiting,
        running: counts.running,
        stalled: counts.stalled,
        scheduled: counts.scheduled,
        depends: counts.depends,
        recurring: queue.map_or(0, |queue| queue.recurring),
        paused: queue.is_some_and(|queue| queue.pause.is_some()),
        length: None,
    }
}

pub async fn forget_queue(api: Api, call: Call) -> HandlerResult {
    let queue = QueueKey::qless(call.name("queue")?);
    let now = api.now(&call.envelope().await?)?;
    api.engine.forget_queue(queue, now).await?;
    Ok(Results::new(&true))
}

pub async fn pause(api: Api, call: Call) -> HandlerResult {
    set_paused(api, call, true).await
}

pub async fn unpause(api: Api, call: Call) -> HandlerResult {
    set_paused(api, call, false).await
}

async fn set_paused(api: Api, call: Call, paused: bool) -> HandlerResult {
    let queue = QueueKey::qless(call.name("queue")?);
    let now = api.now(&call.envelope().await?)?;
    api.engine.pause(queue, paused, now).await?;
    Ok(Results::new(&true))
}

pub async fn workers(api: Api, call: Call) -> HandlerResult {
    let now = api.now(&call.envelope().await?)?;
    let workers = api.engine.workers(now).await?;
    Ok(Results::new(
        &workers.iter().map(worker_view).collect::<Vec<_>>(),
    ))
}

pub fn worker_view(worker: &WorkerCounts) -> Value {
    json!({ "name": worker.name, "jobs": worker.jobs, "stalled": worker.stalled })
}

pub async fn worker(api: Api, call: Call) -> HandlerResult {
    let name = call.name("worker")?;
    let now = api.now(&call.envelope().await?)?;
    let (jobs, stalled) = api.engine.worker_job_ids(name, now).await?;
    Ok(Results::new(&json!({ "jobs": jobs, "stalled": stalled })))
}

pub async fn forget_worker(api: Api, call: Call) -> HandlerResult {
    let worker = call.name("worker")?;
    let now = api.now(&call.envelope().await?)?;
    api.engine.forget_worker(worker, now).await?;
    Ok(Results::new(&true))
}

pub async fn stats(api: Api, call: Call) -> HandlerResult {
    let queue = call.name("queue")?;
    let now = api.now(&call.envelope().await?)?;
    let moment = call.date()?.unwrap_or_else(|| api.engine.now(now));
    let stats = api.engine.stats(&QueueKey::qless(queue), moment).await?;
    let durations = |durations: &Durations| {
        json!({
            "total": durations.summary.n,
            "mean": number(durations.summary.mean),
            "variance": number(durations.summary.variance()),
            "histogram": durations.histogram,
        })
    };
    Ok(Results::new(&json!({
        "failed": stats.failed,
        "failures": stats.failures,
        "retries": stats.retries,
        "wait": durations(&stats.wait),
        "run": durations(&stats.run),
    })))
}
