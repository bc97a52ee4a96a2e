//! Put and requeue jobs, and the commands of workers on their jobs: heartbeat, complete, fail, retry.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::call::{Call, Envelope, Fields};
use super::error::ApiError;
use super::response::{Results, Seconds};
use super::{Api, HandlerResult};
use crate::engine::{
    self, Error, Fail, JobKey, LeaseHolder, NextQueue, Put, QueueKey, Retry, Time,
};

pub async fn add(api: Api, call: Call) -> HandlerResult {
    let (queue, envelope) = (call.name("queue")?, call.envelope().await?);
    let now = api.now(&envelope)?;
    let (puts, array) = envelope.items(read_put).await?;
    let queue = QueueKey::qless(queue);
    let done = run_valid(puts, async |puts| {
        api.engine.put(queue, puts, envelope.host, now).await
    })
    .await?;
    Results::of_items(done, array).await
}

/// Like [`add`], but only for existing jobs.
pub async fn requeue(api: Api, call: Call) -> HandlerResult {
    let (queue, envelope) = (call.name("queue")?, call.envelope().await?);
    let now = api.now(&envelope)?;
    let with_id = |item: &RawValue| {
        let put = read_put(item)?;
        match put.id {
            Some(_) => Ok(put),
            None => Err(ApiError::bad("id", "id is missing")),
        }
    };
    let (puts, array) = envelope.items(with_id).await?;
    let queue = QueueKey::qless(queue);
    let done = run_valid(puts, async |puts| {
        let client = envelope.host;
        api.engine.requeue(queue, puts, client, now).await
    })
    .await?;
    Results::of_items(done, array).await
}

fn read_put(item: &RawValue) -> Result<Put, ApiError> {
    let fields = Fields::of(item)?;
    Ok(Put {
        body: fields.required("meta")?.get().to_owned(),
        id: fields.name("id")?,
        klass: fields.class()?,
        delay: fields.seconds("delay")?,
        priority: fields.number("priority")?,
        tags: fields.names("tags")?,
        retries: fields.integer("retries", 0)?,
        depends: fields.names("depends")?,
    })
}

pub async fn heartbeat(api: Api, call: Call) -> HandlerResult {
    let envelope = call.envelope().await?;
    let (now, holder) = (api.now(&envelope)?, holder(&call, &envelope)?);
    let read = |item: &RawValue| {
        let fields = Fields::of_id_or_item(item)?;
        Ok((
            JobKey::qless(fields.required_name("id")?),
            fields.get("meta").map(|meta| meta.get().to_owned()),
        ))
    };
    let (beats, array) = envelope.items(read).await?;
    let done = run_valid(beats, async |beats| {
        api.engine.heartbeat(beats, holder, now).await
    })
    .await?;
    let done = done.into_iter().map(|beat| beat.map(Seconds));
    Results::of_items(done.collect(), array).await
}

pub async fn complete(api: Api, call: Call) -> HandlerResult {
    let envelope = call.envelope().await?;
    let (now, holder) = (api.now(&envelope)?, holder(&call, &envelope)?);
    let (completions, array) = envelope.items(read_completion).await?;
    let done = run_valid(completions, async |completions: Vec<Completion>| {
        let ids = ids(completions.iter().map(|(key, ..)| key));
        let done = api.engine.complete(completions, holder, now).await?;
        let done = ids.into_iter().zip(done);
        Ok(done.map(|(id, done)| Ok((id, done?))).collect())
    })
    .await?;
    let (ids, states): (Vec<_>, Vec<_>) = done
        .into_iter()
        .map(|done| match done {
            Ok((id, state)) => (Ok(id), Some(state.as_str())),
            Err(error) => (Err(error), None),
        })
        .unzip();
    if !array {
        let state = states.into_iter().next().flatten();
        return Ok(Results::of_items(ids, false)
            .await?
            .with_key("state", &state));
    }
    // The API document: the IDs that were marked as complete. So failed items are omitted.
    let completed: Vec<_> = ids.iter().filter_map(|id| id.as_ref().ok()).collect();
    let results = Results::new(&completed).with_key("states", &states);
    let errors = ids.into_iter().map(Result::err);
    results.with_errors(errors.collect()).await
}

/// The job, its body, and the queue that it moves to.
type Completion = (JobKey, String, Option<NextQueue>);

