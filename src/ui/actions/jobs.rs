//! Actions on single jobs. Except for [`delete_job`], they apply to qless jobs only.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::input::{check_name, number, only, shortened};
use super::records::delete_record;
use super::{Action, ActionOutcome, Target, act};
use crate::auth::Role;
use crate::engine::{Depend, Engine, JobKey, NOTE_BYTES_MAX, QueueKey};
use crate::ui::error::PageError;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::present::queue_refs::key;

/// Characters of an ID in a message.
const ID_CHARS: usize = 80;

const fn operator(name: &'static str, path: &'static str) -> Action {
    Action::new(name, path, Role::Operator, Target::qless_job)
}

pub static RETRY: Action = operator("retry", Retry::PATH);

/// Retries a failed job.
#[server]
pub async fn retry(id: String, back: String) -> Result<(), PageError> {
    act(&RETRY, &back, async |context| {
        context
            .engine
            .retry_failed(JobKey::qless(&id), None)
            .await?;
        Ok(format!("Job “{id}” was requeued.").into())
    })
    .await
}

pub static CANCEL: Action = operator("cancel", Cancel::PATH);

/// Cancels a job, which can be undone for a while. It has no page afterwards, so the message is shown on the page
/// `after`.
#[server]
pub async fn cancel(id: String, back: String, after: String) -> Result<(), PageError> {
    act(&CANCEL, &back, async |context| {
        let (key, user) = (JobKey::qless(&id), context.user.clone());
        let operation = context.engine.cancel_with_undo(key, user).await?;
        Ok(ActionOutcome::at(after, format!("Job “{id}” canceled.")).with_undo(operation))
    })
    .await
}

pub static MOVE_JOB: Action = operator("move_job", MoveJob::PATH);

/// Moves a job to another queue, which need not exist yet.
#[server]
pub async fn move_job(id: String, queue: String, back: String) -> Result<(), PageError> {
    act(&MOVE_JOB, &back, async |context| {
        check_name("the queue name", &queue)?;
        let (job, to) = (JobKey::qless(&id), QueueKey::qless(&queue));
        context.engine.relocate(job, to, None).await?;
        Ok(format!("Job “{id}” moved to queue “{queue}”.").into())
    })
    .await
}

pub static PRIORITIZE: Action = operator("prioritize", Prioritize::PATH);

/// Changes the priority of a job. The parameter is text, so that the page can explain a typing mistake.
#[server]
pub async fn prioritize(id: String, priority: String, back: String) -> Result<(), PageError> {
    act(&PRIORITIZE, &back, async |context| {
        let priority = number("the priority", &priority)?;
        let jobs = vec![(JobKey::qless(&id), priority)];
        only(context.engine.prioritize(jobs, None).await)?;
        Ok(format!("Priority of job “{id}” set to {priority}.").into())
    })
    .await
}

pub static ADD_TAG: Action = operator("add_tag", AddTag::PATH);

/// Adds a tag to a job.
#[server]
pub async fn add_tag(id: String, tag: String, back: String) -> Result<(), PageError> {
    act(&ADD_TAG, &back, async |context| {
        let tag = tag.trim();
        check_name("the tag", tag)?;
        let jobs = vec![(JobKey::qless(&id), vec![tag.to_owned()])];
        only(context.engine.tag(jobs, None).await)?;
        Ok(format!("Tag “{tag}” added to job “{id}”.").into())
    })
    .await
}

pub static REMOVE_TAG: Action = operator("remove_tag", RemoveTag::PATH);

/// Removes a tag from a job.
#[server]
pub async fn remove_tag(id: String, tag: String, back: String) -> Result<(), PageError> {
    act(&REMOVE_TAG, &back, async |context| {
        let jobs = vec![(JobKey::qless(&id), vec![tag.clone()])];
        only(context.engine.untag(jobs, None).await)?;
        Ok(format!("Tag “{tag}” removed from job “{id}”.").into())
    })
    .await
}

pub static TRACK: Action = operator("track", Track::PATH);

/// Tracks a job.
#[server]
pub async fn track(id: String, back: String) -> Result<(), PageError> {
    act(&TRACK, &back, async |context| {
        let jobs = vec![(JobKey::qless(&id), Vec::new())];
        only(context.engine.track(jobs, None).await)?;
        Ok(format!("Tracking job “{id}”.").into())
    })
    .await
}

