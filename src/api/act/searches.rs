//! Searches with a name, for everybody.

use leptos::prelude::*;

use crate::api::Trouble;
use crate::api::views::Role;

/// Saves a search under a name, in the place of what has that name.
#[server]
pub async fn save_search(name: String, text: String, back: String) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = crate::api::turn::save_search(&desk.engine, &name, &text, &desk.who).await;
    desk.back(
        &back,
        done.map(|()| format!("Search saved as “{}”.", name.trim())),
    )
}

/// Forgets a saved search.
#[server]
pub async fn forget_search(name: String, back: String) -> Result<(), Trouble> {
    let desk = crate::api::desk::Desk::here(Role::Operator)?;
    let done = desk.engine.forget_search(&name).await;
    desk.back(
        &back,
        done.map(|()| format!("Saved search “{name}” deleted.")),
    )
}
