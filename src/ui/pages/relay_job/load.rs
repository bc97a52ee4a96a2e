//! Loads a Relay job, dead or not.

use leptos::prelude::*;
use uuid::Uuid;

use crate::auth::Role;
use crate::engine::{Engine, Job, Result};
use crate::ui::context::read_or_missing;
use crate::ui::error::PageError;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::pages::relay_job::model::RelayJobView;
use crate::ui::present::queue_refs::key;
use crate::ui::present::{job_row, times};

/// The Relay job with this ID in this queue.
#[server]
pub async fn relay_job(queue_ref: QueueRef, id: String) -> Result<RelayJobView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_relay_job(&context.engine, &queue_ref, &id).await,
        || {
            let queue = queue_ref.label();
            format!("Job “{id}” not found in {queue}. It was completed, deleted or dead-lettered, or it never existed.")
        },
    )
    .await
}

/// The dead Relay job with this number in this queue.
#[server]
pub async fn dead_relay_job(
    queue_ref: QueueRef,
    number: String,
) -> Result<RelayJobView, PageError> {
    read_or_missing(Role::Viewer, async |context| load_dead_relay_job(&context.engine, &queue_ref, &number).await, || {
        let queue = queue_ref.label();
        format!("Dead job “{number}” not found in {queue}. It was requeued, deleted, or removed after 30 days, or it never existed.")
    }).await
}

/// The job with this ID in this queue.
pub async fn load_relay_job(
    engine: &Engine,
    queue: &QueueRef,
    id: &str,
) -> Result<Option<RelayJobView>> {
    let found = engine.job_in(&key(queue), id).await?;
    Ok(found.map(|job| view(engine, job)))
}

/// The dead job with this number in this queue.
pub async fn load_dead_relay_job(
    engine: &Engine,
    queue: &QueueRef,
    number: &str,
) -> Result<Option<RelayJobView>> {
    let Ok(number) = number.parse() else {
        return Ok(None);
    };
    let found = engine.dead_job(&key(queue), number).await?;
    Ok(found.map(|job| view(engine, job)))
}

fn view(engine: &Engine, job: Job) -> RelayJobView {
    let run_id = job.lease.as_ref();
    let run_id = run_id.and_then(|lease| Uuid::parse_str(&lease.id).ok());
    let now = engine.now(None);
    RelayJobView {
        row: job_row(engine, &job, now),
        times: times(&job, now),
        payload: job.body.into(),
        state: job.work_state,
        timeout_s: job.timeout_s.unwrap_or_default(),
        run_id: run_id.map(|id| id.to_string()),
        updated: job.updated_at.map(|time| time.0),
    }
}
