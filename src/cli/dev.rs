//! `switchyard dev`: serves a temporary database with generated jobs.

use super::{Outcome, Progress, print, serve};
use crate::config::Dev;
use crate::demo;
use crate::engine::{Engine, EngineSettings};
use crate::http::Settings;

pub async fn run(options: &Dev) -> Outcome {
    let settings = settings(options)?;
    let jobs = Some(options.jobs);
    let (access, monitoring) = (&options.access, &options.monitoring);
    let addresses = serve::Addresses {
        main: options.listen,
        redis: options.network.redis_listen,
    };
    serve::serve(addresses, settings, access, monitoring, None, jobs).await
}

fn settings(options: &Dev) -> Result<Settings, String> {
    let Dev {
        access,
        network,
        monitoring,
        ..
    } = options;
    Ok(Settings {
        engine: EngineSettings {
            database: "sqlite::memory:".to_owned(),
            counted_queues: Some(monitoring.metrics_queues),
            ..EngineSettings::default()
        },
        allow_flush: true,
        auth: access.auth()?,
        no_auth: access.no_auth,
        limits: network.limits(),
        proxies: network.proxies(),
        base_path: network.base_path(),
        tls: network.tls()?,
        hsts: network.hsts()?,
        log_requests: monitoring.log_requests,
        ..Settings::default()
    })
}

/// Adds `jobs` generated jobs and logs the progress; then adds and works on more until the process ends.
pub async fn generate_jobs(engine: Engine, jobs: usize) {
    if jobs > 0 {
        let mut progress = Progress::after_interval();
        let report = |done: usize| {
            if progress.is_due(done >= jobs) {
                tracing::info!("added {} of {jobs} generated jobs", done.min(jobs));
            }
        };
        match demo::fill(&engine, jobs, report).await {
            Ok(()) => print(&format!("added all {jobs} generated jobs\n")),
            Err(error) => tracing::error!("cannot add the generated jobs: {error}"),
        }
    }
    demo::start(engine).await;
}
