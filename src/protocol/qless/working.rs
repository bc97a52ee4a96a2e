//! Put and requeue jobs, and the operations of workers on their jobs: heartbeat, complete, fail, retry.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::answer::{Answer, Seconds};
use super::call::{Call, Envelope, Fields};
use super::refusal::Refusal;
use super::{Front, Outcome};
use crate::engine::{self, Error, Fail, JobKey, LeaseHolder, Next, Put, QueueKey, Retry, Time};

pub async fn add(front: Front, call: Call) -> Outcome {
    let (queue, envelope) = (call.name("queue")?, call.envelope()?);
    let now = front.now(&envelope)?;
    let (items, array) = envelope.items()?;
    let puts: Vec<_> = items.into_iter().map(read_put).collect();
    let queue = QueueKey::qless(queue);
    let done = each(puts, async |puts| {
        front.engine.put(queue, puts, envelope.host, now).await
    })
    .await?;
    Answer::of_items(done, array)
}

/// Like [`add`], but only for existing jobs.
pub async fn requeue(front: Front, call: Call) -> Outcome {
    let (queue, envelope) = (call.name("queue")?, call.envelope()?);
    let now = front.now(&envelope)?;
    let (items, array) = envelope.items()?;
    let with_id = |item: &RawValue| {
        let put = read_put(item)?;
        match put.id {
            Some(_) => Ok(put),
            None => Err(Refusal::bad("id", "id is missing")),
        }
    };
    let puts: Vec<_> = items.into_iter().map(with_id).collect();
    let queue = QueueKey::qless(queue);
    let done = each(puts, async |puts| {
        let client = envelope.host;
        front.engine.requeue(queue, puts, client, now).await
    })
    .await?;
    Answer::of_items(done, array)
}

fn read_put(item: &RawValue) -> Result<Put, Refusal> {
    let fields = Fields::of(item)?;
    Ok(Put {
        body: fields.required("meta")?.get().to_owned(),
        id: fields.name("id")?,
        klass: fields.text("klass")?.map(Cow::into_owned),
        delay: fields.seconds("delay")?,
        priority: fields.number("priority")?,
        tags: fields.names("tags")?,
        retries: fields.integer("retries", 0)?,
        depends: fields.names("depends")?,
    })
}

pub async fn heartbeat(front: Front, call: Call) -> Outcome {
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

pub async fn complete(front: Front, call: Call) -> Outcome {
    let envelope = call.envelope()?;
    let (now, holder) = (front.now(&envelope)?, holder(&call, &envelope)?);
    let (items, array) = envelope.items()?;
    let turns = items.into_iter().map(read_completion).collect();
    let done = each(turns, async |turns: Vec<Completion>| {
        let ids = ids(turns.iter().map(|(key, ..)| key));
        let done = front.engine.complete(turns, holder, now).await?;
        let done = ids.into_iter().zip(done);
        Ok(done.map(|(id, done)| Ok((id, done?))).collect())
    })
    .await?;
    let (ids, states): (Vec<_>, Vec<_>) = done
        .into_iter()
        .map(|done| match done {
            Ok((id, state)) => (Ok(id), Some(state.as_str())),
            Err(refusal) => (Err(refusal), None),
        })
        .unzip();
    if !array {
        let state = states.into_iter().next().flatten();
        return Ok(Answer::of_items(ids, false)?.beside("state", &state));
    }
    // The document: the ids that were marked as complete. So failed items are omitted.
    let completed: Vec<_> = ids.iter().filter_map(|id| id.as_ref().ok()).collect();
    Ok(Answer::new(&completed)
        .beside("states", &states)
        .with_errors(&ids))
}

/// The job, its body, and the queue that it moves to.
type Completion = (JobKey, String, Option<Next>);

fn read_completion(item: &RawValue) -> Result<Completion, Refusal> {
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
        None if delay.is_some() => return Err(Refusal::bad("delay", "delay requires next")),
        None if depends.is_some() => return Err(Refusal::bad("depends", "depends requires next")),
        None => None,
    };
    Ok((key, body, next))
}

pub async fn fail(front: Front, call: Call) -> Outcome {
    let envelope = call.envelope()?;
    let (now, holder) = (front.now(&envelope)?, holder(&call, &envelope)?);
    let (items, array) = envelope.items()?;
    let fails = items.into_iter().map(read_failure).collect();
    let done = each(fails, async |fails: Vec<Fail>| {
        let ids = ids(fails.iter().map(|fail| &fail.key));
        Ok(with_ids(ids, front.engine.fail(fails, holder, now).await?))
    })
    .await?;
    Answer::of_items(done, array)
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

pub async fn retry(front: Front, call: Call) -> Outcome {
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
                .zip(fields.text("message")?.map(Cow::into_owned)),
        })
    });
    let done = each(retries.collect(), async |retries| {
        front.engine.retry(retries, holder, now).await
    })
    .await?;
    Answer::of_items(done, array)
}

fn holder(call: &Call, envelope: &Envelope<'_>) -> Result<LeaseHolder, Refusal> {
    let queue = call.optional_name("queue")?.map(str::to_owned);
    Ok(LeaseHolder {
        worker: envelope.host.clone(),
        queue,
    })
}

/// Runs one operation on the items that could be parsed. Returns one result per item.
pub async fn each<P, T>(
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
                "an item got no result".to_owned(),
            ))),
        },
    };
    Ok(unreadable.into_iter().map(result).collect())
}

/// Parses the items of a request and runs one operation on those that are valid. The response has one result per item.
pub async fn on_items<P, T: Serialize>(
    front: &Front,
    call: &Call,
    read: impl Fn(&RawValue) -> Result<P, Refusal>,
    verb: impl AsyncFnOnce(&Front, Vec<P>, Option<Time>) -> engine::Result<Vec<engine::Result<T>>>,
) -> Outcome {
    let envelope = call.envelope()?;
    let now = front.now(&envelope)?;
    let (items, array) = envelope.items()?;
    let items = items.into_iter().map(read).collect();
    let done = each(items, async |items| verb(front, items, now).await).await?;
    Answer::of_items(done, array)
}

/// The ids of the jobs.
pub fn ids<'a>(keys: impl IntoIterator<Item = &'a JobKey>) -> Vec<String> {
    keys.into_iter().map(|key| key.id.clone()).collect()
}

/// Replaces each result by the id of its job.
pub fn with_ids<T>(ids: Vec<String>, done: Vec<engine::Result<T>>) -> Vec<engine::Result<String>> {
    let done = ids.into_iter().zip(done);
    done.map(|(id, done)| done.map(|_| id)).collect()
}