pub static UNTRACK: Action = operator("untrack", Untrack::PATH);

/// Stops tracking a job, which need not exist anymore.
#[server]
pub async fn untrack(id: String, back: String) -> Result<(), PageError> {
    act(&UNTRACK, &back, async |context| {
        only(context.engine.untrack(vec![JobKey::qless(&id)], None).await)?;
        Ok(format!("Stopped tracking job “{id}”.").into())
    })
    .await
}

pub static TIME_OUT: Action = operator("time_out", TimeOut::PATH);

/// Takes a running job from its worker.
#[server]
pub async fn time_out(id: String, back: String) -> Result<(), PageError> {
    act(&TIME_OUT, &back, async |context| {
        only(
            context
                .engine
                .time_out(vec![JobKey::qless(&id)], None)
                .await,
        )?;
        Ok(format!("Job “{id}” timed out. It goes before all waiting jobs of its queue.").into())
    })
    .await
}

pub static REMOVE_DEPENDENCY: Action = operator("undepend", Undepend::PATH);

/// Removes one dependency of a job.
#[server]
pub async fn undepend(id: String, on: String, back: String) -> Result<(), PageError> {
    act(&REMOVE_DEPENDENCY, &back, async |context| {
        depend(&context.engine, &id, Depend::Off(vec![on.clone()])).await?;
        Ok(format!("Job “{id}” no longer depends on “{on}”.").into())
    })
    .await
}

pub static REMOVE_ALL_DEPENDENCIES: Action = operator("undepend_all", UndependAll::PATH);

/// Removes all dependencies of a job.
#[server]
pub async fn undepend_all(id: String, back: String) -> Result<(), PageError> {
    act(&REMOVE_ALL_DEPENDENCIES, &back, async |context| {
        depend(&context.engine, &id, Depend::OffAll).await?;
        Ok(format!("Job “{id}” no longer depends on other jobs.").into())
    })
    .await
}

async fn depend(engine: &Engine, id: &str, change: Depend) -> Result<(), String> {
    only(engine.depend(vec![(JobKey::qless(id), change)], None).await)
}

pub static NOTE: Action = operator("note", Note::PATH);

/// Adds a note to the history of a job.
#[server]
pub async fn note(id: String, message: String, back: String) -> Result<(), PageError> {
    act(&NOTE, &back, async |context| {
        let message = message.trim();
        if message.is_empty() || message.len() > NOTE_BYTES_MAX {
            return Err(format!("a note must have 1 to {NOTE_BYTES_MAX} bytes").into());
        }
        let notes = vec![(JobKey::qless(&id), message.to_owned(), None)];
        only(context.engine.note(notes, None).await)?;
        Ok("Note added.".to_owned().into())
    })
    .await
}

pub static DELETE_JOB: Action =
    Action::new("delete_job", DeleteJob::PATH, Role::Operator, |form| {
        Target::job(&form.queue(), form.field("id"))
    });

/// Deletes a job of lmstfy, Relay or Jobq in any state, as the API does. The job has no page afterwards, so the message
/// is shown on the page `after`.
#[server]
pub async fn delete_job(
    #[server(flatten)] queue: QueueRef,
    id: String,
    back: String,
    after: String,
) -> Result<(), PageError> {
    act(&DELETE_JOB, &back, async |context| {
        let (engine, ids) = (&context.engine, vec![id.clone()]);
        let deleted = match queue.protocol {
            Protocol::Qless => {
                return Err("qless jobs cannot be deleted; cancel them instead".into());
            }
            Protocol::Lmstfy => engine.acknowledge(key(&queue), ids).await?,
            Protocol::Relay => engine.delete(key(&queue), ids).await?,
            Protocol::Jobq => usize::from(delete_record(engine, &queue, &id).await?),
        };
        let id = shortened(&id, ID_CHARS);
        match deleted {
            0 => Err(format!("job “{id}” is no longer in {}", queue.label()).into()),
            _ => Ok(ActionOutcome::at(after, format!("Job “{id}” deleted."))),
        }
    })
    .await
}
