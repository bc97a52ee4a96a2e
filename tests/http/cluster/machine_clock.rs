//! The clock of one of two servers' machines is set forward and back by an hour under load.
//!
//! `SWITCHYARD_JUMPS` sets how often.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::history::History;
use crate::support::load::{Client, Load, keep_complete};
use crate::support::machine_clock::MachineClock;
use crate::support::pair::Pair;
use crate::support::{Server, postgres, settings};

/// Clients per server; each puts and claims jobs.
const CLIENTS: usize = 8;
const LEASE: Duration = Duration::from_secs(300);

const HOUR_S: i64 = 3_600;

/// How long there is load between two jumps.
const LOAD_TIME: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_jump_of_one_servers_clock_ends_no_lease() {
    let Some(database) = postgres::shared_database() else {
        return;
    };
    let clock = MachineClock::new();
    let pair = Pair {
        one: clock.server(&database, &[]),
        other: Server::at_url(&database, &[]),
        database,
    };
    let lease = json!(LEASE.as_secs());
    pair.one.client().set("heartbeat", lease).await.ok();
    pair.other.client().add_ids("held", &["held"]).await;
    assert_eq!(pair.other.by("holder").pop("held").await["id"], "held");
    // An idle server, which has not read the database's clock since the jump.
    clock.set(HOUR_S);
    let page = format!("http://{}/ui", pair.one.address);
    pair.one.http.get(page).send().await.unwrap();
    assert_eq!(pair.one.by("thief").pop("held").await, Value::Null);
    keep_complete(&pair.one).await;
    let history = Arc::new(History::default());
    let clients = (0..2 * CLIENTS).map(|number| {
        let (server, _) = pair.both()[number % 2];
        Client::new(server, &history, format!("client-{number}"))
    });
    let load = Load::begin(clients, 0, vec![Vec::new(); 2 * CLIENTS]);
    for jump in 0..settings::number("SWITCHYARD_JUMPS", 2) {
        clock.set(if jump % 2 == 0 { HOUR_S } else { -HOUR_S });
        sleep(LOAD_TIME).await;
        assert_eq!(pair.one.by("thief").pop("held").await, Value::Null);
    }
    clock.set(0);
    load.end().await;
    pair.other.by("holder").complete("held", "held").await;
    pair.settle(&history, LEASE).await;
}
