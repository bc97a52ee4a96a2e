//! Commands that only read: jobs, failures, queues, workers, statistics.

use serde::Serialize;
use serde_json::{Map, Value, json as object};

use super::view::{JobView, Table};
use super::{Call, CallResult, json};
use crate::blocking::poll_blocking_if_many;
use crate::engine::{Durations, EffectiveState, QueueKey, Time};
use crate::memory::holding;
use crate::protocol::long_list;
use crate::protocol::qless::{counts, is_listed, length as length_of, number, worker_view};
use crate::protocol::redis::resp::{Reply, repeated};

pub async fn job(mut call: Call<'_>) -> CallResult {
    let key = call.arguments.job()?;
    let job = call.engine.job(&key).await?;
    match call.views(job.as_slice(), false).first() {
        Some(view) => json(view),
        None => Ok(Reply::Null),
    }
}

pub async fn multiget(mut call: Call<'_>) -> CallResult {
    let keys = call.arguments.jobs()?;
    let jobs = call.engine.jobs_by_key(&keys).await?;
    let jobs: Vec<_> = jobs.into_iter().flatten().collect();
    call.list(&jobs, false)
}

/// The IDs of jobs in a state.
pub async fn jobs(mut call: Call<'_>) -> CallResult {
    let state = call.arguments.required("state")?;
    if state == "complete" {
        return ids_in(&mut call, EffectiveState::Complete, None).await;
    }
    let queue = call.arguments.queue()?;
    if state == "recurring" {
        let page = call.arguments.page()?;
        let ids = call.engine.recurring_ids(&queue, page).await?;
        let ids = ids.into_iter().map(Reply::Text);
        return Ok(Reply::List(ids.collect()));
    }
    match EffectiveState::parse(&state) {
        Some(EffectiveState::Failed | EffectiveState::Complete) | None => Err(call
            .arguments
            .bad(&format!("Unknown type \"{}\"", repeated(&state)))),
        Some(effective_state) => ids_in(&mut call, effective_state, Some(queue)).await,
    }
}

async fn ids_in(call: &mut Call<'_>, state: EffectiveState, queue: Option<QueueKey>) -> CallResult {
    let page = call.arguments.page()?;
    let ids = call.engine.job_ids(state, queue.as_ref(), page, call.now);
    let ids = ids.await?.into_iter().map(Reply::Text);
    Ok(Reply::List(ids.collect()))
}

/// The tracked jobs, and the IDs of tracked jobs that were deleted.
pub async fn tracked(call: &Call<'_>) -> CallResult {
    let (jobs, expired) = call.engine.tracked().await?;
    #[derive(Serialize)]
    struct Tracked<'a> {
        jobs: Table<'a, JobView<'a>>,
        expired: Table<'a, String>,
    }
    json(&Tracked {
        jobs: Table(&call.views(&jobs, false)),
        expired: Table(&expired),
    })
}

/// The failure groups, or the IDs of the jobs of one.
pub async fn failed(mut call: Call<'_>) -> CallResult {
    let Some(group) = call
        .arguments
        .short("group")?
        .filter(|group| !group.is_empty())
    else {
        let groups = call.engine.failure_counts().await?;
        let groups = groups.iter();
        let groups = groups.map(|(group, count)| (group.clone(), (*count).into()));
        return json(&groups.collect::<Map<String, Value>>());
    };
    let page = call.arguments.page()?;
    let (total, ids) = call.engine.ids_of_failure_group(&group, page).await?;
    total_and_jobs(total, &ids)
}

pub fn total_and_jobs(total: i64, jobs: &[String]) -> CallResult {
    #[derive(Serialize)]
    struct Found<'a> {
        total: i64,
        jobs: Table<'a, String>,
    }
    let jobs = Table(jobs);
    json(&Found { total, jobs })
}

/// The counts of one queue, or of all.
pub async fn queues(mut call: Call<'_>) -> CallResult {
    if let Some(name) = call.arguments.short("queue")? {
        let queue = call.engine.queue(&QueueKey::qless(&name), call.now).await?;
        return json(&counts(&name, queue.as_ref()));
    }
    let permit = long_list::of_queues(call.engine).await?;
    let list = async {
        let queues = call.engine.queues(call.now).await?;
        let queues = queues.iter().filter(|queue| is_listed(&queue.queue));
        let queues = queues.map(|queue| counts(&queue.queue.key.name, Some(queue)));
        json(&Table(&queues.collect::<Vec<_>>()))
    };
    let queues = call.engine.known_queues().count();
    holding(permit, poll_blocking_if_many(queues, list)).await
}

pub async fn length(mut call: Call<'_>) -> CallResult {
    let queue = call.arguments.queue()?;
    let queue = call.engine.queue(&queue, call.now).await?;
    Ok(Reply::Integer(length_of(queue.as_ref())))
}

/// The workers, or the IDs of the jobs of one.
pub async fn workers(mut call: Call<'_>) -> CallResult {
    if let Some(name) = call.arguments.short("worker")? {
        let (jobs, stalled) = call.engine.worker_job_ids(&name, call.now).await?;
        #[derive(Serialize)]
        struct Jobs<'a> {
            jobs: Table<'a, String>,
            stalled: Table<'a, String>,
        }
        return json(&Jobs {
            jobs: Table(&jobs),
            stalled: Table(&stalled),
        });
    }
    let workers = call.engine.workers(call.now).await?;
    json(&Table(&workers.iter().map(worker_view).collect::<Vec<_>>()))
}

/// The statistics of a queue on a UTC day.
pub async fn stats(mut call: Call<'_>) -> CallResult {
    let queue = call.arguments.queue()?;
    let date = Time::from_seconds(call.arguments.number("date")?);
    let date = date.ok_or_else(|| call.arguments.bad("Arg \"date\" is too large"))?;
    let stats = call.engine.stats(&queue, date).await?;
    let durations = |durations: &Durations| {
        object!({
            "count": durations.summary.n,
            "mean": number(durations.summary.mean),
            "std": number(durations.summary.variance().sqrt()),
            "histogram": durations.histogram,
        })
    };
    json(&object!({
        "retries": stats.retries,
        "failed": stats.failed,
        "failures": stats.failures,
        "wait": durations(&stats.wait),
        "run": durations(&stats.run),
    }))
}
