//! Loads facts about the server.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Durability, Engine, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::pages::about::model::AboutView;
use crate::ui::pages::queues::load::load_queues;
use crate::ui::pages::workers::load::load_workers;

/// The server and its database.
#[server]
pub async fn about() -> Result<AboutView, PageError> {
    read(Role::Viewer, async |context| {
        load_about(&context.engine).await
    })
    .await
}

pub async fn load_about(engine: &Engine) -> Result<AboutView> {
    let (running, queues, workers) =
        futures::try_join!(engine.about(), load_queues(engine), load_workers(engine))?;
    let (opened, database) = (running.opened, running.database);
    Ok(AboutView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        since: opened.at.0,
        kind: format!("{} {}", database.kind, database.version),
        address: opened.address,
        bytes: database.bytes,
        migration: database.migration,
        // For Postgres, this depends on the configuration of Postgres.
        survives_power: opened.durability == Durability::Full,
        servers: database.servers,
        took: i64::try_from(running.took.as_micros()).unwrap_or(i64::MAX),
        trusts_client_clock: engine.trusts_client_clock(),
        queues: queues.len(),
        workers: workers.len(),
    })
}
