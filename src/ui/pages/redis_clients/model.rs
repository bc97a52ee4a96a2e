//! The view models of clients that are connected over the Redis protocol.

use serde::{Deserialize, Serialize};

/// A page of the connected clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RedisClientsView {
    /// Whether the server has a listener for the Redis protocol.
    pub listens: bool,
    /// The number of all connected clients.
    pub total: i64,
    pub clients: Vec<RedisClient>,
}

/// A connected client. Times are microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RedisClient {
    pub number: u64,
    /// The name that the client has given itself; empty if it has not.
    pub name: String,
    pub address: String,
    /// The name and the version of the client's library.
    pub library: String,
    pub connected: i64,
    /// The last command, and when it began; when the client connected, if there is none.
    pub command: String,
    pub active: i64,
    /// The number of channels and patterns to which the client is subscribed.
    pub subscriptions: usize,
}
