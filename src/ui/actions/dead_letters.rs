//! Actions on dead jobs of lmstfy and Relay queues. Jobs of both protocols can be deleted; lmstfy jobs can also be
//! respawned, and Relay jobs requeued.
//!
//! `count` is the number on the button: the action applies to the oldest `count` dead jobs, so jobs that are
//! dead-lettered later are not affected.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::input::check_protocol;
use super::{Action, ActionOutcome, Target, act};
use crate::auth::Role;
use crate::engine::{EffectiveState, Engine, Error, JobKey, RequeueResult};
use crate::ui::error::PageError;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::present::queue_refs::key;
use crate::ui::urls;

const fn action(name: &'static str, path: &'static str) -> Action {
    Action::new(name, path, Role::Operator, |form| {
        Target::queue(&form.queue())
    })
}

pub static RESPAWN: Action = action("respawn", Respawn::PATH);

/// Respawns the oldest `count` dead jobs of an lmstfy queue with a new time to live.
#[server]
pub async fn respawn(
    #[server(flatten)] queue: QueueRef,
    count: usize,
    ttl: String,
    back: String,
) -> Result<(), PageError> {
    act(&RESPAWN, &back, async |context| {
        check_protocol(Protocol::Lmstfy, &queue)?;
        let ttl_s = seconds_to_live(&ttl)?;
        let done = context.engine.respawn(key(&queue), count, ttl_s).await?;
        Ok(message("Respawned", done, count, &queue).into())
    })
    .await
}

pub static RESPAWN_JOBS: Action = action("respawn_jobs", RespawnJobs::PATH);

/// Respawns these dead jobs of an lmstfy queue with a new time to live.
#[server]
pub async fn respawn_jobs(
    #[server(flatten)] queue: QueueRef,
    #[server(default)] ids: Vec<String>,
    ttl: String,
    back: String,
) -> Result<(), PageError> {
    act(&RESPAWN_JOBS, &back, async |context| {
        check_protocol(Protocol::Lmstfy, &queue)?;
        let ttl_s = seconds_to_live(&ttl)?;
        let count = ids.len();
        let keys = dead_jobs(&context.engine, &queue, ids).await?;
        let results = context.engine.respawn_jobs(keys, ttl_s).await?;
        let done = results.iter().filter(|result| result.is_ok()).count();
        Ok(message("Respawned", done, count, &queue).into())
    })
    .await
}

pub static DELETE_DEAD: Action = action("delete_dead", DeleteDead::PATH);

/// Deletes the oldest `count` dead jobs of a queue.
#[server]
pub async fn delete_dead(
    #[server(flatten)] queue: QueueRef,
    count: usize,
    back: String,
) -> Result<(), PageError> {
    act(&DELETE_DEAD, &back, async |context| {
        let done = context
            .engine
            .delete_dead_letter(key(&queue), count)
            .await?;
        Ok(message("Deleted", done, count, &queue).into())
    })
    .await
}

pub static DELETE_DEAD_JOBS: Action = action("delete_dead_jobs", DeleteDeadJobs::PATH);

/// Deletes these dead jobs of a queue.
#[server]
pub async fn delete_dead_jobs(
    #[server(flatten)] queue: QueueRef,
    #[server(default)] ids: Vec<String>,
    back: String,
) -> Result<(), PageError> {
    act(&DELETE_DEAD_JOBS, &back, async |context| {
        let count = ids.len();
        let keys = dead_jobs(&context.engine, &queue, ids).await?;
        let done = context.engine.delete_dead_jobs(key(&queue), keys).await?;
        Ok(message("Deleted", done, count, &queue).into())
    })
    .await
}

pub static REQUEUE: Action = action("requeue", Requeue::PATH);

/// Requeues the oldest `count` dead jobs of a Relay queue.
#[server(endpoint = "revive")]
pub async fn requeue(
    #[server(flatten)] queue: QueueRef,
    count: usize,
    back: String,
) -> Result<(), PageError> {
    act(&REQUEUE, &back, async |context| {
        check_protocol(Protocol::Relay, &queue)?;
        let done = context
            .engine
            .requeue_oldest_dead(key(&queue), count)
            .await?;
        Ok(requeue_message(done, count, &queue).into())
    })
    .await
}

pub static REQUEUE_JOBS: Action = action("requeue_jobs", RequeueJobs::PATH);

/// Requeues these dead jobs of a Relay queue. `ids` are their numbers.
#[server(endpoint = "revive_jobs")]
pub async fn requeue_jobs(
    #[server(flatten)] queue: QueueRef,
    #[server(default)] ids: Vec<String>,
    back: String,
) -> Result<(), PageError> {
    act(&REQUEUE_JOBS, &back, async |context| {
        check_protocol(Protocol::Relay, &queue)?;
        let count = ids.len();
        let dead = dead_jobs(&context.engine, &queue, ids).await?;
        let results = context.engine.requeue_dead_jobs(key(&queue), dead).await?;
        Ok(requeue_message(RequeueResult::of(&results), count, &queue).into())
    })
    .await
}

