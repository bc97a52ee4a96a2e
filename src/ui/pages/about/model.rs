//! The server itself.

use serde::{Deserialize, Serialize};

/// What there is to tell about the server. Times are microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AboutView {
    pub version: String,
    /// When this server was started.
    pub since: i64,
    /// `SQLite` or `PostgreSQL`, and its version.
    pub kind: String,
    /// Where the database is, without a password.
    pub address: String,
    pub bytes: i64,
    /// The number of the last migration.
    pub migration: i64,
    /// Whether an acknowledged write survives a loss of power.
    pub survives_power: bool,
    /// Servers that use the database now.
    pub servers: i64,
    /// How long the database took to answer, in microseconds.
    pub took: i64,
    /// Clients tell the time.
    pub trusts_client_clock: bool,
    pub queues: usize,
    pub workers: usize,
}
