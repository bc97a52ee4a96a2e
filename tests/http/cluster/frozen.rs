//! A server that is stopped (SIGSTOP) under load, and continues after its leases have expired.
//!
//! `SWITCHYARD_FREEZES` sets how often.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::Pair;
use crate::support::history::History;
use crate::support::load::{Client, Load, keep_complete};
use crate::support::settings;

/// Clients per server; each puts and claims jobs.
const CLIENTS: usize = 8;
const LEASE: Duration = Duration::from_secs(2);

/// Maximum response time while one server is stopped. The other one responds, because the database ends the
/// transactions of the stopped one.
const ANSWERED: Duration = Duration::from_secs(60);

/// How long there is load while both servers run, and while one is stopped.
const LOAD_TIME: Duration = Duration::from_secs(1);
const FROZEN_TIME: Duration = Duration::from_secs(5);

async fn freeze_one_server(options: &[&str]) {
    let Some(pair) = Pair::start(options) else {
        return;
    };
    let lease = json!(LEASE.as_secs());
    pair.one.client().set("heartbeat", lease).await.ok();
    keep_complete(&pair.one).await;
    let history = Arc::new(History::default());
    let clients = (0..2 * CLIENTS).map(|number| {
        let (server, _) = pair.both()[number % 2];
        let mut client = Client::new(server, &history, format!("client-{number}"));
        client.response_time_max = (number % 2 == 1).then_some(ANSWERED);
        client
    });
    let load = Load::begin(clients, 0, vec![Vec::new(); 2 * CLIENTS]);
    for _ in 0..settings::number("SWITCHYARD_FREEZES", 2) {
        sleep(LOAD_TIME).await;
        pair.one.freeze();
        sleep(FROZEN_TIME).await;
        pair.one.thaw();
    }
    sleep(LOAD_TIME).await;
    load.end().await;
    pair.settle(&history, LEASE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_loses_nothing_and_completes_nothing_twice() {
    freeze_one_server(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_loses_nothing_without_skip_locked() {
    freeze_one_server(&["--no-skip-locked"]).await;
}
