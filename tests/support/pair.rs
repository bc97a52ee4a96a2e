//! Two servers on one PostgreSQL database, and the consistency check.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::history::History;
use super::load::settle;
use super::{Server, postgres};

/// Two servers on a new database.
pub struct Pair {
    pub database: String,
    pub one: Server,
    pub other: Server,
}

impl Pair {
    /// Starts two servers with these options; `None` if the tests run on SQLite.
    pub fn start(options: &[&str]) -> Option<Pair> {
        let database = postgres::shared_database()?;
        Some(Pair::on(database, options))
    }

    pub fn on(database: String, options: &[&str]) -> Pair {
        Pair {
            one: Server::at_url(&database, options),
            other: Server::at_url(&database, options),
            database,
        }
    }

    /// Each of the two servers, with the other one.
    pub fn both(&self) -> [(&Server, &Server); 2] {
        [(&self.one, &self.other), (&self.other, &self.one)]
    }

    /// Checks and stops both servers, and settles the history ([`settle`]).
    pub async fn settle(self, history: &Arc<History>, lease: Duration) {
        self.assert_both_consistent().await;
        self.one.stop().await;
        self.other.stop().await;
        settle(&self.database, history, lease).await;
    }

    /// Runs the consistency check on both servers.
    pub async fn assert_both_consistent(&self) {
        for (server, _) in self.both() {
            assert_consistent(server).await;
        }
    }
}

/// Runs the consistency check.
pub async fn assert_consistent(server: &Server) {
    let found = server.client().get("/check").await.ok();
    assert_eq!(found, json!({"problems": []}));
}
