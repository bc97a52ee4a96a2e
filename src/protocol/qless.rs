//! qless over HTTP: the table of `docs/protocols/qless.md`.
//!
//! A handler reads its fields out of a [`Call`], calls one verb of the engine and gives an [`Answer`].
//! `data` is one item or an array of items where the table says so; an array is done in order, each
//! item for itself.

mod answer;
mod call;
mod refusal;

use std::future::Future;
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::routing::{self, MethodFilter, MethodRouter};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use answer::{Answer, JobView, Seconds, response};
use call::{Call, Envelope, Fields};
use refusal::Refusal;

use crate::engine::{
    self, Engine, Error, Fail, HEARTBEAT_S, Holder, Job, JobKey, NAME_BYTES_MAX, Next, Put,
    QueueCounts, QueueKey, Retry, Standing, Time, WorkerCounts,
};

/// Failures that one `/unfail` moves, unless it says otherwise (qless-core, Unfail).
const UNFAIL: i64 = 25;

/// A failure group's name may be `failed-retries-` and a queue's name.
const GROUP_BYTES_MAX: usize = NAME_BYTES_MAX + "failed-retries-".len();

/// What the handlers work with.
#[derive(Clone)]
pub struct Front {
    pub engine: Engine,
    pub allow_flush: bool,
}

type Outcome = Result<Answer, Refusal>;

/// The routes of the table, at the root.
pub fn router(front: Front) -> Router {
    Router::new()
        .route("/get/{queue}", taking(claim))
        .route("/get/{queue}/{count}", taking(claim))
        .route("/peek/{queue}", get(peek))
        .route("/peek/{queue}/{count}", get(peek))
        .route("/add/{queue}", post(add))
        .route("/heartbeat", post(heartbeat))
        .route("/heartbeat/{queue}", post(heartbeat))
        .route("/complete/{queue}", post(complete))
        .route("/fail", post(fail))
        .route("/fail/{queue}", post(fail))
        .route("/retry/{queue}", post(retry))
        .route("/cancel", post(cancel))
        .route("/job/{id}", get(job))
        .route("/jobs/complete", get(complete_jobs))
        .route("/jobs/{state}/{queue}", get(jobs))
        .route("/queues", get(queues))
        .route("/queue/{queue}", get(queue))
        .route("/workers", get(workers))
        .route("/worker/{worker}", get(worker))
        .route("/failed", get(failed))
        .route("/failed/{group}", get(failed_group))
        .route("/unfail/{queue}", post(unfail))
        .route("/flush", post(flush))
        .method_not_allowed_fallback(async || Refusal::MethodNotAllowed)
        .with_state(front)
}

/// The answer to a path that nobody serves.
pub async fn no_such_endpoint() -> Refusal {
    Refusal::NoSuchEndpoint
}

/// The answer where the server itself is at fault.
pub fn internal_error() -> impl axum::response::IntoResponse {
    Refusal::Internal
}

/// A handler under a method: read the call, do it, wrap the outcome.
fn on<F, Fut>(method: MethodFilter, handler: F) -> MethodRouter<Front>
where
    F: Fn(Front, Call) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send,
{
    routing::on(
        method,
        async move |State(front): State<Front>, call: Result<Call, Refusal>| {
            let started = Instant::now();
            let outcome = match call {
                Ok(call) => handler(front, call).await,
                Err(refusal) => Err(refusal),
            };
            response(outcome, started)
        },
    )
}

fn get<F, Fut>(handler: F) -> MethodRouter<Front>
where
    F: Fn(Front, Call) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send,
{
    on(MethodFilter::GET, handler)
}

fn post<F, Fut>(handler: F) -> MethodRouter<Front>
where
    F: Fn(Front, Call) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send,
{
    on(MethodFilter::POST, handler)
}

/// GET or POST of something that takes jobs. axum would answer HEAD with GET's handler, so it is refused.
fn taking<F, Fut>(handler: F) -> MethodRouter<Front>
where
    F: Fn(Front, Call) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send,
{
    on(MethodFilter::GET.or(MethodFilter::POST), handler)
        .head(async || ([(header::ALLOW, "GET,POST")], Refusal::MethodNotAllowed))
}

// ---- getting work ----

async fn claim(front: Front, call: Call) -> Outcome {
    let (queue, count, envelope) = (call.name("queue")?, call.count()?, call.envelope()?);
    let now = front.now(&envelope)?;
    let jobs = front
        .engine
        .claim(
            QueueKey::qless(queue),
            envelope.host,
            count.unwrap_or(1),
            now,
        )
        .await?;
    Ok(one_or_many(
        front.views(&jobs, now, Some(HEARTBEAT_S)),
        count,
    ))
}

