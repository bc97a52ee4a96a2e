//! What can be done with Relay's dead jobs, which are named by their numbers: they are enqueued anew.

use leptos::prelude::*;

use crate::api::Trouble;
use crate::api::views::{Place, Role};

/// Enqueues the oldest `count` jobs of a dead letter anew. `count` is the number that stood on the button: what died
/// after that stays.
#[server]
pub async fn revive(
    #[server(flatten)] queue: Place,
    count: usize,
    back: String,
) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::revive(&desk.engine, &queue, count).await;
    desk.back(&back, done)
}

/// Enqueues these jobs of a dead letter anew.
#[server]
pub async fn revive_jobs(
    #[server(flatten)] queue: Place,
    #[server(default)] ids: Vec<String>,
    back: String,
) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::revive_jobs(&desk.engine, &queue, ids).await;
    desk.back(&back, done)
}

/// Enqueues a dead job anew and leads to what has become of it; if refused, `back`.
#[server]
pub async fn revive_job(
    #[server(flatten)] queue: Place,
    letter: String,
    back: String,
) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::revive_job(&desk.engine, &queue, &letter).await;
    let next = match &done {
        Ok(id) => crate::app::visit::to::job(&queue, id),
        Err(_) => back,
    };
    desk.back(
        &next,
        done.map(|_| "Job requeued with its payload and last state.".to_owned()),
    )
}
