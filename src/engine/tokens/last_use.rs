//! The last use of each token: kept in memory, and stored at most once per hour and token.

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::unit_of_work::Needs;
use crate::store::Statement;

/// Last uses stored per transaction.
const BATCH: usize = 500;

impl Engine {
    /// Stores a bounded batch of last uses. Each server stores its own; the latest value is kept.
    pub async fn save_token_uses(&self) -> Result<()> {
        let uses = self.known_tokens().unstored(BATCH);
        if uses.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> = uses
            .iter()
            .map(|it| (it.namespace.clone(), it.hash.hex(), it.at, it.created_at.0))
            .collect();
        self.write(Needs::default(), None, 1, move |work| {
            work.add_statements([Statement::of_rows(SAVE, &rows)]);
            Ok(())
        })
        .await?;
        self.known_tokens().saved(&uses);
        Ok(())
    }

    /// Reads the last uses that other servers have stored.
    pub(in crate::engine) async fn read_token_uses(&self) -> Result<()> {
        let stored = self.readers().rows(Statement::new(STORED, [])).await?;
        Ok(self.known_tokens().reload_uses(&stored)?)
    }

    /// Like [`Engine::read_token_uses`], for the tokens of a namespace.
    pub(in crate::engine) async fn read_token_uses_of(&self, namespace: &str) -> Result<()> {
        let statement = Statement::new(STORED_OF, [namespace.into()]);
        let stored = self.readers().rows(statement).await?;
        Ok(self.known_tokens().reload_uses(&stored)?)
    }
}

pub const STORED: &str = "SELECT namespace, hash, used_at FROM tokens WHERE used_at > 0";

const STORED_OF: &str =
    "SELECT namespace, hash, used_at FROM tokens WHERE namespace = $1 AND used_at > 0";

// Skips tokens that were revoked meanwhile, and later ones with the same secret.
const SAVE: &str = "
UPDATE tokens SET used_at = k.int(2) FROM rows($1) AS k
WHERE tokens.namespace = k.text(0) AND tokens.hash = k.text(1) AND tokens.created_at = k.int(3)
    AND tokens.used_at < k.int(2)";
