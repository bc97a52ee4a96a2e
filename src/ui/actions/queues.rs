//! Actions on queues.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::dead_letters::jobs_text;
use super::input::{check_name, check_protocol};
use super::{Action, ActionOutcome, Target, act};
use crate::auth::Role;
use crate::engine::{Engine, QueueCounts, invalid_queue_name_reason};
use crate::ui::error::PageError;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::present::queue_refs::key;
use crate::ui::present::queue_row;
use crate::ui::urls;

const fn action(name: &'static str, path: &'static str, role: Role) -> Action {
    Action::new(name, path, role, |form| Target::queue(&form.queue()))
}

pub static PAUSE_QUEUE: Action = action("pause_queue", PauseQueue::PATH, Role::Operator);

/// Pauses a queue: workers get no jobs from it.
#[server]
pub async fn pause_queue(
    #[server(flatten)] queue: QueueRef,
    back: String,
) -> Result<(), PageError> {
    act(&PAUSE_QUEUE, &back, async |context| {
        set_paused(&context.engine, &queue, true).await?;
        let queue = queue.label();
        Ok(format!("Queue “{queue}” paused. Workers get no jobs from it.").into())
    })
    .await
}

pub static UNPAUSE_QUEUE: Action = action("unpause_queue", UnpauseQueue::PATH, Role::Operator);

/// Resumes a paused queue.
#[server]
pub async fn unpause_queue(
    #[server(flatten)] queue: QueueRef,
    back: String,
) -> Result<(), PageError> {
    act(&UNPAUSE_QUEUE, &back, async |context| {
        set_paused(&context.engine, &queue, false).await?;
        Ok(format!("Queue “{}” resumed.", queue.label()).into())
    })
    .await
}

async fn set_paused(engine: &Engine, queue: &QueueRef, paused: bool) -> Result<(), String> {
    match queue.protocol {
        Protocol::Qless => check_name("the queue name", &queue.name)?,
        // Pausing an unknown queue would create it.
        Protocol::Lmstfy | Protocol::Relay => drop(existing(engine, queue).await?),
        Protocol::Jobq => return Err("Jobq queues cannot be paused".to_owned()),
    }
    let paused = engine.pause(key(queue), paused, None).await;
    paused.map_err(|error| error.to_string())
}

async fn existing(engine: &Engine, queue: &QueueRef) -> Result<QueueCounts, String> {
    let found = engine.queue(&key(queue), None).await;
    let found = found.map_err(|error| error.to_string())?;
    found.ok_or_else(|| format!("queue “{}” not found", queue.label()))
}

pub static FORGET_QUEUE: Action = action("forget_queue", ForgetQueue::PATH, Role::Admin);

/// Removes a queue from the lists if it is not paused and has no unfinished or recurring jobs. The message is shown on
/// the page `after`.
#[server]
pub async fn forget_queue(
    #[server(flatten)] queue: QueueRef,
    back: String,
    after: String,
) -> Result<(), PageError> {
    act(&FORGET_QUEUE, &back, async |context| {
        let found = existing(&context.engine, &queue).await?;
        let label = queue.label();
        if !queue_row(&found).is_idle() {
            return Err(format!(
                "queue “{label}” cannot be forgotten because it is paused or has unfinished or recurring jobs"
            )
            .into());
        }
        context.engine.forget_queue(key(&queue), None).await?;
        Ok(ActionOutcome::at(after, format!("Queue “{label}” forgotten.")))
    })
    .await
}

pub static DESTROY_QUEUE: Action = action("destroy_queue", DestroyQueue::PATH, Role::Admin);

/// Deletes the ready jobs of an lmstfy queue.
#[server]
pub async fn destroy_queue(
    #[server(flatten)] queue: QueueRef,
    back: String,
) -> Result<(), PageError> {
    act(&DESTROY_QUEUE, &back, async |context| {
        check_protocol(Protocol::Lmstfy, &queue)?;
        let key = key(&queue);
        let deleted = context.engine.destroy(key.clone()).await?;
        let left = context.engine.queue(&key, None).await.ok().flatten();
        let left = left.map_or(0, |queue| {
            let counts = queue.counts;
            counts.scheduled + counts.running + counts.stalled + counts.dead
        });
        let label = queue.label();
        let message = match deleted {
            0 => format!("No ready jobs in {label}. Nothing was deleted."),
            n => format!(
                "Deleted {} in {label}. Kept {left} scheduled, running or dead.",
                jobs_text(n, "ready ")
            ),
        };
        Ok(message.into())
    })
    .await
}

pub static CREATE_QUEUE: Action =
    Action::new("create_queue", CreateQueue::PATH, Role::Operator, |form| {
        Target::queue(&QueueRef::jobq(form.field("name")))
    });

/// Creates a Jobq queue and shows its page; on error, the form with the name.
#[server(endpoint = "make_queue")]
pub async fn create_queue(name: String) -> Result<(), PageError> {
    act(&CREATE_QUEUE, &urls::queue_form(&name), async |context| {
        if let Some(flaw) = invalid_queue_name_reason(&name) {
            return Err(flaw.into());
        }
        context.engine.create_queue(&name).await?;
        let page = urls::queue(&QueueRef::jobq(&name));
        Ok(ActionOutcome::at(page, format!("Queue “{name}” created.")))
    })
    .await
}

pub static DELETE_QUEUE: Action = action("delete_queue", DeleteQueue::PATH, Role::Admin);

/// Deletes a Jobq queue and all its jobs. The message is shown on the page `after`.
#[server]
pub async fn delete_queue(
    #[server(flatten)] queue: QueueRef,
    back: String,
    after: String,
) -> Result<(), PageError> {
    act(&DELETE_QUEUE, &back, async |context| {
        check_protocol(Protocol::Jobq, &queue)?;
        let engine = &context.engine;
        engine
            .delete_queue(&engine.record_queue(&queue.name).await?)
            .await?;
        let message = format!("Queue “{}” and its jobs deleted.", queue.label());
        Ok(ActionOutcome::at(after, message))
    })
    .await
}
