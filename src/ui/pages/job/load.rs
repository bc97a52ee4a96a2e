//! Loads a qless job.

mod dependencies;

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, Job, JobKey, Result};
use crate::ui::components::payload::first;
use crate::ui::context::read_or_missing;
use crate::ui::error::PageError;
use crate::ui::pages::job::model::{JobView, Origin, RelatedJob, RelatedJobs};
use crate::ui::present::{job_row, times};

/// Maximum number of listed dependencies, and of dependents.
const RELATED_SHOWN: usize = 50;

/// The job with this ID; `None` if it does not exist.
pub async fn load_job(engine: &Engine, id: &str) -> Result<Option<JobView>> {
    let now = engine.now(None);
    let Some(job) = engine.job(&JobKey::qless(id)).await? else {
        return Ok(None);
    };
    let origin = match &job.spawned_from {
        Some(id) => Some(Origin {
            id: id.clone(),
            exists: engine.recurring(id).await?.is_some(),
        }),
        None => None,
    };
    Ok(Some(JobView {
        graph: dependencies::graph(engine, &job).await?,
        row: job_row(engine, &job, now),
        times: times(&job, now),
        body: job.body.read().map(first).unwrap_or_default().to_owned(),
        bytes: job.body.bytes(),
        dependencies: related_jobs(engine, &job.dependencies).await?,
        dependents: related_jobs(engine, &job.dependents).await?,
        tracked: engine.known_tracked().contains(id),
        origin,
    }))
}

async fn related_jobs(engine: &Engine, ids: &[String]) -> Result<RelatedJobs> {
    if ids.is_empty() {
        return Ok(RelatedJobs::default());
    }
    let keys: Vec<JobKey> = (ids.iter().take(RELATED_SHOWN))
        .map(JobKey::qless)
        .collect();
    let jobs = engine.short_jobs_by_key(&keys).await?;
    let now = engine.now(None);
    let related = |(key, job): (JobKey, Option<Job>)| RelatedJob {
        id: key.id,
        job: job.map(|job| job_row(engine, &job, now)),
    };
    Ok(RelatedJobs {
        total: ids.len(),
        jobs: keys.into_iter().zip(jobs).map(related).collect(),
    })
}

/// The job with this ID.
#[server(name = LoadJob)]
pub async fn job(id: String) -> Result<JobView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_job(&context.engine, &id).await,
        || {
            format!(
                "Job “{id}” not found. It may have been canceled, or removed after it completed."
            )
        },
    )
    .await
}
