//! Server functions that change something. Each is the target of a plain form, with or without
//! JavaScript: it acts, then leads back to the page it came from, which tells what happened.

use leptos::prelude::*;

use super::Trouble;
use super::views::{Place, RecurringForm, Role};

mod display;
mod jobq;
mod lmstfy;
mod operations;
mod relay;
mod searches;

pub use display::*;
pub use jobq::*;
pub use lmstfy::*;
pub use operations::*;
pub use relay::*;
pub use searches::*;

/// Puts one failed job back to work.
#[server]
pub async fn retry(id: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = desk
        .engine
        .retry_failed(super::desk::job_key(&id), None)
        .await;
    desk.back(&back, done.map(|()| format!("Job “{id}” was requeued.")))
}

/// Puts the oldest `count` failed jobs of a group back to work, each into its own queue. `count` is the
/// number that stood on the button: what failed after that stays.
#[server]
pub async fn retry_group(group: String, count: usize, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = desk.engine.unfail(&group, None, count, None).await;
    desk.back(&back, done.map(|n| super::desk::retried(n, count, &group)))
}

/// Cancels a job: it is gone, so its page cannot be gone back to. Leads to `after`; if refused, `back`.
#[server]
pub async fn cancel(id: String, back: String, after: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::cancel(&desk.engine, &id).await;
    let next = if done.is_ok() { &after } else { &back };
    desk.back(next, done.map(|()| format!("Job “{id}” canceled.")))
}

/// Moves a job to another queue, where it is put anew.
#[server]
pub async fn move_job(id: String, queue: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::relocate(&desk.engine, &id, &queue).await;
    desk.back(
        &back,
        done.map(|()| format!("Job “{id}” moved to queue “{queue}”.")),
    )
}

/// Gives a job another priority. It is a text, so that a slip of the hand is answered like a refusal.
#[server]
pub async fn prioritize(id: String, priority: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::prioritize(&desk.engine, &id, &priority).await;
    desk.back(
        &back,
        done.map(|priority| format!("Priority of job “{id}” set to {priority}.")),
    )
}

/// Gives a job a tag.
#[server]
pub async fn add_tag(id: String, tag: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::tag(&desk.engine, &id, &tag).await;
    desk.back(
        &back,
        done.map(|tag| format!("Tag “{tag}” added to job “{id}”.")),
    )
}

/// Takes a tag off a job.
#[server]
pub async fn remove_tag(id: String, tag: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::untag(&desk.engine, &id, &tag).await;
    desk.back(
        &back,
        done.map(|()| format!("Tag “{tag}” removed from job “{id}”.")),
    )
}

/// Tracks a job.
#[server]
pub async fn track(id: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::track(&desk.engine, &id).await;
    desk.back(&back, done.map(|()| format!("Tracking job “{id}”.")))
}

/// Tracks a job, there or not, no longer.
#[server]
pub async fn untrack(id: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::untrack(&desk.engine, &id).await;
    desk.back(
        &back,
        done.map(|()| format!("Stopped tracking job “{id}”.")),
    )
}

/// Takes a running job from its worker.
#[server]
pub async fn time_out(id: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::time_out(&desk.engine, &id).await;
    desk.back(
        &back,
        done.map(|()| format!("Job “{id}” timed out. It is first in line in its queue.")),
    )
}

/// A job waits for another one no longer.
#[server]
pub async fn undepend(id: String, on: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::undepend(&desk.engine, &id, &on).await;
    desk.back(
        &back,
        done.map(|()| format!("Job “{id}” no longer depends on “{on}”.")),
    )
}

/// A job waits for no other any longer.
#[server]
pub async fn undepend_all(id: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::undepend_all(&desk.engine, &id).await;
    desk.back(
        &back,
        done.map(|()| format!("Job “{id}” no longer depends on other jobs.")),
    )
}

/// Adds a word to the history of a job.
#[server]
pub async fn note(id: String, message: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::note(&desk.engine, &id, &message).await;
    desk.back(&back, done.map(|()| "Note added.".to_owned()))
}

/// Pauses a queue: nobody gets a job of it.
#[server]
pub async fn pause_queue(#[server(flatten)] queue: Place, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::pause(&desk.engine, &queue, true).await;
    desk.back(
        &back,
        done.map(|()| {
            let queue = queue.label();
            format!("Queue “{queue}” paused. Workers get no jobs from it.")
        }),
    )
}

/// Lets a paused queue go on.
#[server]
pub async fn unpause_queue(#[server(flatten)] queue: Place, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::pause(&desk.engine, &queue, false).await;
    desk.back(
        &back,
        done.map(|()| format!("Queue “{}” resumed.", queue.label())),
    )
}

/// Takes a queue off the lists. Leads to `after`; if refused, `back`.
#[server]
pub async fn forget_queue(
    #[server(flatten)] queue: Place,
    back: String,
    after: String,
) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Admin)?;
    let done = super::turn::forget_queue(&desk.engine, &queue).await;
    let next = if done.is_ok() { &after } else { &back };
    desk.back(
        next,
        done.map(|()| format!("Queue “{}” forgotten.", queue.label())),
    )
}

/// Takes a worker off the lists. Leads to `after`; if refused, `back`.
#[server]
pub async fn forget_worker(worker: String, back: String, after: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::forget_worker(&desk.engine, &worker).await;
    let next = if done.is_ok() { &after } else { &back };
    desk.back(next, done.map(|()| format!("Worker “{worker}” forgotten.")))
}

/// Puts a recurring job and leads to its page. If refused, back to the form, with what was typed.
#[server]
pub async fn recur(form: RecurringForm) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::recur(&desk.engine, &form).await;
    let next = match &done {
        Ok(id) => crate::app::visit::to::recurring(id),
        Err(_) => crate::app::visit::to::recurring_form(&form),
    };
    desk.back(
        &next,
        done.map(|id| format!("Recurring job “{id}” created.")),
    )
}

/// Changes a recurring job.
#[server]
pub async fn change_recurring(form: RecurringForm, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::change_recurring(&desk.engine, &form).await;
    desk.back(
        &back,
        done.map(|()| format!("Recurring job “{}” changed.", form.id)),
    )
}

/// Ends a recurring job. Leads to `after`; if refused, `back`.
#[server]
pub async fn unrecur(id: String, back: String, after: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Operator)?;
    let done = super::turn::unrecur(&desk.engine, &id).await;
    let next = if done.is_ok() { &after } else { &back };
    desk.back(
        next,
        done.map(|()| format!("Recurring job “{id}” ended. Its existing jobs are kept.")),
    )
}

/// Sets right what the consistency check finds.
#[server]
pub async fn mend(back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Admin)?;
    let done = super::turn::mend(&desk.engine).await;
    desk.back(&back, done)
}

/// Sets an option of the server.
#[server]
pub async fn set_option(option: String, value: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Admin)?;
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
    let desk = super::desk::Desk::here(Role::Admin)?;
    let done = super::turn::set_queue_option(&desk.engine, &queue, &option, &value).await;
    desk.back(&back, done)
}

/// Forgets what an option has been set to, so that its default is in force again.
#[server]
pub async fn unset_option(option: String, back: String) -> Result<(), Trouble> {
    let desk = super::desk::Desk::here(Role::Admin)?;
    let done = super::turn::unset_option(&desk.engine, &option).await;
    desk.back(&back, done)
}
