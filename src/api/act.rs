//! Server functions that change something. Each is the target of a plain form, with or without
//! JavaScript: it acts, then leads back to the page it came from, which tells what happened.

use leptos::prelude::*;

use super::Trouble;

/// Puts one failed job back to work.
#[server]
pub async fn retry(id: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here()?;
    let done = desk
        .engine
        .unfail_one(super::desk::job_key(&id), None)
        .await;
    desk.back(
        &back,
        done.map(|()| format!("Job “{id}” waits in its queue again.")),
    )
}

/// Puts the oldest `count` failed jobs of a group back to work, each into its own queue. `count` is the
/// number that stood on the button: what failed after that stays.
#[server]
pub async fn retry_group(group: String, count: usize, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here()?;
    let done = desk.engine.unfail(&group, None, count, None).await;
    desk.back(&back, done.map(|n| super::desk::retried(n, count, &group)))
}

/// Cancels a job: it is gone, so its page cannot be gone back to. Leads to `after`; if refused, `back`.
#[server]
pub async fn cancel(id: String, back: String, after: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here()?;
    let done = super::turn::cancel(&desk.engine, &id).await;
    let next = if done.is_ok() { &after } else { &back };
    desk.back(
        next,
        done.map(|()| format!("Job “{id}” is cancelled and gone.")),
    )
}

/// Moves a job to another queue, where it is put anew.
#[server]
pub async fn move_job(id: String, queue: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here()?;
    let done = super::turn::relocate(&desk.engine, &id, &queue).await;
    desk.back(
        &back,
        done.map(|()| format!("Job “{id}” is in queue “{queue}” now.")),
    )
}

/// Gives a job another priority. It is a text, so that a slip of the hand is answered like a refusal.
#[server]
pub async fn prioritize(id: String, priority: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here()?;
    let done = super::turn::prioritize(&desk.engine, &id, &priority).await;
    desk.back(
        &back,
        done.map(|priority| format!("Job “{id}” has priority {priority} now.")),
    )
}

/// Sets an option of the server.
#[server]
pub async fn set_option(option: String, value: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here()?;
    let done = super::turn::set_option(&desk.engine, &option, &value).await;
    desk.back(&back, done)
}

/// Sets an option of one queue.
#[server]
pub async fn set_queue_option(
    queue: String,
    option: String,
    value: String,
    back: String,
) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here()?;
    let done = super::turn::set_queue_option(&desk.engine, &queue, &option, &value).await;
    desk.back(&back, done)
}

/// Forgets what an option has been set to, so that its default is in force again.
#[server]
pub async fn unset_option(option: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here()?;
    let done = super::turn::unset_option(&desk.engine, &option).await;
    desk.back(&back, done)
}

/// Remembers which colours this browser wants: `light`, `dark`, or anything else for the system's.
#[server]
pub async fn theme(theme: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here()?;
    desk.remember_theme(&theme);
    desk.lead_back(&back)
}
