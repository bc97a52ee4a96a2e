//! The server itself, as the dashboard shows it.

use super::super::views::AboutView;
use super::{queues, workers};
use crate::engine::{Engine, Result};
use crate::store::Durability;

pub async fn about(engine: &Engine) -> Result<AboutView> {
    let (running, queues, workers) =
        futures::try_join!(engine.about(), queues(engine), workers(engine))?;
    let (opened, database) = (running.opened, running.database);
    Ok(AboutView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        since: opened.at.0,
        kind: format!("{} {}", database.kind, database.version),
        address: opened.address,
        bytes: database.bytes,
        migration: database.migration,
        // What Postgres promises is set there.
        survives_power: opened.durability == Durability::Full,
        servers: database.servers,
        took: i64::try_from(running.took.as_micros()).unwrap_or(i64::MAX),
        trusts_client_clock: engine.trusts_client_clock(),
        queues: queues.len(),
        workers: workers.len(),
    })
}
