//! Dead letters, and what an operator does with them.

use super::super::views::{Api, DeadRow, DeadView, Place};
use super::job_row;
use super::jobq::delete_record;
use super::places::{key, place};
use crate::api::read::PAGE_JOBS;
use crate::engine::{EffectiveState, Engine, JobKey, Page, QueueCounts, Result};

/// Characters of an id that a sentence holds.
const ID_CHARS: usize = 80;

/// Namespaces that the filter offers.
const NAMESPACES_OFFERED: usize = 200;

/// The dead letters that are not empty: those of a namespace (or all) whose queue's name contains a word; a page of
/// them from `offset` on, fullest first.
pub async fn dead(
    engine: &Engine,
    namespace: &str,
    queue: &str,
    offset: usize,
) -> Result<DeadView> {
    let mut letters = engine.queues(None).await?;
    letters.retain(|letter| letter.counts.dead > 0);
    let mut namespaces: Vec<String> = letters
        .iter()
        .map(|letter| letter.queue.key.namespace.clone())
        .filter(|namespace| !namespace.is_empty())
        .collect();
    namespaces.sort();
    namespaces.dedup();
    namespaces.truncate(NAMESPACES_OFFERED);
    let wanted = queue.to_lowercase();
    letters.retain(|letter| {
        let key = &letter.queue.key;
        (namespace.is_empty() || key.namespace == namespace)
            && key.name.to_lowercase().contains(&wanted)
    });
    Ok(DeadView {
        jobs: letters.iter().map(|letter| letter.counts.dead).sum(),
        letters: letters.len(),
        rows: rows(engine, letters, offset, PAGE_JOBS).await?,
        namespaces,
    })
}

/// Some of the dead letters, fullest first, each with its head.
pub async fn rows(
    engine: &Engine,
    mut letters: Vec<QueueCounts>,
    offset: usize,
    limit: usize,
) -> Result<Vec<DeadRow>> {
    letters.sort_by_cached_key(|letter| {
        let place = place(&letter.queue.key);
        (-letter.counts.dead, place.label())
    });
    let shown = letters.into_iter().skip(offset).take(limit);
    futures::future::try_join_all(shown.map(|letter| row(engine, letter))).await
}

async fn row(engine: &Engine, letter: QueueCounts) -> Result<DeadRow> {
    let first = Page {
        offset: 0,
        limit: 1,
    };
    let key = &letter.queue.key;
    let head = engine
        .list_jobs(EffectiveState::Dead, Some(key), first, None)
        .await?;
    let now = engine.now(None);
    Ok(DeadRow {
        place: place(key),
        size: letter.counts.dead,
        head: head.first().map(|job| job_row(engine, job, now)),
    })
}

/// Takes the oldest `count` jobs out of the dead letter, with a new time to live. Says what came of it.
pub async fn respawn(
    engine: &Engine,
    queue: &Place,
    count: usize,
    ttl: &str,
) -> Result<String, String> {
    only_of(Api::Lmstfy, queue)?;
    let ttl_s = seconds_to_live(ttl)?;
    let done = engine.respawn(key(queue), count, ttl_s).await;
    let done = done.map_err(|error| error.to_string())?;
    Ok(told("Respawned", done, count, queue))
}

/// Takes these jobs out of the dead letter, with a new time to live. Says what came of it.
pub async fn respawn_jobs(
    engine: &Engine,
    queue: &Place,
    ids: Vec<String>,
    ttl: &str,
) -> Result<String, String> {
    only_of(Api::Lmstfy, queue)?;
    let ttl_s = seconds_to_live(ttl)?;
    let count = ids.len();
    let keys = dead_of(engine, queue, ids).await?;
    let done = engine.respawn_jobs(keys, ttl_s).await;
    let done = done.map_err(|error| error.to_string())?;
    let done = done.iter().filter(|each| each.is_ok()).count();
    Ok(told("Respawned", done, count, queue))
}

/// Deletes the oldest `count` jobs of the dead letter. Says what came of it.
pub async fn delete_dead(engine: &Engine, queue: &Place, count: usize) -> Result<String, String> {
    let done = engine.delete_dead_letter(key(queue), count).await;
    let done = done.map_err(|error| error.to_string())?;
    Ok(told("Deleted", done, count, queue))
}

/// Deletes these jobs, as far as they are in the dead letter still. Says what came of it.
pub async fn delete_dead_jobs(
    engine: &Engine,
    queue: &Place,
    ids: Vec<String>,
) -> Result<String, String> {
    let count = ids.len();
    let keys = dead_of(engine, queue, ids).await?;
    let done = engine.delete_dead_jobs(key(queue), keys).await;
    let done = done.map_err(|error| error.to_string())?;
    Ok(told("Deleted", done, count, queue))
}