async fn peek(front: Front, call: Call) -> Outcome {
    let (queue, count, envelope) = (call.name("queue")?, call.count()?, call.envelope()?);
    let now = front.now(&envelope)?;
    let jobs = front
        .engine
        .peek(&QueueKey::qless(queue), count.unwrap_or(1), now)
        .await?;
    Ok(one_or_many(front.views(&jobs, now, None), count))
}

/// A single item is that item or null; more than one asked for are an array.
fn one_or_many(jobs: Vec<JobView<'_>>, count: Option<usize>) -> Answer {
    match count {
        None | Some(1) => Answer::new(&jobs.into_iter().next()),
        Some(_) => Answer::new(&jobs),
    }
}

// ---- working ----

async fn add(front: Front, call: Call) -> Outcome {
    let (queue, envelope) = (call.name("queue")?, call.envelope()?);
    let now = front.now(&envelope)?;
    let (items, array) = envelope.items()?;
    let puts: Vec<_> = items.into_iter().map(read_put).collect();
    let ids: Vec<_> = puts
        .iter()
        .map(|put| put.as_ref().map(|put| put.id.clone()).ok())
        .collect();
    let queue = QueueKey::qless(queue);
    let done = each(puts, async |puts| front.engine.put(queue, puts, now).await).await?;
    Answer::of_items(with_ids(ids, done), array)
}

fn read_put(item: &RawValue) -> Result<Put, Refusal> {
    let fields = Fields::of(item)?;
    Ok(Put {
        body: fields.required("meta")?.get().to_owned(),
        id: fields
            .name("id")?
            .unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string()),
        klass: fields.text("klass")?.map(std::borrow::Cow::into_owned),
        delay: fields.seconds("delay")?,
        priority: fields.number("priority")?,
        tags: fields.names("tags")?,
        retries: fields.integer("retries", 0)?,
        depends: fields.names("depends")?,
    })
}

async fn heartbeat(front: Front, call: Call) -> Outcome {
    let envelope = call.envelope()?;
    let (now, holder) = (front.now(&envelope)?, holder(&call, &envelope)?);
    let (items, array) = envelope.items()?;
    let beats = items.into_iter().map(|item| {
        let fields = Fields::of_id_or_item(item)?;
        Ok((
            JobKey::qless(fields.required_name("id")?),
            fields.get("meta").map(|meta| meta.get().to_owned()),
        ))
    });
    let done = each(beats.collect(), async |beats| {
        front.engine.heartbeat(beats, holder, now).await
    })
    .await?;
    Answer::of_items(
        done.into_iter().map(|beat| beat.map(Seconds)).collect(),
        array,
    )
}

async fn complete(front: Front, call: Call) -> Outcome {
    let envelope = call.envelope()?;
    let (now, holder) = (front.now(&envelope)?, holder(&call, &envelope)?);
    let (items, array) = envelope.items()?;
    let turns: Vec<_> = items.into_iter().map(read_completion).collect();
    let ids: Vec<_> = turns
        .iter()
        .map(|turn| turn.as_ref().map(|(key, ..)| key.id.clone()).ok())
        .collect();
    let done = each(turns, async |turns| {
        front.engine.complete(turns, holder, now).await
    })
    .await?;
    let states: Vec<_> = done
        .iter()
        .map(|state| state.as_ref().ok().map(|state| state.as_str()))
        .collect();
    let ids = with_ids(ids, done);
    if !array {
        let state = states.into_iter().next().flatten();
        return Ok(Answer::of_items(ids, false)?.beside("state", &state));
    }
    // The document: the ids that were marked as complete. So refused ones are left out.
    let completed: Vec<_> = ids.iter().filter_map(|id| id.as_ref().ok()).collect();
    Ok(Answer::new(&completed)
        .beside("states", &states)
        .with_errors(&ids))
}

fn read_completion(item: &RawValue) -> Result<(JobKey, String, Option<Next>), Refusal> {
    let fields = Fields::of(item)?;
    let key = JobKey::qless(fields.required_name("id")?);
    let body = fields.required("meta")?.get().to_owned();
    let (delay, depends) = (fields.seconds("delay")?, fields.names("depends")?);
    let next = match fields.name("next")? {
        Some(queue) => Some(Next {
            queue: QueueKey::qless(queue),
            delay: delay.unwrap_or(0.0),
            depends: depends.unwrap_or_default(),
        }),
        None if delay.is_some() => return Err(Refusal::bad("delay", "delay needs next")),
        None if depends.is_some() => return Err(Refusal::bad("depends", "depends needs next")),
        None => None,
    };
    Ok((key, body, next))
}

