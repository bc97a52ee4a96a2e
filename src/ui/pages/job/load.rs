//! Loads a qless job.

mod dependencies;

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, Job, JobKey, Result};
use crate::ui::context::read_or_missing;
use crate::ui::error::PageError;
use crate::ui::pages::job::model::{JobView, Origin, Relative, Relatives};
use crate::ui::present::{job_row, life};

/// Jobs before or after a job that its page lists.
const RELATIVES_SHOWN: usize = 50;

pub async fn load_job(engine: &Engine, id: &str) -> Result<Option<JobView>> {
    let now = engine.now(None);
    let Some(job) = engine.job(&JobKey::qless(id)).await? else {
        return Ok(None);
    };
    let origin = match &job.spawned_from {
        Some(id) => Some(Origin {
            id: id.clone(),
            lives: engine.recurring(id).await?.is_some(),
        }),
        None => None,
    };
    Ok(Some(JobView {
        graph: dependencies::graph(engine, &job).await?,
        row: job_row(engine, &job, now),
        life: life(&job),
        body: job.body.into(),
        dependencies: relatives(engine, &job.dependencies).await?,
        dependents: relatives(engine, &job.dependents).await?,
        tracked: engine.known_tracked().contains(id),
        origin,
    }))
}

async fn relatives(engine: &Engine, ids: &[String]) -> Result<Relatives> {
    if ids.is_empty() {
        return Ok(Relatives::default());
    }
    let keys: Vec<JobKey> = (ids.iter().take(RELATIVES_SHOWN))
        .map(JobKey::qless)
        .collect();
    let jobs = engine.brief_jobs_by_key(&keys).await?;
    let now = engine.now(None);
    let relative = |(key, job): (JobKey, Option<Job>)| Relative {
        id: key.id,
        job: job.map(|job| job_row(engine, &job, now)),
    };
    Ok(Relatives {
        total: ids.len(),
        jobs: keys.into_iter().zip(jobs).map(relative).collect(),
    })
}

/// The job with that id.
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
