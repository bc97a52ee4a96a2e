//! Several servers on one PostgreSQL: they are one queue, and do each other no harm.

mod claims;
mod frozen;
mod leader;
mod outage;
mod together;
mod waking;

use serde_json::json;

use crate::support::{Server, postgres};

/// Two servers on a database of their own.
struct Pair {
    database: String,
    one: Server,
    other: Server,
}

impl Pair {
    /// Two servers with these options, if there is a PostgreSQL for them.
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

    /// Each of the servers, with the other one.
    fn both(&self) -> [(&Server, &Server); 2] {
        [(&self.one, &self.other), (&self.other, &self.one)]
    }

    /// Everything that is kept twice agrees, whichever server is asked.
    async fn is_sound(&self) {
        for (server, _) in self.both() {
            sound(server).await;
        }
    }
}

/// Everything that is kept twice agrees.
async fn sound(server: &Server) {
    let found = server.anyone().get("/check").await.ok();
    assert_eq!(found, json!({"problems": []}));
}
