//! Scripts that clients of qless have loaded over the Redis protocol: SHA-1 and dialect.

use std::collections::HashSet;

use crate::engine::Engine;
use crate::engine::error::Result;
use crate::engine::unit_of_work::Needs;
use crate::store::Statement;

/// Scripts that are kept; loading more forgets the oldest.
pub const SCRIPTS_MAX: usize = 100;

impl Engine {
    /// The dialect of a script; `None` if it was not loaded.
    pub async fn script(&self, sha: &str) -> Result<Option<String>> {
        let rows = self
            .readers()
            .rows(Statement::new(FIND, [sha.into()]))
            .await?;
        rows.first().map(|row| Ok(row.text(0)?)).transpose()
    }

    /// The SHA-1 of all scripts that were loaded.
    pub async fn scripts(&self) -> Result<HashSet<String>> {
        let list = Statement::new(LIST, [(SCRIPTS_MAX as i64).into()]);
        let rows = self.readers().rows(list).await?;
        rows.iter().map(|row| Ok(row.text(0)?)).collect()
    }

    /// Remembers the dialect of a script.
    pub async fn save_script(&self, sha: &str, dialect: &str) -> Result<()> {
        let words = [sha, dialect].map(str::to_owned);
        self.write(Needs::default(), None, 1, move |work| {
            let [sha, dialect] = words.clone();
            let args = [sha.into(), dialect.into(), work.now.0.into()];
            work.add_statements([
                Statement::new(SAVE, args),
                Statement::new(DROP_SURPLUS, [(SCRIPTS_MAX as i64).into()]),
            ]);
            Ok(())
        })
        .await
    }

    /// Forgets all scripts.
    pub async fn delete_scripts(&self) -> Result<()> {
        self.write(Needs::default(), None, 1, move |work| {
            work.add_statements([Statement::new(FORGET, [])]);
            Ok(())
        })
        .await
    }
}

const FIND: &str = "SELECT dialect FROM scripts WHERE sha = $1";

const LIST: &str = "SELECT sha FROM scripts ORDER BY loaded_at DESC LIMIT $1 + 0";

const SAVE: &str = "
INSERT INTO scripts (sha, dialect, loaded_at) VALUES ($1, $2, $3)
ON CONFLICT (sha) DO UPDATE SET dialect = excluded.dialect, loaded_at = excluded.loaded_at";

const DROP_SURPLUS: &str = "
DELETE FROM scripts WHERE loaded_at < (SELECT loaded_at FROM scripts ORDER BY loaded_at DESC LIMIT 1 OFFSET $1 - 1)";

const FORGET: &str = "DELETE FROM scripts";