fn read_completion(item: &RawValue) -> Result<Completion, ApiError> {
    let fields = Fields::of(item)?;
    let key = JobKey::qless(fields.required_name("id")?);
    let body = fields.required("meta")?.get().to_owned();
    let (delay, depends) = (fields.seconds("delay")?, fields.names("depends")?);
    let next = match fields.name("next")? {
        Some(queue) => Some(NextQueue {
            queue: QueueKey::qless(queue),
            delay: delay.unwrap_or(0.0),
            depends: depends.unwrap_or_default(),
        }),
        None if delay.is_some() => return Err(ApiError::bad("delay", "delay requires next")),
        None if depends.is_some() => return Err(ApiError::bad("depends", "depends requires next")),
        None => None,
    };
    Ok((key, body, next))
}

pub async fn fail(api: Api, call: Call) -> HandlerResult {
    let envelope = call.envelope().await?;
    let (now, holder) = (api.now(&envelope)?, holder(&call, &envelope)?);
    let (fails, array) = envelope.items(read_failure).await?;
    let done = run_valid(fails, async |fails: Vec<Fail>| {
        let ids = ids(fails.iter().map(|fail| &fail.key));
        Ok(with_ids(ids, api.engine.fail(fails, holder, now).await?))
    })
    .await?;
    Results::of_items(done, array).await
}

fn read_failure(item: &RawValue) -> Result<Fail, ApiError> {
    let fields = Fields::of(item)?;
    let message = fields
        .text("message")?
        .ok_or_else(|| ApiError::bad("message", "message is missing"))?;
    Ok(Fail {
        key: JobKey::qless(fields.required_name("id")?),
        group: fields.required_name("group")?,
        message: message.into_owned(),
        body: fields.get("meta").map(|meta| meta.get().to_owned()),
    })
}

pub async fn retry(api: Api, call: Call) -> HandlerResult {
    let envelope = call.envelope().await?;
    let (now, holder) = (api.now(&envelope)?, holder(&call, &envelope)?);
    let read = |item: &RawValue| {
        let fields = Fields::of_id_or_item(item)?;
        Ok(Retry {
            key: JobKey::qless(fields.required_name("id")?),
            delay: fields.seconds("delay")?.unwrap_or(0.0),
            reason: fields
                .name("group")?
                .zip(fields.text("message")?.map(Cow::into_owned)),
        })
    };
    let (retries, array) = envelope.items(read).await?;
    let done = run_valid(retries, async |retries| {
        api.engine.retry(retries, holder, now).await
    })
    .await?;
    Results::of_items(done, array).await
}

fn holder(call: &Call, envelope: &Envelope<'_>) -> Result<LeaseHolder, ApiError> {
    let queue = call.optional_name("queue")?.map(str::to_owned);
    Ok(LeaseHolder {
        worker: envelope.host.clone(),
        queue,
    })
}

/// Calls an engine method for the items that could be parsed. Returns one result per item.
pub async fn run_valid<P, T>(
    items: Vec<Result<P, ApiError>>,
    method: impl AsyncFnOnce(Vec<P>) -> engine::Result<Vec<engine::Result<T>>>,
) -> Result<Vec<Result<T, ApiError>>, ApiError> {
    let mut readable = Vec::with_capacity(items.len());
    let mut unreadable = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Ok(item) => {
                readable.push(item);
                unreadable.push(None);
            }
            Err(error) => unreadable.push(Some(error)),
        }
    }
    let mut done = if readable.is_empty() {
        Vec::new()
    } else {
        method(readable).await?
    }
    .into_iter();
    let result = |error: Option<ApiError>| match error {
        Some(error) => Err(error),
        None => match done.next() {
            Some(result) => result.map_err(ApiError::from),
            None => Err(ApiError::from(Error::Store(
                "an item got no result".to_owned(),
            ))),
        },
    };
    Ok(unreadable.into_iter().map(result).collect())
}

/// Parses the items of a request and calls an engine method for those that are valid. The response has one result per
/// item.
pub async fn run_on_items<P, T: Serialize>(
    api: &Api,
    call: &Call,
    read: impl Fn(&RawValue) -> Result<P, ApiError>,
    method: impl AsyncFnOnce(&Api, Vec<P>, Option<Time>) -> engine::Result<Vec<engine::Result<T>>>,
) -> HandlerResult {
    let envelope = call.envelope().await?;
    let now = api.now(&envelope)?;
    let (items, array) = envelope.items(read).await?;
    let done = run_valid(items, async |items| method(api, items, now).await).await?;
    Results::of_items(done, array).await
}

/// The IDs of the jobs.
pub fn ids<'a>(keys: impl IntoIterator<Item = &'a JobKey>) -> Vec<String> {
    keys.into_iter().map(|key| key.id.clone()).collect()
}

/// Replaces each result with the ID of its job.
pub fn with_ids<T>(ids: Vec<String>, done: Vec<engine::Result<T>>) -> Vec<engine::Result<String>> {
    let done = ids.into_iter().zip(done);
    done.map(|(id, done)| done.map(|_| id)).collect()
}
