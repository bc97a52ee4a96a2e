//! A connection of the pool while a read uses it.

use sqlx::Postgres;
use sqlx::pool::PoolConnection;

/// A connection of the pool. Dropping it closes the connection, because it may be in the middle of a transaction.
pub struct ReadConnection(pub Option<PoolConnection<Postgres>>);

impl Drop for ReadConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}