pub static REQUEUE_JOB: Action =
    Action::new("requeue_job", RequeueJob::PATH, Role::Operator, |form| {
        let (queue, number) = (form.queue(), form.field("number"));
        let dead = |number| urls::dead_job(&queue, number);
        Target::new(
            format!("dead job {number} in {}", queue.label()),
            number.parse().map(dead).unwrap_or_default(),
        )
    });

/// Requeues a dead job of a Relay queue and shows its page. `number` is the number of the dead job.
#[server(endpoint = "revive_job")]
pub async fn requeue_job(
    #[server(flatten)] queue: QueueRef,
    number: String,
    back: String,
) -> Result<(), PageError> {
    act(&REQUEUE_JOB, &back, async |context| {
        check_protocol(Protocol::Relay, &queue)?;
        let gone = || format!("this dead job is no longer in {}", queue.label());
        let dead = dead_jobs(&context.engine, &queue, vec![number])
            .await?
            .pop();
        let dead = dead.ok_or_else(gone)?;
        let page = urls::job(&queue, &dead.id);
        let requeued = context.engine.requeue_dead(key(&queue), dead).await;
        requeued.map_err(|error| match error {
            Error::NoSuchJob { .. } => gone(),
            Error::JobExists { .. } => format!("{error}; nothing was changed"),
            other => other.to_string(),
        })?;
        let message = "Job requeued with its payload and last state.";
        Ok(ActionOutcome::at(page, message.to_owned()))
    })
    .await
}

/// The jobs of `ids` that are still dead in this queue: others may have been requeued since the page was loaded. Relay
/// jobs are identified by number, because several dead jobs can have the same ID.
async fn dead_jobs(
    engine: &Engine,
    queue: &QueueRef,
    ids: Vec<String>,
) -> Result<Vec<JobKey>, String> {
    if ids.is_empty() {
        return Err("no jobs are selected".to_owned());
    }
    let found = if queue.protocol == Protocol::Relay {
        let numbers: Vec<i64> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        engine.short_dead_jobs(&key(queue), &numbers).await
    } else {
        let keys: Vec<JobKey> = ids.into_iter().map(JobKey::lmstfy).collect();
        let found = engine.short_jobs_by_key(&keys).await;
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

fn seconds_to_live(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| {
        format!(
            "the time to live must be a whole number of seconds from 0 (no expiry) to {}",
            u32::MAX
        )
    })
}

/// A number of jobs of a kind, which ends with a space: `1 dead job`, `2 dead jobs`.
pub fn jobs_text(n: usize, kind: &str) -> String {
    format!("{n} {kind}{}", if n == 1 { "job" } else { "jobs" })
}

fn message(verb: &str, done: usize, count: usize, queue: &QueueRef) -> String {
    if done == count {
        format!("{verb} {} in {}.", jobs_text(done, "dead "), queue.label())
    } else {
        format!(
            "{verb} {done} of {} in {}. The others were no longer dead.",
            jobs_text(count, "dead "),
            queue.label()
        )
    }
}

fn requeue_message(done: RequeueResult, count: usize, queue: &QueueRef) -> String {
    let RequeueResult { done, conflicts } = done;
    let label = queue.label();
    if done == count {
        return format!("Requeued {} in {label}.", jobs_text(done, "dead "));
    }
    let mut text = format!(
        "Requeued {done} of {} in {label}.",
        jobs_text(count, "dead ")
    );
    if conflicts > 0 {
        let (stay, reason) = match conflicts {
            1 => ("stays", "its ID is used by another job"),
            _ => ("stay", "their IDs are used by other jobs"),
        };
        text += &format!(" {conflicts} {stay} dead because {reason} in the queue.");
    }
    match count.saturating_sub(done + conflicts) {
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
    fn a_time_to_live_is_a_number_of_seconds() {
        assert_eq!(seconds_to_live(" 86400 "), Ok(86_400));
        assert_eq!(seconds_to_live("0"), Ok(0));
        assert_eq!(seconds_to_live("4294967295"), Ok(u32::MAX));
        for text in ["", "-1", "1.5", "a day", "4294967296"] {
            assert!(seconds_to_live(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_message_reports_jobs_that_were_no_longer_dead() {
        let queue = QueueRef::lmstfy("shop", "mail");
        assert_eq!(
            message("Respawned", 1, 1, &queue),
            "Respawned 1 dead job in shop/mail."
        );
        assert_eq!(
            message("Deleted", 2, 3, &queue),
            "Deleted 2 of 3 dead jobs in shop/mail. The others were no longer dead."
        );
    }

    #[test]
    fn the_message_says_why_jobs_were_not_requeued() {
        let queue = QueueRef::relay("mail");
        let message = |done, conflicts, count| {
            requeue_message(RequeueResult { done, conflicts }, count, &queue)
        };
        assert_eq!(message(1, 0, 1), "Requeued 1 dead job in mail.");
        assert_eq!(
            message(1, 1, 2),
            "Requeued 1 of 2 dead jobs in mail. 1 stays dead because its ID is used by another job in the queue."
        );
        assert_eq!(
            message(2, 2, 5),
            "Requeued 2 of 5 dead jobs in mail. 2 stay dead because their IDs are used by other jobs in the queue. 1 was no longer dead."
        );
        assert_eq!(
            message(0, 0, 3),
            "Requeued 0 of 3 dead jobs in mail. 3 were no longer dead."
        );
    }
}
