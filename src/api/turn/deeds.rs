//! What an operator does with jobs, queues and workers. Where it cannot be done, these say why.

use super::super::views::{Api, Place};
use super::places::key;
use crate::engine::{
    Depend, Engine, Error, JobKey, NAME_BYTES_MAX, NOTE_BYTES_MAX, QueueCounts, QueueKey, Result,
};

/// Cancels the job. Unlike the verb, says so if it is not there.
pub async fn cancel(engine: &Engine, id: &str) -> Result<()> {
    let key = JobKey::qless(id);
    if engine.job(&key).await?.is_none() {
        return Err(Error::NoSuchJob { id: id.to_owned() });
    }
    engine.cancel(vec![key], None).await
}

/// Moves the job into the queue of that name, which need not exist yet.
pub async fn relocate(engine: &Engine, id: &str, queue: &str) -> Result<(), String> {
    check_name("the queue name", queue)?;
    let moved = engine.relocate(JobKey::qless(id), QueueKey::qless(queue), None);
    moved.await.map_err(|error| error.to_string())
}

/// Gives the job the priority that somebody has typed, and returns it.
pub async fn prioritize(engine: &Engine, id: &str, typed: &str) -> Result<f64, String> {
    let priority = number("priority", typed)?;
    let jobs = vec![(JobKey::qless(id), priority)];
    only(engine.prioritize(jobs, None).await)?;
    Ok(priority)
}

/// Gives the job a tag. Returns it, without the space around it that somebody has typed.
pub async fn tag(engine: &Engine, id: &str, typed: &str) -> Result<String, String> {
    let tag = typed.trim();
    check_name("the tag", tag)?;
    let jobs = vec![(JobKey::qless(id), vec![tag.to_owned()])];
    only(engine.tag(jobs, None).await)?;
    Ok(tag.to_owned())
}

/// Takes a tag off the job.
pub async fn untag(engine: &Engine, id: &str, tag: &str) -> Result<(), String> {
    let jobs = vec![(JobKey::qless(id), vec![tag.to_owned()])];
    only(engine.untag(jobs, None).await).map(drop)
}

/// Tracks the job.
pub async fn track(engine: &Engine, id: &str) -> Result<(), String> {
    let jobs = vec![(JobKey::qless(id), Vec::new())];
    only(engine.track(jobs, None).await)
}

/// Tracks the job, there or not, no longer.
pub async fn untrack(engine: &Engine, id: &str) -> Result<(), String> {
    only(engine.untrack(vec![JobKey::qless(id)], None).await)
}

/// Takes the job from its worker.
pub async fn time_out(engine: &Engine, id: &str) -> Result<(), String> {
    only(engine.time_out(vec![JobKey::qless(id)], None).await)
}

/// The job waits for that other one no longer.
pub async fn undepend(engine: &Engine, id: &str, on: &str) -> Result<(), String> {
    depend(engine, id, Depend::Off(vec![on.to_owned()])).await
}

/// The job waits for no other any longer.
pub async fn undepend_all(engine: &Engine, id: &str) -> Result<(), String> {
    depend(engine, id, Depend::OffAll).await
}

async fn depend(engine: &Engine, id: &str, change: Depend) -> Result<(), String> {
    only(engine.depend(vec![(JobKey::qless(id), change)], None).await)
}

/// Adds a word to the history of the job.
pub async fn note(engine: &Engine, id: &str, message: &str) -> Result<(), String> {
    let message = message.trim();
    if message.is_empty() || message.len() > NOTE_BYTES_MAX {
        return Err(format!("a note must have 1 to {NOTE_BYTES_MAX} bytes"));
    }
    let notes = vec![(JobKey::qless(id), message.to_owned(), None)];
    only(engine.note(notes, None).await)
}

/// Pauses the queue, or lets it go on.
pub async fn pause(engine: &Engine, queue: &Place, paused: bool) -> Result<(), String> {
    match queue.api {
        Api::Qless => check_name("the queue name", &queue.name)?,
        // One that is not known would come into being paused, and stay.
        Api::Lmstfy | Api::Relay => drop(known(engine, queue).await?),
        Api::Jobq => {
            return Err("Jobq queues cannot be paused".to_owned());
        }
    }
    let done = engine.pause(key(queue), paused, None).await;
    done.map_err(|error| error.to_string())
}

async fn known(engine: &Engine, queue: &Place) -> Result<QueueCounts, String> {
    let found = engine.queue(&key(queue), None).await;
    let found = found.map_err(|error| error.to_string())?;
    found.ok_or_else(|| format!("queue “{}” not found", queue.label()))
}

/// Takes the queue off the lists, if there is nothing left to see to in it.
pub async fn forget_queue(engine: &Engine, queue: &Place) -> Result<(), String> {
    let found = known(engine, queue).await?;
    if !super::queue_row(&found).is_idle() {
        return Err(format!(
            "queue “{}” cannot be forgotten because it is paused or has unfinished or recurring jobs",
            queue.label()
        ));
    }
    let done = engine.forget_queue(key(queue), None).await;
    done.map_err(|error| error.to_string())
}

/// Takes the worker off the lists until it shows itself.
pub async fn forget_worker(engine: &Engine, worker: &str) -> Result<(), String> {
    let done = engine.forget_worker(worker, None).await;
    done.map_err(|error| error.to_string())
}

/// What became of the only item.
pub fn only<T>(done: Result<Vec<Result<T>>>) -> Result<T, String> {
    let mut each = done.map_err(|error| error.to_string())?;
    match each.pop() {
        Some(done) => done.map_err(|error| error.to_string()),
        None => Err("nothing was changed".to_owned()),
    }
}

/// A name that somebody has typed must be one that the API takes.
pub fn check_name(what: &str, name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!(
            "{what} must have 1 to {NAME_BYTES_MAX} bytes and no control characters"
        ));
    }
    Ok(())
}

/// The number that somebody has typed.
pub fn number(what: &str, typed: &str) -> Result<f64, String> {
    let number = typed.trim().parse().ok();
    number
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| format!("{what} must be a number"))
}
