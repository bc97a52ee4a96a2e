//! Compares everything that the engine has with the model.

use std::collections::{BTreeMap, BTreeSet};

use switchyard::engine::{EffectiveState, Job, JobKey, PageStart, Protocol, QueueKey, State, Time};

use super::driver::Driver;
use super::memory::{Key, Model, ModelJob, Scope};
use super::operations::Stage;
use crate::PAGE;

/// A job, in the words of the model.
#[derive(Debug, PartialEq)]
struct View {
    id: String,
    queue: QueueKey,
    state: EffectiveState,
    priority: f64,
    ready_at: i64,
    since: i64,
    lease: Option<(String, i64, bool)>,
    retries: (i64, i64),
    klass: Option<String>,
    tags: Vec<String>,
    body: String,
    failure: Option<(String, String, String, i64)>,
    timeout_s: Option<i64>,
    work_state: Option<String>,
    /// When it was updated, expires, and was created.
    times: (Option<i64>, Option<i64>, i64),
    spawned_from: Option<String>,
    needs: BTreeSet<String>,
    dependents: BTreeSet<String>,
}

/// A text, shortened.
fn short(text: &str) -> String {
    match text.get(..200) {
        Some(start) => format!("{start}… {} bytes", text.len()),
        None => text.to_owned(),
    }
}

fn of_model(model: &Model, key: &Key, job: &ModelJob) -> View {
    let dependents = match key.0 {
        Scope::Qless => model.dependents(&key.1),
        _ => Vec::new(),
    };
    let lease = job.lease.as_ref();
    View {
        id: key.1.clone(),
        queue: job.queue.clone(),
        state: job.effective_state(model.now),
        priority: job.priority,
        ready_at: job.ready_at,
        since: job.since,
        lease: lease.map(|lease| (lease.worker.clone(), lease.until, lease.in_grace_period)),
        retries: (job.retries, job.remaining),
        klass: job.klass.clone(),
        tags: job.tags.clone(),
        body: short(&job.body),
        failure: job.failure.clone(),
        timeout_s: job.timeout_s,
        work_state: job.work_state.clone(),
        times: (job.updated_at, job.expires_at, job.created_at),
        spawned_from: job.spawned_from.clone(),
        needs: job.needs.clone(),
        dependents: dependents.into_iter().collect(),
    }
}

fn of_engine(driver: &Driver, job: Job, now: i64) -> View {
    let queue = driver.engine.known_queues().by_id(job.queue);
    let failure = job.failure.as_ref();
    let lease = job.lease.as_ref();
    View {
        id: driver.names.get(&job.key.id).unwrap_or(&job.key.id).clone(),
        queue: queue.expect("the queue of a job exists").key.clone(),
        state: job.effective_state(Time(now)),
        priority: job.priority,
        ready_at: job.ready_at.0,
        since: job.since.0,
        lease: lease.map(|lease| (lease.worker.clone(), lease.until.0, lease.in_grace_period)),
        retries: (job.retries, job.remaining),
        klass: job.klass.clone(),
        body: short(&job.body),
        failure: failure.map(|it| {
            let (group, message) = (it.group.clone(), it.message.clone());
            (group, message, it.worker.clone(), it.at.0)
        }),
        timeout_s: job.timeout_s,
        work_state: job.work_state.clone(),
        times: (
            job.updated_at.map(|at| at.0),
            job.expires_at.map(|at| at.0),
            job.created_at.0,
        ),
        tags: job.tags,
        spawned_from: job.spawned_from,
        needs: job.dependencies.into_iter().collect(),
        dependents: job.dependents.into_iter().collect(),
    }
}

/// The difference, if any.
fn differ<T: std::fmt::Debug + PartialEq>(what: &str, engine: &T, model: &T) -> Result<(), String> {
    if engine == model {
        return Ok(());
    }
    Err(format!("{what}\n  engine: {engine:?}\n  model:  {model:?}"))
}

