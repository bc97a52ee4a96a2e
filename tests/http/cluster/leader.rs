//! Leader election: exactly one server runs maintenance.

use std::time::Duration;

use serde_json::json;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::time::{sleep, timeout};

use super::{Pair, assert_consistent};
use crate::support::{Server, postgres};

/// The time within which another server takes over maintenance after the leader has died or hangs.
const TAKEN_OVER: Duration = Duration::from_secs(30);

/// A guard against an event that never happens; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Time between two checks.
const PAUSE: Duration = Duration::from_millis(50);

/// A direct connection to the database.
struct Observer(PgConnection);

impl Observer {
    async fn at(database: &str) -> Observer {
        Observer(PgConnection::connect(database).await.unwrap())
    }

    /// The name of the leader, and the end of its lease.
    async fn leader(&mut self) -> (String, i64) {
        let row = sqlx::query_as("SELECT name, until FROM leader");
        row.fetch_one(&mut self.0).await.unwrap()
    }

    /// Waits until the leader's name satisfies `is`.
    async fn wait_for_leader(&mut self, within: Duration, is: impl Fn(&str) -> bool) -> String {
        let is_leader = async {
            loop {
                let (name, _) = self.leader().await;
                if is(&name) {
                    return name;
                }
                sleep(PAUSE).await;
            }
        };
        timeout(within, is_leader)
            .await
            .expect("a server is the leader")
    }

    /// Waits until the leader has renewed its lease.
    async fn wait_for_renewal(&mut self) -> String {
        let (leader, until) = self.leader().await;
        let renewed = async {
            loop {
                let (name, later) = self.leader().await;
                assert_eq!(name, leader, "the leader stays the leader");
                if later > until {
                    return name;
                }
                sleep(PAUSE).await;
            }
        };
        timeout(WAIT_MAX, renewed).await.expect("there is a leader")
    }
}

/// Checks that maintenance runs: due jobs become available, and old jobs are deleted.
async fn assert_maintained(server: &Server, observer: &mut Observer, round: u32) {
    let work = server.by("w");
    let (due, old) = (format!("due{round}"), format!("old{round}"));
    work.set("jobs-history-count", json!(0)).await.ok();
    let item = json!({"id": due, "meta": 1, "delay": 0.1});
    work.add("later", item).await;
    work.add_and_pop(json!({"id": old, "meta": 1})).await;
    work.complete("work", &old).await;
    let kept = async {
        // Reads the database directly, because a server would show a due job as waiting in any case.
        let sql = "SELECT count(*) FROM jobs WHERE id = $1 AND state = 1 OR id = $2";
        loop {
            let query = sqlx::query_scalar(sql).bind(&due).bind(&old);
            let found: i64 = query.fetch_one(&mut observer.0).await.unwrap();
            let gone = work.get(&format!("/job/{old}")).await.status == 404;
            if gone && found == 1 {
                return;
            }
            sleep(PAUSE).await;
        }
    };
    timeout(WAIT_MAX, kept).await.expect("maintenance runs");
    work.pop("later").await;
}

/// Two servers, the first of which is the leader; and the leader's name.
async fn pair_led_by_first() -> Option<(Pair, Observer, String)> {
    let database = postgres::shared_database()?;
    let one = Server::at_url(&database, &[]);
    let mut observer = Observer::at(&database).await;
    let first = observer
        .wait_for_leader(WAIT_MAX, |name| !name.is_empty())
        .await;
    let other = Server::at_url(&database, &[]);
    let pair = Pair {
        database,
        one,
        other,
    };
    assert_maintained(&pair.other, &mut observer, 0).await;
    assert_eq!(observer.wait_for_renewal().await, first);
    Some((pair, observer, first))
}

#[tokio::test]
async fn another_server_leads_after_the_leader_is_killed() {
    let Some((mut pair, mut observer, first)) = pair_led_by_first().await else {
        return;
    };
    pair.one.kill();
    let second = observer
        .wait_for_leader(TAKEN_OVER, |name| name != first)
        .await;
    assert_maintained(&pair.other, &mut observer, 1).await;
    // A server that joins accepts the existing leader.
    let third = Server::at_url(&pair.database, &[]);
    for _ in 0..3 {
        assert_eq!(observer.wait_for_renewal().await, second);
    }
    assert_consistent(&third).await;
    assert_consistent(&pair.other).await;
}

#[tokio::test]
async fn another_server_leads_while_the_leader_is_frozen_and_afterwards() {
    let Some((pair, mut observer, first)) = pair_led_by_first().await else {
        return;
    };
    pair.one.freeze();
    let second = observer
        .wait_for_leader(TAKEN_OVER, |name| name != first)
        .await;
    assert_maintained(&pair.other, &mut observer, 1).await;
    pair.one.thaw();
    // The first server continues, and has detected that it is no longer the leader.
    assert_maintained(&pair.one, &mut observer, 2).await;
    for _ in 0..5 {
        assert_eq!(observer.wait_for_renewal().await, second);
    }
    pair.assert_both_consistent().await;
}
