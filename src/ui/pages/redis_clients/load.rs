//! Loads the clients that are connected over the Redis protocol.

use std::time::Duration;

use leptos::prelude::*;

use crate::auth::Role;
use crate::redis_clients::ClientInfo;
use crate::ui::components::basics::number_of;
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::PAGE_ROWS;
use crate::ui::pages::redis_clients::model::{RedisClient, RedisClientsView};

/// The clients of this server, in the order in which they connected. Operators only, because addresses are personal
/// data.
#[server]
pub async fn redis_clients(offset: usize) -> Result<RedisClientsView, PageError> {
    read(Role::Operator, async |context| {
        let now = context.engine.now(None).0;
        let clients = context.clients.list(offset, PAGE_ROWS).into_iter();
        Ok(RedisClientsView {
            listens: context.clients.listens(),
            total: number_of(context.clients.count()),
            clients: clients.map(|client| redis_client(client, now)).collect(),
        })
    })
    .await
}

fn redis_client(client: ClientInfo, now: i64) -> RedisClient {
    let before = |ago: Duration| {
        let ago = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
        now.saturating_sub(ago)
    };
    let state = client.state;
    RedisClient {
        number: client.number,
        name: state.name,
        address: client.address.to_string(),
        library: [state.library, state.library_version].join(" "),
        connected: before(client.age),
        command: state.command,
        active: before(client.idle),
        subscriptions: state.subscriptions,
    }
}
