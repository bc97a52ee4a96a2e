//! Several servers on one PostgreSQL database act as one queue server.

mod claims;
mod frozen;
mod leader;
mod locks;
mod network;
mod outage;
mod together;
mod waking;

use serde_json::json;

use crate::support::{Server, postgres};

/// Two servers on a new database.
struct Pair {
    database: String,
    one: Server,
    other: Server,
}

impl Pair {
    /// Starts two servers with these options; `None` if the tests run on SQLite.
    fn start(options: &[&str]) -> Option<Pair> {
        let database = postgres::shared_database()?;
        Some(Pair::on(database, options))
    }

    fn on(database: String, options: &[&str]) -> Pair {
        Pair {
            one: Server::at_url(&database, options),
            other: Server::at_url(&database, options),
            database,
        }
    }

    /// Each of the two servers, with the other one.
    fn both(&self) -> [(&Server, &Server); 2] {
        [(&self.one, &self.other), (&self.other, &self.one)]
    }

    /// Runs the consistency check on both servers.
    async fn is_sound(&self) {
        for (server, _) in self.both() {
            assert_consistent(server).await;
        }
    }
}

/// Runs the consistency check.
async fn assert_consistent(server: &Server) {
    let found = server.client().get("/check").await.ok();
    assert_eq!(found, json!({"problems": []}));
}
