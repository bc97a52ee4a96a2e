//! The audit: what people did in the dashboard, one entry each. A handle of the engine that carries an actor
//! ([`Engine::acting`]) has groups of its own, and each notes what it changes with the change itself. How it ended is
//! added afterwards ([`Engine::conclude`]), also where nothing was changed.
//!
//! Nothing of a payload and no secret is noted, and without an actor nothing is done.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::unit_of_work::Needs;
use crate::store::{Row, Statement, StoreError};

/// The longest text of an entry in bytes; what is longer is cut.
pub const AUDIT_TEXT_BYTES_MAX: usize = 4_096;

/// How many entries are kept, about: the newest.
pub const AUDIT_ENTRIES_MAX: i64 = 100_000;

/// How many of them one name has, about: no name pushes out what others did.
pub const AUDIT_ENTRIES_OF_NAME_MAX: i64 = 10_000;

/// For how many days an entry is kept.
pub const AUDIT_DAYS_MAX: i64 = 90;

/// One in so many conclusions drops what is too much.
const DROP_EVERY: u64 = 500;

/// Somebody who does something, and what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actor {
    /// Of the entry; the same for all that belongs to one action.
    pub id: String,
    pub who: String,
    pub role: String,
    pub action: String,
    /// To what, in words, and where that is shown.
    pub target: String,
    pub link: String,
    pub request_id: String,
    /// The address from which it was asked for.
    pub source: String,
}

/// An entry, as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Time,
    pub actor: Actor,
    /// JSON arrays of the same length: what was changed, as it was and as it became.
    pub before: String,
    pub after: String,
    /// How many things were changed; the first of them are in `before` and `after`.
    pub items: i64,
    pub done: bool,
    pub said: String,
}

/// Which entries are wanted; what is empty or `None` leaves out none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub who: String,
    pub action: String,
    /// Is part of the target, in capitals or not.
    pub target: String,
    /// From this moment, and until before that one.
    pub from: Option<Time>,
    pub until: Option<Time>,
}

impl Actor {
    /// The statement that notes a change, adding to what the action has changed before.
    pub(in crate::engine) fn note(
        &self,
        at: Time,
        before: String,
        after: String,
        items: i64,
    ) -> Statement {
        self.entry(ADD, at, before, after)
            .with(items)
            .with(1)
            .with("")
    }

    fn entry(&self, sql: &'static str, at: Time, before: String, after: String) -> Statement {
        let Actor {
            id,
            who,
            role,
            action,
            target,
            link,
            request_id,
            source,
        } = self;
        let texts = [who, role, action, target, link, request_id, source].map(|text| cut(text));
        let [who, role, action, target, link, request_id, source] = texts;
        Statement::new(sql, [id.as_str().into(), at.0.into()])
            .with(who)
            .with(role)
            .with(action)
            .with(target)
            .with(link)
            .with(request_id)
            .with(source)
            .with(before)
            .with(after)
    }
}

/// A text as it may be kept: not too long, and without NUL, which Postgres cannot hold.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(AUDIT_TEXT_BYTES_MAX);
    text.get(..end).unwrap_or_default().replace('\0', "")
}

impl Engine {
    /// The same engine, in the hands of somebody: what is changed through it is noted in the audit.
    pub fn acting_as(&self, actor: Arc<Actor>) -> Engine {
        Engine(Arc::clone(&self.0), Some(actor))
    }

    /// Notes how an action ended, and in what words that was told.
    pub async fn record_outcome(&self, actor: &Actor, done: bool, said: &str) -> Result<()> {
        let now = self.now(None);
        let none = || "[]".to_owned();
        let mut statements = vec![
            actor
                .entry(CONCLUDE, now, none(), none())
                .with(0)
                .with(i64::from(done))
                .with(cut(said)),
        ];
        if self.is_every(DROP_EVERY) {
            statements.extend(drop_old(now));
            let quota = [
                actor.who.as_str().into(),
                AUDIT_ENTRIES_OF_NAME_MAX.into(),
                actor.role.as_str().into(),
            ];
            statements.push(Statement::new(DROP_SURPLUS_OF_NAME, quota));
        }
        self.write(Needs::default(), None, 1, move |work| {
            work.add_statements(statements.iter().cloned());
            Ok(())
        })
        .await
    }

