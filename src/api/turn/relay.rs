//! Jobs of Relay, and how those that are dead come back.

use uuid::Uuid;

use super::super::views::{Api, Place, RelayJobView};
use super::dead::{dead_of, jobs, only_of};
use super::places::key;
use super::{job_row, life};
use crate::engine::{Engine, Error, Job, JobKey, Reenqueued, Result, State};

/// The number of a dead job. It has left its queue's scope, so that its id is free.
pub fn letter(job: &Job) -> Option<i64> {
    let is_apart = job.key == JobKey::of_the_dead(job.seq, &*job.key.id);
    (job.state == State::Dead && is_apart).then_some(job.seq)
}

/// The job with that id in that queue.
pub async fn relay_job(engine: &Engine, queue: &Place, id: &str) -> Result<Option<RelayJobView>> {
    let found = engine.job_in(&key(queue), id).await?;
    Ok(found.map(|job| view(engine, job)))
}

/// The dead job with that number in that queue.
pub async fn dead_relay_job(
    engine: &Engine,
    queue: &Place,
    letter: &str,
) -> Result<Option<RelayJobView>> {
    let Ok(letter) = letter.parse() else {
        return Ok(None);
    };
    let found = engine.dead_jobs(&key(queue), &[letter]).await?.pop();
    Ok(found.map(|job| view(engine, job)))
}

fn view(engine: &Engine, job: Job) -> RelayJobView {
    let run_id = job.lease.as_ref();
    let run_id = run_id.and_then(|lease| Uuid::parse_str(&lease.id).ok());
    RelayJobView {
        row: job_row(engine, &job, engine.now(None)),
        life: life(&job),
        payload: job.body.into(),
        state: job.work_state,
        timeout_s: job.timeout_s.unwrap_or_default(),
        run_id: run_id.map(|id| id.to_string()),
        updated: job.updated_at.map(|time| time.0),
    }
}

/// Enqueues a dead job anew. Its id.
pub async fn revive_job(engine: &Engine, queue: &Place, letter: &str) -> Result<String, String> {
    only_of(Api::Relay, queue)?;
    let gone = || format!("this dead job is no longer in {}", queue.label());
    let letters = vec![letter.to_owned()];
    let dead = dead_of(engine, queue, letters).await?.pop();
    let dead = dead.ok_or_else(gone)?;
    let id = dead.id.clone();
    let done = engine.reenqueue_dead(key(queue), dead).await;
    done.map_err(|error| match error {
        Error::NoSuchJob { .. } => gone(),
        Error::JobExists { .. } => {
            format!("{error}; nothing was changed")
        }
        other => other.to_string(),
    })?;
    Ok(id)
}

/// Enqueues these dead jobs anew. Says what came of it.
pub async fn revive_jobs(
    engine: &Engine,
    queue: &Place,
    letters: Vec<String>,
) -> Result<String, String> {
    only_of(Api::Relay, queue)?;
    let count = letters.len();
    let dead = dead_of(engine, queue, letters).await?;
    let each = engine.reenqueue_dead_jobs(key(queue), dead).await;
    let each = each.map_err(|error| error.to_string())?;
    Ok(told(Reenqueued::of(&each), count, queue))
}

/// Enqueues the oldest `count` jobs of the dead letter anew. Says what came of it.
pub async fn revive(engine: &Engine, queue: &Place, count: usize) -> Result<String, String> {
    only_of(Api::Relay, queue)?;
    let done = engine.reenqueue_oldest_dead(key(queue), count).await;
    let done = done.map_err(|error| error.to_string())?;
    Ok(told(done, count, queue))
}

/// `count` were meant.
fn told(done: Reenqueued, count: usize, queue: &Place) -> String {
    let Reenqueued { done, taken } = done;
    let label = queue.label();
    if done == count {
        return format!("Requeued {} in {label}.", jobs(done, "dead "));
    }
    let mut text = format!("Requeued {done} of {} in {label}.", jobs(count, "dead "));
    if taken > 0 {
        let (stay, their) = match taken {
            1 => ("stays", "its ID is"),
            _ => ("stay", "their IDs are"),
        };
        text += &format!(" {taken} {stay} dead because {their} used by another job in the queue.");
    }
    match count.saturating_sub(done + taken) {
        0 => {}
        1 => text += " 1 was no longer dead.",
        gone => text += &format!(" {gone} were no longer dead."),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_enqueued_is_said_with_its_reason() {
        let queue = Place::relay("mail");
        let said = |done, taken, count| told(Reenqueued { done, taken }, count, &queue);
        assert_eq!(said(1, 0, 1), "Requeued 1 dead job in mail.");
        assert_eq!(
            said(1, 1, 2),
            "Requeued 1 of 2 dead jobs in mail. 1 stays dead because its ID is used by another job in the queue."
        );
        assert_eq!(
            said(2, 2, 5),
            "Requeued 2 of 5 dead jobs in mail. 2 stay dead because their IDs are used by another job in the queue. 1 was no longer dead."
        );
        assert_eq!(
            said(0, 0, 3),
            "Requeued 0 of 3 dead jobs in mail. 3 were no longer dead."
        );
    }
}
