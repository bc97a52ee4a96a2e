//! Notifications between the servers on a database.

use sqlx::postgres::{PgListener, PgPool};

/// A subscription to the notifications of all servers.
pub struct Listener(PgListener);

impl Listener {
    pub(super) async fn connect(pool: &PgPool) -> Result<Listener, sqlx::Error> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(Listener(listener))
    }

    /// The next notification; `None` if the connection was lost and notifications may have been missed.
    pub async fn next(&mut self) -> Option<String> {
        let received = self.0.try_recv().await.ok().flatten();
        received.map(|notification| notification.payload().to_owned())
    }
}

/// The channel of the notifications between servers.
const CHANNEL: &str = "switchyard";

pub const NOTIFY: &str = "SELECT pg_notify('switchyard', $1)";
