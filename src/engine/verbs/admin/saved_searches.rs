//! Saved searches, shared by all users.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::unit_of_work::Needs;
use crate::store::Statement;

/// Saved searches that are kept; saving more deletes the oldest.
pub const SEARCHES_MAX: i64 = 200;

/// A saved search. `who` saved it last, at the time `at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedSearch {
    pub name: String,
    pub text: String,
    pub who: String,
    pub at: Time,
}

impl Engine {
    /// All saved searches, by name.
    pub async fn saved_searches(&self) -> Result<Vec<SavedSearch>> {
        let rows = self.readers().rows(Statement::new(ALL, [])).await?;
        let saved = |row: &crate::store::Row| {
            Ok(SavedSearch {
                name: row.text(0)?,
                text: row.text(1)?,
                who: row.text(2)?,
                at: Time(row.int(3)?),
            })
        };
        rows.iter().map(saved).collect()
    }

    /// Saves a search, replacing one of the same name.
    pub async fn save_search(&self, name: &str, text: &str, who: &str) -> Result<()> {
        let words = [name, text, who].map(str::to_owned);
        self.write(Needs::default(), None, 1, move |work| {
            let [name, text, who] = words.clone();
            work.audit_search(&name, Some(&text));
            let args = [name.into(), text.into(), who.into(), work.now.0.into()];
            work.add_statements([
                Statement::new(SAVE, args),
                Statement::new(DROP_SURPLUS, [SEARCHES_MAX.into()]),
            ]);
            Ok(())
        })
        .await
    }

    /// Deletes a saved search, if it exists.
    pub async fn delete_search(&self, name: &str) -> Result<()> {
        let saved = self.saved_searches().await?;
        if !saved.iter().any(|saved| saved.name == name) {
            return Ok(());
        }
        let name = name.to_owned();
        self.write(Needs::default(), None, 1, move |work| {
            work.audit_search(&name, None);
            work.add_statements([Statement::new(FORGET, [name.as_str().into()])]);
            Ok(())
        })
        .await
    }
}

const ALL: &str = "SELECT name, text, who, saved_at FROM searches ORDER BY name";

const SAVE: &str = "
INSERT INTO searches (name, text, who, saved_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE SET text = excluded.text, who = excluded.who, saved_at = excluded.saved_at";

const DROP_SURPLUS: &str = "
DELETE FROM searches WHERE saved_at < (SELECT saved_at FROM searches ORDER BY saved_at DESC LIMIT 1 OFFSET $1 - 1)";

const FORGET: &str = "DELETE FROM searches WHERE name = $1";