/// Deletes a job, whatever its state, as a client would. Says what came of it.
pub async fn delete_job(engine: &Engine, queue: &Place, id: &str) -> Result<String, String> {
    let (key, ids) = (key(queue), vec![id.to_owned()]);
    let done = match queue.api {
        Api::Qless => return Err("qless jobs cannot be deleted; cancel them instead".to_owned()),
        Api::Lmstfy => engine.acknowledge(key, ids).await,
        Api::Relay => engine.delete(key, ids).await,
        Api::Jobq => delete_record(engine, queue, id).await.map(usize::from),
    };
    match done.map_err(|error| error.to_string())? {
        0 => Err(format!(
            "job “{}” is no longer in {}",
            short(id),
            queue.label()
        )),
        _ => Ok(format!("Job “{}” deleted.", short(id))),
    }
}

/// An id of which there is no end, cut.
fn short(id: &str) -> String {
    match id.char_indices().nth(ID_CHARS) {
        Some((cut, _)) => format!("{}…", id.get(..cut).unwrap_or_default()),
        None => id.to_owned(),
    }
}

/// Deletes what is ready in a queue. Says what came of it.
pub async fn destroy(engine: &Engine, queue: &Place) -> Result<String, String> {
    only_of(Api::Lmstfy, queue)?;
    let key = key(queue);
    let done = engine.destroy(key.clone()).await;
    let done = done.map_err(|error| error.to_string())?;
    let left = engine.queue(&key, None).await.ok().flatten();
    let left = left.map_or(0, |queue| {
        let counts = queue.counts;
        counts.scheduled + counts.running + counts.stalled + counts.dead
    });
    Ok(match done {
        0 => format!("No ready jobs in {}. Nothing was deleted.", queue.label()),
        n => format!(
            "Deleted {} in {}. Kept {left} scheduled, running or dead.",
            jobs(n, "ready "),
            queue.label()
        ),
    })
}

/// Of these those that are in the dead letter of the queue, by their ids, or their numbers where ids are not enough.
/// Who ticked a job saw it there; by now somebody else may have put it to work again.
pub async fn dead_of(
    engine: &Engine,
    queue: &Place,
    ids: Vec<String>,
) -> Result<Vec<JobKey>, String> {
    if ids.is_empty() {
        return Err("no jobs are selected".to_owned());
    }
    let found = if queue.api == Api::Relay {
        let letters: Vec<i64> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        engine.dead_jobs(&key(queue), &letters).await
    } else {
        let keys: Vec<JobKey> = ids.into_iter().map(JobKey::lmstfy).collect();
        let found = engine.list_jobs_by_key(&keys).await;
        found.map(|jobs| jobs.into_iter().flatten().collect())
    };
    let found = found.map_err(|error| error.to_string())?;
    let id = engine.known_queues().get(&key(queue)).map(|queue| queue.id);
    let now = engine.now(None);
    Ok(found
        .into_iter()
        .filter(|job| Some(job.queue) == id && job.effective_state(now) == EffectiveState::Dead)
        .map(|job| job.key)
        .collect())
}

/// What is a verb of one API is done to no queue of another.
pub fn only_of(api: Api, queue: &Place) -> Result<(), String> {
    if queue.api == api {
        return Ok(());
    }
    Err(format!(
        "{}: {} queues do not support this action",
        queue.label(),
        queue.api.as_str()
    ))
}

/// The seconds that somebody has typed.
fn seconds_to_live(typed: &str) -> Result<u32, String> {
    typed.trim().parse().map_err(|_| {
        format!(
            "the time to live must be a whole number of seconds from 0 (no expiry) to {}",
            u32::MAX
        )
    })
}

/// So many of a kind, in words.
pub fn jobs(n: usize, kind: &str) -> String {
    format!("{n} {kind}{}", if n == 1 { "job" } else { "jobs" })
}

/// `count` were meant, `done` were there.
fn told(what: &str, done: usize, count: usize, queue: &Place) -> String {
    if done == count {
        format!("{what} {} in {}.", jobs(done, "dead "), queue.label())
    } else {
        format!(
            "{what} {done} of {} in {}. The others were no longer dead.",
            jobs(count, "dead "),
            queue.label()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_live_is_typed_in_seconds() {
        assert_eq!(seconds_to_live(" 86400 "), Ok(86_400));
        assert_eq!(seconds_to_live("0"), Ok(0));
        assert_eq!(seconds_to_live("4294967295"), Ok(u32::MAX));
        for typed in ["", "-1", "1.5", "a day", "4294967296"] {
            assert!(seconds_to_live(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn what_was_not_there_any_more_is_said() {
        let queue = Place::lmstfy("shop", "mail");
        assert_eq!(
            told("Respawned", 1, 1, &queue),
            "Respawned 1 dead job in shop/mail."
        );
        assert_eq!(
            told("Deleted", 2, 3, &queue),
            "Deleted 2 of 3 dead jobs in shop/mail. The others were no longer dead."
        );
    }
}