async fn fail(front: Front, call: Call) -> Outcome {
    let envelope = call.envelope()?;
    let (now, holder) = (front.now(&envelope)?, holder(&call, &envelope)?);
    let (items, array) = envelope.items()?;
    let fails: Vec<_> = items.into_iter().map(read_failure).collect();
    let ids: Vec<_> = fails
        .iter()
        .map(|fail| fail.as_ref().map(|fail| fail.key.id.clone()).ok())
        .collect();
    let done = each(fails, async |fails| {
        front.engine.fail(fails, holder, now).await
    })
    .await?;
    Answer::of_items(with_ids(ids, done), array)
}

fn read_failure(item: &RawValue) -> Result<Fail, Refusal> {
    let fields = Fields::of(item)?;
    let message = fields
        .text("message")?
        .ok_or_else(|| Refusal::bad("message", "message is missing"))?;
    Ok(Fail {
        key: JobKey::qless(fields.required_name("id")?),
        group: fields.required_name("group")?,
        message: message.into_owned(),
        body: fields.get("meta").map(|meta| meta.get().to_owned()),
    })
}

async fn retry(front: Front, call: Call) -> Outcome {
    let envelope = call.envelope()?;
    let (now, holder) = (front.now(&envelope)?, holder(&call, &envelope)?);
    let (items, array) = envelope.items()?;
    let retries = items.into_iter().map(|item| {
        let fields = Fields::of_id_or_item(item)?;
        Ok(Retry {
            key: JobKey::qless(fields.required_name("id")?),
            delay: fields.seconds("delay")?.unwrap_or(0.0),
            reason: fields
                .name("group")?
                .zip(fields.text("message")?.map(std::borrow::Cow::into_owned)),
        })
    });
    let done = each(retries.collect(), async |retries| {
        front.engine.retry(retries, holder, now).await
    })
    .await?;
    Answer::of_items(done, array)
}

// ---- jobs ----

async fn cancel(front: Front, call: Call) -> Outcome {
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

async fn job(front: Front, call: Call) -> Outcome {
    let (id, envelope) = (call.name("id")?, call.envelope()?);
    let now = front.now(&envelope)?;
    match front.engine.job(&JobKey::qless(id)).await? {
        Some(job) => Ok(Answer::new(&front.view(&job, now, None))),
        None => Err(Error::NoSuchJob { id: id.to_owned() }.into()),
    }
}

async fn jobs(front: Front, call: Call) -> Outcome {
    let standing = match Standing::parse(call.name("state")?) {
        Some(Standing::Failed | Standing::Complete) | None => {
            let message = "state must be waiting, running, stalled, scheduled or depends";
            return Err(Refusal::bad("state", message));
        }
        Some(standing) => standing,
    };
    list(
        &front,
        &call,
        standing,
        Some(QueueKey::qless(call.name("queue")?)),
    )
    .await
}

async fn complete_jobs(front: Front, call: Call) -> Outcome {
    list(&front, &call, Standing::Complete, None).await
}

async fn list(front: &Front, call: &Call, standing: Standing, queue: Option<QueueKey>) -> Outcome {
    let (page, full, envelope) = (call.page()?, call.switch("full")?, call.envelope()?);
    let now = front.now(&envelope)?;
    let jobs = front
        .engine
        .jobs(standing, queue.as_ref(), page, now)
        .await?;
    Ok(if full {
        Answer::new(&front.views(&jobs, now, None))
    } else {
        Answer::new(&ids(&jobs))
    })
}

// ---- failures ----

async fn failed(front: Front, call: Call) -> Outcome {
    call.envelope()?;
    let groups = front.engine.failures().await?;
    let groups: Map<String, Value> = groups
        .into_iter()
        .map(|group| (group.group, json!(group.count)))
        .collect();
    Ok(Answer::new(&groups))
}

async fn failed_group(front: Front, call: Call) -> Outcome {
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
        jobs: front.views(&jobs, now, None),
    }))
}

