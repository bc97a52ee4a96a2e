//! Reads the actions that charts mark, from the audit log.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::store::{Statement, StoreError};

/// Entries of the audit log among which the actions are looked for: the newest of the period.
const ENTRIES_READ_MAX: i64 = 20_000;

/// An action of the audit log, without who took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartAction {
    pub at: Time,
    pub action: String,
    /// What it applied to, as text, and the link to its page.
    pub target: String,
    pub link: String,
}

impl Engine {
    /// The actions with these names that changed something from one time (inclusive) to another (exclusive): the newest
    /// `limit`, newest first.
    pub async fn chart_actions(
        &self,
        actions: &[&str],
        (from, until): (Time, Time),
        limit: i64,
    ) -> Result<Vec<ChartAction>> {
        let names: Vec<(&str,)> = actions.iter().map(|name| (*name,)).collect();
        let statement = Statement::of_rows(CHART_ACTIONS, &names)
            .with(from.0)
            .with(until.0);
        let statement = statement.with(ENTRIES_READ_MAX).with(limit);
        let rows = self.readers().rows(statement).await?;
        let action = |row: &crate::store::Row| {
            Ok(ChartAction {
                at: Time(row.int(0)?),
                action: row.text(1)?,
                target: row.text(2)?,
                link: row.text(3)?,
            })
        };
        Ok(rows.iter().map(action).collect::<Result<_, StoreError>>()?)
    }
}

// Only the entries that are returned are read completely.
const CHART_ACTIONS: &str = "
SELECT a.at, a.action, a.target, a.link FROM (
    SELECT id, action FROM audit WHERE at >= $2 AND at < $3 ORDER BY at DESC, id DESC LIMIT $4 + 0) AS r
CROSS JOIN audit AS a
WHERE r.action IN (SELECT text(0) FROM rows($1)) AND a.id = r.id AND a.items > 0
ORDER BY a.at DESC, a.id DESC LIMIT $5 + 0";
