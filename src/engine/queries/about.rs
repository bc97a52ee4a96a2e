//! Information about the running server.

use std::time::{Duration, Instant};

use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::{Engine, EngineSettings};
use crate::store::{DatabaseInfo, Durability, without_password};

/// How and when the engine was opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The database URL, without a password.
    pub address: String,
    pub durability: Durability,
    pub at: Time,
}

impl Opened {
    pub(in crate::engine) fn with(options: &EngineSettings, at: Time) -> Opened {
        Opened {
            address: without_password(&options.database),
            durability: options.durability,
            at,
        }
    }
}

/// A running server, for operators.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    pub opened: Opened,
    pub database: DatabaseInfo,
    /// How long the database took to respond.
    pub took: Duration,
}

impl Engine {
    /// Queries the database about itself, and adds how the engine was opened.
    pub async fn about(&self) -> Result<ServerInfo> {
        let began = Instant::now();
        let database = self.readers().database_info(self.now(None).0).await?;
        Ok(ServerInfo {
            opened: self.0.opened.clone(),
            database,
            took: began.elapsed(),
        })
    }
}
