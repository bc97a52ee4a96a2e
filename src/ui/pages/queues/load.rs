//! Loads the list of queues.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Engine, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::queue::QueueRow;
use crate::ui::present::{listed_queues, queue_row, without_forgotten};

pub async fn load_queues(engine: &Engine) -> Result<Vec<QueueRow>> {
    Ok(without_forgotten(
        listed_queues(engine).await?.iter().map(queue_row),
    ))
}

/// All queues, except forgotten ones that are idle.
#[server]
pub async fn queues() -> Result<Vec<QueueRow>, PageError> {
    read(Role::Viewer, async |context| {
        load_queues(&context.engine).await
    })
    .await
}
