//! What can be done with lmstfy's jobs and queues, where a retry of a dead job is a respawn; and what can be done with
//! Relay's jobs just as well.

use leptos::prelude::*;

use crate::api::Trouble;
use crate::api::views::{Place, Role};

/// Takes the oldest `count` jobs out of a dead letter. `count` is the number that stood on the button: what died
/// after that stays.
#[server]
pub async fn respawn(
    #[server(flatten)] queue: Place,
    count: usize,
    ttl: String,
    back: String,
) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::respawn(&desk.engine, &queue, count, &ttl).await;
    desk.back(&back, done)
}

/// Takes these jobs out of a dead letter.
#[server]
pub async fn respawn_jobs(
    #[server(flatten)] queue: Place,
    #[server(default)] ids: Vec<String>,
    ttl: String,
    back: String,
) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::respawn_jobs(&desk.engine, &queue, ids, &ttl).await;
    desk.back(&back, done)
}

/// Deletes the oldest `count` jobs of a dead letter.
#[server]
pub async fn delete_dead(
    #[server(flatten)] queue: Place,
    count: usize,
    back: String,
) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::delete_dead(&desk.engine, &queue, count).await;
    desk.back(&back, done)
}

/// Deletes these jobs of a dead letter.
#[server]
pub async fn delete_dead_jobs(
    #[server(flatten)] queue: Place,
    #[server(default)] ids: Vec<String>,
    back: String,
) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::delete_dead_jobs(&desk.engine, &queue, ids).await;
    desk.back(&back, done)
}

/// Deletes a job, whatever its state, as a client would. Leads to `after`; if refused, `back`.
#[server]
pub async fn delete_job(
    #[server(flatten)] queue: Place,
    id: String,
    back: String,
    after: String,
) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::delete_job(&desk.engine, &queue, &id).await;
    let next = if done.is_ok() { &after } else { &back };
    desk.back(next, done)
}

/// Deletes what is ready in a queue.
#[server]
pub async fn destroy_queue(#[server(flatten)] queue: Place, back: String) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Admin)?;
    let done = crate::api::turn::destroy(&desk.engine, &queue).await;
    desk.back(&back, done)
}

/// Takes a token away: whoever uses it is turned away from now on.
#[server]
pub async fn revoke_token(namespace: String, name: String, back: String) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Admin)?;
    let done = crate::api::turn::revoke_token(&desk.engine, &namespace, &name).await;
    desk.back(
        &back,
        done.map(|()| format!("Token {name} of {namespace} revoked.")),
    )
}