/// Compares all jobs, counts, recurring jobs, options, tracked jobs and operations.
pub async fn compare(driver: &Driver, model: &Model) -> Result<(), String> {
    compare_counts(driver, model).await?;
    compare_jobs(driver, model).await?;
    let engine = &driver.engine;
    for (id, it) in &model.recurring {
        let Some(found) = engine.recurring(id).await.unwrap() else {
            return Err(format!("recurring job {id} is missing"));
        };
        let queue = engine.known_queues().by_id(found.queue).unwrap();
        let found = (
            (queue.key.clone(), found.next_at.0, found.interval),
            (found.children_count, found.backlog, found.retries),
            (found.priority, found.klass, found.tags, found.body),
        );
        let expected = (
            (it.queue.clone(), it.next_at, it.interval),
            (it.children, it.backlog, it.retries),
            (
                it.priority,
                it.klass.clone(),
                it.tags.clone(),
                it.body.clone(),
            ),
        );
        differ(&format!("recurring job {id}"), &found, &expected)?;
    }
    let all = engine.recurring_page(None, PageStart::First, PAGE.limit);
    let all = all.await.unwrap().rows;
    differ(
        "number of recurring jobs",
        &all.len(),
        &model.recurring.len(),
    )?;
    let mut tracked = engine.known_tracked().ids();
    tracked.sort();
    let expected: Vec<String> = model.tracked.iter().cloned().collect();
    differ("tracked jobs", &tracked, &expected)?;
    let mut config = engine.options().await.unwrap().all();
    config.retain(|option, _| engine.config().is_set(option));
    differ("options", &config, &model.config)?;
    compare_operations(driver, model).await
}

async fn compare_counts(driver: &Driver, model: &Model) -> Result<(), String> {
    let mut expected: BTreeMap<(QueueKey, &str), i64> = BTreeMap::new();
    for job in model.jobs.values() {
        // Jobs that were timed out count as waiting.
        let state = match job.state {
            State::TimedOut => EffectiveState::Waiting.as_str(),
            _ => job.effective_state(model.now).as_str(),
        };
        *expected.entry((job.queue.clone(), state)).or_default() += 1;
    }
    let mut counts = BTreeMap::new();
    for queue in driver.engine.queues(None).await.unwrap().iter() {
        for state in EffectiveState::ALL {
            let count = queue.counts.of(state);
            let is_deleted = queue.queue.key.namespace.starts_with("expunged");
            if count != 0 && !is_deleted {
                counts.insert((queue.queue.key.clone(), state.as_str()), count);
            }
        }
    }
    differ("jobs by queue and state", &counts, &expected)
}

async fn compare_jobs(driver: &Driver, model: &Model) -> Result<(), String> {
    let engine = &driver.engine;
    let real: BTreeMap<&String, &String> =
        driver.names.iter().map(|(id, name)| (name, id)).collect();
    let (mut keys, mut expected) = (Vec::new(), Vec::new());
    for (key, job) in &model.jobs {
        let of_queue = |queue| engine.known_queues().get(queue).map(|queue| queue.id);
        let found = match &key.0 {
            Scope::Qless => Some(JobKey::qless(&key.1)),
            Scope::Lmstfy => real.get(&key.1).map(|id| JobKey::lmstfy(id.as_str())),
            Scope::In(queue) => of_queue(queue).map(|scope| JobKey {
                scope,
                id: key.1.clone(),
            }),
            Scope::Dead(_) => continue,
        };
        let Some(found) = found else {
            return Err(format!("the queue of {key:?} is missing"));
        };
        keys.push(found);
        expected.push(of_model(model, key, job));
    }
    let found = engine.jobs_by_key(&keys).await.unwrap();
    for (found, expected) in found.into_iter().zip(expected) {
        let found = found.map(|job| of_engine(driver, job, model.now));
        differ("job", &found, &Some(expected))?;
    }
    for queue in model
        .queues
        .keys()
        .filter(|it| it.protocol == Protocol::Relay)
    {
        let found = engine
            .jobs(EffectiveState::Dead, Some(queue), PAGE, None)
            .await;
        let found: Vec<View> = found
            .unwrap()
            .into_iter()
            .map(|job| of_engine(driver, job, model.now))
            .collect();
        let dead = model.dead(queue);
        let expected: Vec<View> = dead
            .iter()
            .map(|key| of_model(model, key, &model.jobs[key]))
            .collect();
        differ("dead jobs", &found, &expected)?;
    }
    Ok(())
}

async fn compare_operations(driver: &Driver, model: &Model) -> Result<(), String> {
    let pairs = driver.operations.iter().zip(&model.operations);
    for (id, expected) in pairs.rev().take(5) {
        let Some(found) = driver.engine.operation(*id).await.unwrap() else {
            return Err("an operation is missing".to_owned());
        };
        let stage = match expected.stage {
            Stage::Running => "running",
            Stage::Done => "done",
            Stage::Stopped => "stopped",
            Stage::Undoing => "undoing",
            Stage::Undone => "undone",
        };
        let found = (
            found.state.as_str(),
            (found.done, found.skipped),
            (found.restored, found.not_restored),
        );
        let expected = (
            stage,
            (expected.done, expected.skipped),
            (expected.restored, expected.not_restored),
        );
        differ("operation", &found, &expected)?;
    }
    differ(
        "operations",
        &driver.operations.len(),
        &model.operations.len(),
    )
}
