//! What can be done with Jobq's queues. Forms about single records are answered by their own pages
//! (`dashboard/records.rs`).

use leptos::prelude::*;

use crate::api::Trouble;
use crate::api::views::{Place, Role};

/// Makes a queue and leads to its page. If refused, back to the form, with what was typed.
#[server]
pub async fn make_queue(name: String) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::make_queue(&desk.engine, &name).await;
    let next = match &done {
        Ok(()) => crate::app::visit::to::queue(&Place::jobq(&name)),
        Err(_) => crate::app::visit::to::queue_form(&name),
    };
    desk.back(&next, done.map(|()| format!("Queue “{name}” created.")))
}

/// Deletes a queue with all that is in it. Leads to `after`; if refused, `back`.
#[server]
pub async fn delete_queue(
    #[server(flatten)] queue: Place,
    back: String,
    after: String,
) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Admin)?;
    let done = crate::api::turn::expunge(&desk.engine, &queue).await;
    let next = if done.is_ok() { &after } else { &back };
    desk.back(
        next,
        done.map(|()| format!("Queue “{}” and its jobs deleted.", queue.label())),
    )
}