async fn unfail(front: Front, call: Call) -> Outcome {
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

async fn queues(front: Front, call: Call) -> Outcome {
    let now = front.now(&call.envelope()?)?;
    let queues = front.engine.queues(now).await?;
    Ok(Answer::new(
        &queues
            .iter()
            .map(|queue| counts(&queue.queue.key.name, Some(queue)))
            .collect::<Vec<_>>(),
    ))
}

async fn queue(front: Front, call: Call) -> Outcome {
    let name = call.name("queue")?;
    let now = front.now(&call.envelope()?)?;
    let queue = front.engine.queue(&QueueKey::qless(name), now).await?;
    Ok(Answer::new(&counts(name, queue.as_ref())))
}

fn counts(name: &str, queue: Option<&QueueCounts>) -> Value {
    let counts = queue.map(|queue| queue.counts.clone()).unwrap_or_default();
    json!({
        "name": name,
        "waiting": counts.waiting,
        "running": counts.running,
        "stalled": counts.stalled,
        "scheduled": counts.scheduled,
        "depends": counts.depends,
        "recurring": 0,
        "paused": false,
        "length": counts.waiting + counts.running + counts.stalled + counts.scheduled,
    })
}

async fn workers(front: Front, call: Call) -> Outcome {
    let now = front.now(&call.envelope()?)?;
    let workers = front.engine.workers(now).await?;
    let view = |worker: &WorkerCounts| json!({ "name": worker.name, "jobs": worker.jobs, "stalled": worker.stalled });
    Ok(Answer::new(&workers.iter().map(view).collect::<Vec<_>>()))
}

async fn worker(front: Front, call: Call) -> Outcome {
    let name = call.name("worker")?;
    let now = front.now(&call.envelope()?)?;
    let (jobs, stalled) = front.engine.worker(name, now).await?;
    Ok(Answer::new(
        &json!({ "jobs": ids(&jobs), "stalled": ids(&stalled) }),
    ))
}

async fn flush(front: Front, call: Call) -> Outcome {
    call.envelope()?;
    if !front.allow_flush {
        return Err(Refusal::NotEnabled {
            message: "the server was started without --allow-flush",
        });
    }
    front.engine.flush().await?;
    Ok(Answer::new(&true))
}

// ---- what the handlers share ----

impl Front {
    fn now(&self, envelope: &Envelope<'_>) -> Result<Option<Time>, Refusal> {
        envelope.now(self.engine.trusts_client_clock())
    }

    fn view<'a>(&'a self, job: &'a Job, now: Option<Time>, heartbeat: Option<f64>) -> JobView<'a> {
        JobView {
            job,
            queues: self.engine.known_queues(),
            now: self.engine.now(now),
            heartbeat,
        }
    }

    fn views<'a>(
        &'a self,
        jobs: &'a [Job],
        now: Option<Time>,
        heartbeat: Option<f64>,
    ) -> Vec<JobView<'a>> {
        jobs.iter()
            .map(|job| self.view(job, now, heartbeat))
            .collect()
    }
}

fn holder(call: &Call, envelope: &Envelope<'_>) -> Result<Holder, Refusal> {
    let queue = call.optional_name("queue")?.map(str::to_owned);
    Ok(Holder {
        worker: envelope.host.clone(),
        queue,
    })
}

fn ids(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|job| job.key.id.as_str()).collect()
}

/// Does those items that could be read with one verb; the results are parallel to the items.
async fn each<P, T>(
    items: Vec<Result<P, Refusal>>,
    verb: impl AsyncFnOnce(Vec<P>) -> engine::Result<Vec<engine::Result<T>>>,
) -> Result<Vec<Result<T, Refusal>>, Refusal> {
    let mut readable = Vec::with_capacity(items.len());
    let mut unreadable = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Ok(item) => {
                readable.push(item);
                unreadable.push(None);
            }
            Err(refusal) => unreadable.push(Some(refusal)),
        }
    }
    let mut done = if readable.is_empty() {
        Vec::new()
    } else {
        verb(readable).await?
    }
    .into_iter();
    let result = |refusal: Option<Refusal>| match refusal {
        Some(refusal) => Err(refusal),
        None => match done.next() {
            Some(result) => result.map_err(Refusal::from),
            None => Err(Refusal::from(Error::Store(
                "an item was not answered".to_owned(),
            ))),
        },
    };
    Ok(unreadable.into_iter().map(result).collect())
}

/// The items' ids where they were done.
fn with_ids<T>(
    ids: Vec<Option<String>>,
    done: Vec<Result<T, Refusal>>,
) -> Vec<Result<String, Refusal>> {
    ids.into_iter()
        .zip(done)
        .map(|(id, done)| done.map(|_| id.unwrap_or_default()))
        .collect()
}
