//! Applies the action of a bulk operation to one job.

use crate::engine::model::job::{EffectiveState, JobKey, Protocol, QueueKey, State};
use crate::engine::model::queue::Queue;
use crate::engine::operations::JobAction;
use crate::engine::unit_of_work::UnitOfWork;

use crate::engine::verbs::{jobq, lmstfy, qless, relay};

/// Whether the action is possible for a job in this state. Other conditions may still prevent it.
pub fn is_applicable(action: &JobAction, protocol: Protocol, state: EffectiveState) -> bool {
    match action {
        JobAction::Retry => matches!(state, EffectiveState::Failed | EffectiveState::Dead),
        JobAction::Cancel => state != EffectiveState::Complete,
        JobAction::TimeOut => {
            let is_running = matches!(state, EffectiveState::Running | EffectiveState::Stalled);
            is_running && protocol == Protocol::Qless
        }
        _ => protocol == Protocol::Qless,
    }
}

/// Applies the action to the job.
///
/// # Errors
/// The reason why it was not applied, as a clause.
pub fn apply(
    work: &mut UnitOfWork,
    action: &JobAction,
    key: &JobKey,
    queue: &Queue,
) -> Result<(), String> {
    let to_text = |error: crate::engine::Error| error.to_string();
    let only = |what: &str| {
        let protocol = queue.key.protocol;
        match protocol {
            Protocol::Qless => Ok(()),
            _ => Err(format!("{} {what}", protocol.name())),
        }
    };
    let one = std::slice::from_ref;
    match action {
        JobAction::Retry => retry(work, key, queue),
        JobAction::Cancel => cancel(work, key, queue),
        JobAction::Move { queue: to } => {
            only("jobs cannot be moved to another queue")?;
            qless::relocate::relocate(work, key, &QueueKey::qless(to)).map_err(to_text)
        }
        JobAction::Priority { priority } => {
            only("jobs have no priority")?;
            qless::prioritize::prioritize(work, key, *priority).map_err(to_text)
        }
        JobAction::Tag { tag } => {
            only("jobs have no tags")?;
            qless::tag::tag(work, key, one(tag)).map_err(to_text)
        }
        JobAction::Untag { tag } => {
            only("jobs have no tags")?;
            qless::tag::untag(work, key, one(tag)).map_err(to_text)
        }
        JobAction::RenameTag { from, to } => {
            only("jobs have no tags")?;
            match qless::tag::rename(work, key, from, to).map_err(to_text)? {
                true => Ok(()),
                false => Err("the job no longer has the tag".to_owned()),
            }
        }
        JobAction::Track => {
            only("jobs cannot be tracked")?;
            qless::track::track(work, key, &[]).map_err(to_text)
        }
        JobAction::Untrack => {
            only("jobs cannot be tracked")?;
            qless::track::untrack(work, key);
            Ok(())
        }
        JobAction::TimeOut => {
            only("jobs cannot be timed out")?;
            qless::timeout::time_out(work, key).map_err(to_text)
        }
        JobAction::EditAndRetry | JobAction::Complete => {
            Err("this action is for single jobs".to_owned())
        }
    }
}

fn retry(work: &mut UnitOfWork, key: &JobKey, queue: &Queue) -> Result<(), String> {
    let done = match queue.key.protocol {
        Protocol::Qless => qless::unfail::retry_failed(work, key),
        Protocol::Lmstfy => lmstfy::respawn::respawn(work, key, 0),
        Protocol::Relay => relay::dead_letter::requeue_dead(work, &queue.key, key),
        Protocol::Jobq => return Err("Jobq jobs cannot be retried".to_owned()),
    };
    done.map_err(|error| error.to_string())
}

fn cancel(work: &mut UnitOfWork, key: &JobKey, queue: &Queue) -> Result<(), String> {
    let to_text = |error: crate::engine::Error| error.to_string();
    let is_dead = work.job(key).is_some_and(|job| job.state == State::Dead);
    let is_deleted = match queue.key.protocol {
        Protocol::Qless => {
            return qless::cancel::cancel(work, std::slice::from_ref(key)).map_err(to_text);
        }
        Protocol::Lmstfy => lmstfy::acknowledge::acknowledge(work, &queue.key, key),
        Protocol::Relay if is_dead => relay::dead_letter::delete_dead(work, &queue.key, key),
        Protocol::Relay => relay::delete::delete(work, &queue.key, &key.id),
        Protocol::Jobq => {
            let id = key.id.parse().unwrap_or_default();
            jobq::delete::delete(work, queue, id).map_err(to_text)?
        }
    };
    if is_deleted {
        Ok(())
    } else {
        Err("the job is no longer in its queue".to_owned())
    }
}