    /// Up to `limit` entries, newest first: those before the one with this moment and id, or the first.
    pub async fn audit_entries(
        &self,
        filter: &AuditFilter,
        before: Option<(Time, String)>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        let (at, id) = before.unwrap_or((Time(i64::MAX), String::new()));
        let statement = Statement::new(
            READ,
            [
                filter.from.map_or(i64::MIN, |from| from.0).into(),
                filter.until.map_or(i64::MAX, |until| until.0).into(),
                at.0.into(),
                id.into(),
                filter.who.as_str().into(),
                filter.action.as_str().into(),
                pattern(&filter.target).into(),
                (limit as i64).into(),
            ],
        );
        let rows = self.readers().rows(statement).await?;
        Ok(rows.iter().map(entry).collect::<Result<_, _>>()?)
    }

    /// Who is in the audit, and which actions are; to choose from.
    pub async fn audit_filters(&self) -> Result<(Vec<String>, Vec<String>)> {
        let statements = vec![Statement::new(WHO, []), Statement::new(ACTIONS, [])];
        let mut lists = Vec::new();
        for answer in self.readers().read(statements).await? {
            let texts = answer.rows.iter().map(|row| row.text(0));
            lists.push(texts.collect::<Result<Vec<_>, _>>()?);
        }
        let actions = lists.pop().unwrap_or_default();
        Ok((lists.pop().unwrap_or_default(), actions))
    }
}

/// Drops what is too old, and the oldest where there is too much.
pub fn drop_old(now: Time) -> [Statement; 2] {
    let oldest = now.0 - AUDIT_DAYS_MAX * 86_400_000_000;
    [
        Statement::new(DROP_OLD, [oldest.into()]),
        Statement::new(DROP_SURPLUS, [AUDIT_ENTRIES_MAX.into()]),
    ]
}

/// EventKind `LIKE` matches a text with that has this one in it.
fn pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.to_lowercase().chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern + "%"
}

fn entry(row: &Row) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        at: Time(row.int(1)?),
        actor: Actor {
            id: row.text(0)?,
            who: row.text(2)?,
            role: row.text(3)?,
            action: row.text(4)?,
            target: row.text(5)?,
            link: row.text(6)?,
            request_id: row.text(7)?,
            source: row.text(8)?,
        },
        before: row.text(9)?,
        after: row.text(10)?,
        items: row.int(11)?,
        done: row.int(12)? != 0,
        said: row.text(13)?,
    })
}

macro_rules! insert {
    ($and:literal) => {
        concat!(
            "
INSERT INTO audit (id, at, who, role, action, target, link, request_id, source, before, after, items, done, said)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (id) DO UPDATE SET ",
            $and
        )
    };
}

// What one action changes may take several groups: the first things are shown, and all are counted.
const ADD: &str = insert!("items = audit.items + excluded.items");

const CONCLUDE: &str = insert!("done = excluded.done, said = excluded.said");

const READ: &str = "
SELECT id, at, who, role, action, target, link, request_id, source, before, after, items, done, said FROM audit
WHERE at >= $1 AND at < $2 AND at <= $3 AND (at < $3 OR id < $4)
    AND ($5 = '' OR who = $5) AND ($6 = '' OR action = $6) AND lower(target) LIKE $7 ESCAPE '\\'
ORDER BY at DESC, id DESC LIMIT $8 + 0";

const WHO: &str = "SELECT who FROM audit GROUP BY who ORDER BY max(at) DESC, who LIMIT 200";

const ACTIONS: &str = "SELECT action FROM audit GROUP BY action ORDER BY action LIMIT 200";

const DROP_OLD: &str = "DELETE FROM audit WHERE at <= $1";

const DROP_SURPLUS: &str = "
DELETE FROM audit WHERE at <= (SELECT at FROM audit ORDER BY at DESC LIMIT 1 OFFSET $1 + 0)";

// By role, because a failed sign-in, which has none, is noted under the name that it tried.
const DROP_SURPLUS_OF_NAME: &str = "
DELETE FROM audit WHERE who = $1 AND role = $3
    AND at <= (SELECT at FROM audit WHERE who = $1 AND role = $3 ORDER BY at DESC LIMIT 1 OFFSET $2 + 0)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_as_it_is_written() {
        assert_eq!(pattern(""), "%%");
        assert_eq!(pattern("50%_\\A"), "%50\\%\\_\\\\a%");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        for (bytes, expected) in [(4_095, 4_095), (4_096, 4_096), (4_097, 4_096)] {
            assert_eq!(cut(&"a".repeat(bytes)).len(), expected, "{bytes} bytes");
        }
        let long = cut(&"ä".repeat(4_000));
        assert_eq!(long.len(), AUDIT_TEXT_BYTES_MAX);
        assert_eq!(cut("a\0b"), "ab");
    }
}
