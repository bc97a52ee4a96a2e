//! Operations on many jobs. What was asked for stands on a page of its own before it is done.

use leptos::prelude::*;

use crate::api::Trouble;
use crate::api::views::{Role, Seen};

/// Makes an operation and leads to its page. If refused, back to the question, with what was typed.
#[server]
pub async fn operate(
    deed: String,
    #[server(default)] of: String,
    #[server(default)] q: String,
    #[server(default)] jobs: Vec<String>,
    #[server(default)] arg: String,
    #[server(flatten)] seen: Seen,
) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let all = of == "all";
    let wish = crate::api::views::Wish {
        deed,
        all,
        q,
        jobs,
        arg,
    };
    let done = crate::api::turn::operate(&desk.engine, &desk.who, &wish, &seen).await;
    let next = match &done {
        Ok((id, _)) => crate::app::visit::to::operation(*id),
        Err(_) => crate::app::visit::to::confirm(&wish, &seen.typed),
    };
    desk.back(&next, done.map(|(_, said)| said))
}

/// Ends an operation in the middle; what it has done stays.
#[server]
pub async fn stop_operation(id: i64, back: String) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::stop(&desk.engine, id).await;
    desk.back(
        &back,
        done.map(|()| "Operation stopped. Changes already made are kept.".to_owned()),
    )
}

/// Puts back what an operation has removed.
#[server]
pub async fn undo_operation(id: i64, back: String) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::undo(&desk.engine, id).await;
    desk.back(&back, done.map(|()| "Undo started.".to_owned()))
}
