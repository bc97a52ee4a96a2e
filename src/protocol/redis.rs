//! qless over the Redis protocol: what the clients of qless-core need of a Redis server (`docs/protocols/redis.md`).
//!
//! A [`Session`] runs the commands of one connection. A script is not run but recognized ([`scripts`]), and its
//! commands call the engine ([`qless`]). [`pubsub`] sends events to subscribers.

mod channels;
mod command_memory;
mod pubsub;
mod qless;
mod resp;
mod scripts;
mod server;
mod session;
mod transaction;

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use pubsub::Mailbox;
pub use resp::{Malformed, Reader, Reply};
pub use session::{ConnectionAction, Session};

use self::pubsub::Hub;
use self::scripts::Scripts;
use crate::auth::{ActiveCredentials, Api, Auth};
use crate::engine::{Engine, Error};
use crate::redis_clients::Clients;

/// What the connections over the Redis protocol share.
pub struct RedisApi {
    engine: Engine,
    auth: Auth,
    allow_flush: bool,
    scripts: Scripts,
    hub: Arc<Hub>,
    clients: Arc<Clients>,
}

impl RedisApi {
    /// Starts the task that reads events while there are subscribers, until `stop` is canceled.
    pub fn new(
        engine: &Engine,
        auth: &Auth,
        allow_flush: bool,
        clients: Arc<Clients>,
        stop: CancellationToken,
    ) -> RedisApi {
        RedisApi {
            engine: engine.clone(),
            auth: auth.clone(),
            allow_flush,
            scripts: Scripts::default(),
            hub: Hub::start(engine.clone(), stop),
            clients,
        }
    }

    /// The credentials that are valid now, and later ones.
    pub fn credentials(&self) -> watch::Receiver<Arc<ActiveCredentials>> {
        self.auth.keyring.replacements()
    }

    fn needs_token(&self) -> bool {
        self.auth.has_token(Api::Qless)
    }
}

/// The error if other requests occupy the memory that a command or its reply needs.
const NO_MEMORY: &str = "TRYAGAIN other requests occupy the memory for large requests";

/// The error of the engine, if it says nothing about the command: the database failed, does not respond or is full, or
/// the server is busy.
fn outage(error: &Error) -> Option<Reply> {
    match error {
        Error::Store(detail) => {
            // The log has the details, for the operator.
            tracing::error!(error = detail, "a command over the Redis protocol failed");
            Some(Reply::error("ERR internal error; see the server log"))
        }
        Error::Full => Some(Reply::Error(format!("OOM {error}"))),
        // Clients try again after this code.
        Error::Unavailable | Error::Busy => Some(Reply::Error(format!("TRYAGAIN {error}"))),
        _ => None,
    }
}
