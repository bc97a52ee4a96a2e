//! The network between a server and PostgreSQL breaks under load, or a standby takes over: nothing acknowledged is
//! lost.
//!
//! `SWITCHYARD_BREAKS` sets how often the network breaks, `SWITCHYARD_FAILOVERS` how often a standby takes over, and
//! `SWITCHYARD_PATRONI` how often Patroni lets one take over.

use std::time::Duration;

use tokio::time::sleep;

use super::outage::{FULL, LOAD_TIME, begin_load, end_load, recovered};
use crate::support::Server;
use crate::support::link::{Link, Network};
use crate::support::patroni::Patroni;
use crate::support::postgres::Postgres;
use crate::support::settings;

/// How long the network is broken.
const BROKEN: Duration = Duration::from_secs(3);

/// Two servers with load, of which one reaches the database over a network that breaks.
async fn break_under_load(network: Network) {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let link = Link::to(postgres.port()).await;
    let address = postgres.address();
    let proxied = Server::at_url(&postgres.address_at(link.port()), FULL);
    let direct = Server::at_url(&address, FULL);
    let (history, load) = begin_load(&[&proxied, &direct]).await;
    for _ in 0..settings::number("SWITCHYARD_BREAKS", 1) {
        sleep(LOAD_TIME).await;
        link.set_network(network);
        sleep(BROKEN).await;
        link.set_network(Network::Works);
        recovered(&proxied).await;
    }
    end_load(load, vec![proxied, direct], &address, &history).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_lose_nothing() {
    break_under_load(Network::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_transmit_nothing_lose_nothing() {
    break_under_load(Network::Silent).await;
}

/// The database commits what the server sends, and the server does not learn of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_that_do_not_arrive_lose_nothing() {
    break_under_load(Network::OneWay).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_network_loses_nothing() {
    break_under_load(Network::Slow(Duration::from_millis(300))).await;
}

/// A primary server with a synchronous standby crashes, and the standby takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_takes_over_has_everything_acknowledged() {
    let Some(mut primary) = Postgres::start() else {
        return;
    };
    let link = Link::to(primary.port()).await;
    let server = Server::at_url(&primary.address_at(link.port()), FULL);
    let (history, load) = begin_load(&[&server]).await;
    for _ in 0..settings::number("SWITCHYARD_FAILOVERS", 1) {
        let standby = primary.synchronous_standby().await;
        sleep(LOAD_TIME).await;
        primary.stop();
        standby.promote();
        link.forward_to(standby.port());
        primary = standby;
        recovered(&server).await;
    }
    end_load(load, vec![server], &primary.address(), &history).await;
}

/// Patroni lets the standby take over: alternately after a crash, and by a switchover as for maintenance. The server
/// connects through a proxy to the leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_patroni_replaces_loses_nothing() {
    let Some(mut cluster) = Patroni::start().await else {
        return;
    };
    let mut leader = cluster.settled().await;
    let link = Link::to(cluster.port(leader)).await;
    let server = Server::at_url(&cluster.address_at(link.port()), FULL);
    let (history, load) = begin_load(&[&server]).await;
    for n in 0..settings::number("SWITCHYARD_PATRONI", 1) {
        sleep(LOAD_TIME).await;
        let is_crash = n % 2 == 0;
        if is_crash {
            cluster.crash(leader);
        } else {
            cluster.switch_over(leader).await;
        }
        let new = cluster.taken_over_from(leader).await;
        link.forward_to(cluster.port(new));
        if is_crash {
            cluster.begin(leader);
        }
        leader = new;
        cluster.settled().await;
        recovered(&server).await;
    }
    let address = cluster.address_at(cluster.port(leader));
    end_load(load, vec![server], &address, &history).await;
}
