//! The view model of the server.

use serde::{Deserialize, Serialize};

/// The server and its database. Times are microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AboutView {
    pub version: String,
    /// When this server started.
    pub since: i64,
    /// `SQLite` or `PostgreSQL`, and its version.
    pub kind: String,
    /// The address of the database, without a password.
    pub address: String,
    /// The size of the database.
    pub bytes: i64,
    /// The number of the last migration.
    pub migration: i64,
    /// Whether acknowledged writes survive a power loss.
    pub survives_power: bool,
    /// The number of servers that use the database now.
    pub servers: i64,
    /// The response time of the database, in microseconds.
    pub took: i64,
    /// Whether `--trust-client-clock` is set.
    pub trusts_client_clock: bool,
    pub queues: usize,
    pub workers: usize,
}
