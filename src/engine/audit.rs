//! The audit log: one entry per action in the dashboard, or with a command that uses it. A handle of the engine that
//! carries an actor ([`Engine::acting_as`]) has transactions of its own, and each records what it changes in the same
//! commit. The outcome is added afterwards ([`Engine::record_outcome`]), even if nothing was changed.
//!
//! Entries contain no payloads and no secrets. Each outcome is also a line of the log ([`AUDIT_TARGET`]), because old
//! entries are deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::unit_of_work::Needs;
use crate::store::{Row, Statement, StoreError};

/// The longest text of an entry in bytes; longer texts are cut.
pub const AUDIT_TEXT_BYTES_MAX: usize = 4_096;

/// Entries of changes that are kept, approximately: the newest, and all of the last [`AUDIT_DAYS_MIN`] days. As many
/// entries without changes are kept.
pub const AUDIT_ENTRIES_MAX: i64 = 100_000;

/// Entries of changes that are kept per user and role, approximately, so that one user cannot push out the others'
/// entries. As many entries without changes are kept, so that these cannot push out changes.
pub const AUDIT_ENTRIES_OF_NAME_MAX: i64 = 10_000;

/// The log target of the audit log.
pub const AUDIT_TARGET: &str = "audit";

/// Days that an entry is kept.
pub const AUDIT_DAYS_MAX: i64 = 90;

/// Days for which an entry of a change is kept, however many entries follow, so that users cannot displace the traces
/// of what they did. The dashboard limits how many entries a user can add in this time. Entries of
/// [`AUDIT_ANONYMOUS`] are not kept for these days, because they show no user.
pub const AUDIT_DAYS_MIN: i64 = 30;

/// The name in entries of actions without credentials.
pub const AUDIT_ANONYMOUS: &str = "anybody";

const DAY_US: i64 = 86_400_000_000;

/// Old entries are deleted once per this many recorded outcomes.
const DELETE_EVERY: u64 = 500;

/// Old entries deleted per limit and transaction. Each can have 24 KB.
pub const DELETED_MAX: i64 = 1_000;

/// Time limit for the statements that find old entries.
const FIND_TIME_MAX: Duration = Duration::from_secs(4);

/// Who takes an action, and which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actor {
    /// The ID of the entry; all changes of one action share it.
    pub id: String,
    pub who: String,
    pub role: String,
    pub action: String,
    /// What the action applies to, as text, and the link to its page.
    pub target: String,
    pub link: String,
    pub request_id: String,
    /// The client's address.
    pub source: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Time,
    pub actor: Actor,
    /// JSON arrays of the same length: the changed items before and after the change.
    pub before: String,
    pub after: String,
    /// The number of changed items. `before` and `after` have the first of them.
    pub items: i64,
    pub done: bool,
    pub message: String,
}

impl AuditEntry {
    /// The outcome in exports and in the log.
    pub fn outcome(done: bool) -> &'static str {
        if done { "done" } else { "refused" }
    }

    /// The bytes of its texts.
    pub fn text_bytes(&self) -> usize {
        let actor = &self.actor;
        let texts = [
            &actor.id,
            &actor.who,
            &actor.role,
            &actor.action,
            &actor.target,
            &actor.link,
            &actor.request_id,
            &actor.source,
            &self.before,
            &self.after,
            &self.message,
        ];
        texts.iter().map(|text| text.len()).sum()
    }
}

/// Selects entries. Empty and `None` fields match all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub who: String,
    /// The names of an action: the current and the former one, or twice the same.
    pub actions: [String; 2],
    /// A part of the target, case-insensitive.
    pub target: String,
    /// From this time (inclusive) to that one (exclusive).
    pub from: Option<Time>,
    pub until: Option<Time>,
}

impl Actor {
    /// The statement that records a change, in addition to earlier changes of the same action.
    pub(in crate::engine) fn record(
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
        let texts =
            [who, role, action, target, link, request_id, source].map(|text| truncate(text));
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

/// Cuts a text to [`AUDIT_TEXT_BYTES_MAX`] and removes NUL, which Postgres cannot store.
fn truncate(text: &str) -> String {
    let end = text.floor_char_boundary(AUDIT_TEXT_BYTES_MAX);
    text.get(..end).unwrap_or_default().replace('\0', "")
}

impl Engine {
    /// The same engine, acting for `actor`: changes made through it are recorded in the audit log.
    pub fn acting_as(&self, actor: Arc<Actor>) -> Engine {
        Engine(Arc::clone(&self.0), Some(actor), self.2)
    }

    /// Records whether an action succeeded, and the message that was shown.
    pub async fn record_outcome(&self, actor: &Actor, done: bool, message: &str) -> Result<()> {
        let none = || "[]".to_owned();
        self.write_outcome(actor, (none(), none(), 0), done, message)
            .await
    }

    /// Records that a session of the actor has begun, or ended.
    pub async fn record_session(&self, actor: &Actor, begun: bool, message: &str) -> Result<()> {
        let session = [BTreeMap::from([("session", actor.who.as_str())])];
        let session = serde_json::to_string(&session).unwrap_or_default();
        let none = "[null]".to_owned();
        let (before, after) = if begun {
            (none, session)
        } else {
            (session, none)
        };
        self.write_outcome(actor, (before, after, 1), true, message)
            .await
    }

    /// Writes the outcome of an action, and `before`, `after` and `items` unless the entry exists.
    async fn write_outcome(
        &self,
        actor: &Actor,
        (before, after, items): (String, String, i64),
        done: bool,
        message: &str,
    ) -> Result<()> {
        let now = self.now(None);
        log_outcome(actor, done, message);
        let statement = actor
            .entry(SET_OUTCOME, now, before, after)
            .with(items)
            .with(i64::from(done))
            .with(truncate(message));
        self.write(Needs::default(), None, 1, move |work| {
            work.add_statements([statement.clone()]);
            Ok(())
        })
        .await?;
        let recorded = self.0.outcomes_recorded.fetch_add(1, Ordering::Relaxed) + 1;
        if recorded.is_multiple_of(DELETE_EVERY)
            && let Err(error) = self.drop_surplus_entries(actor, now).await
        {
            tracing::warn!(%error, "failed to delete old audit entries");
        }
        Ok(())
    }

    /// Deletes up to [`DELETED_MAX`] of the oldest entries above each quota: the common ones, and those of the actor's
    /// name and role. The entries are found without the writer, because the search reads all newer ones.
    pub(in crate::engine) async fn drop_surplus_entries(
        &self,
        actor: &Actor,
        now: Time,
    ) -> Result<()> {
        let answers = self
            .readers()
            .read_within(FIND_TIME_MAX, find_surplus(actor, now))
            .await?;
        let rows = answers.iter().flat_map(|answer| &answer.rows);
        let found: Vec<(String, i64)> = rows
            .map(|row| Ok((row.text(0)?, row.int(1)?)))
            .collect::<Result<_, StoreError>>()?;
        if found.is_empty() {
            return Ok(());
        }
        self.write(Needs::default(), None, 1, move |work| {
            work.add_statements([Statement::of_rows(DROP_FOUND, &found)]);
            Ok(())
        })
        .await
    }

    /// Up to `limit` entries, newest first; with `before`, those that precede the entry with this time and ID.
    pub async fn audit_entries(
        &self,
        filter: &AuditFilter,
        before: Option<(Time, String)>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        let (at, id) = before.unwrap_or((Time(i64::MAX), String::new()));
        let [action, former] = &filter.actions;
        let statement = Statement::new(
            READ,
            [
                filter.from.map_or(i64::MIN, |from| from.0).into(),
                filter.until.map_or(i64::MAX, |until| until.0).into(),
                at.0.into(),
                id.into(),
                filter.who.as_str().into(),
                action.as_str().into(),
                former.as_str().into(),
                pattern(&filter.target).into(),
                (limit as i64).into(),
            ],
        );
        let rows = self.readers().rows(statement).await?;
        Ok(rows.iter().map(entry).collect::<Result<_, _>>()?)
    }

    /// The users and the actions that occur in the audit log, as choices for a filter.
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

/// One line of the log for each outcome. As strings, because the log escapes only those. The fields have the names of
/// the exports, except `object`: `target` and `message` are fields of every line.
fn log_outcome(actor: &Actor, done: bool, message: &str) {
    tracing::info!(
        target: AUDIT_TARGET,
        who = actor.who.as_str(),
        role = actor.role.as_str(),
        action = actor.action.as_str(),
        object = truncate(&actor.target).as_str(),
        from = actor.source.as_str(),
        outcome = AuditEntry::outcome(done),
        result = truncate(message).as_str(),
        "a dashboard action"
    );
}

/// The statement that deletes up to [`DELETED_MAX`] entries older than [`AUDIT_DAYS_MAX`].
pub fn delete_old(now: Time) -> Statement {
    let oldest = now.0 - AUDIT_DAYS_MAX * DAY_US;
    Statement::new(DROP_OLD, [oldest.into(), DELETED_MAX.into()])
}

/// Statements that find the oldest entries above the quotas: [`AUDIT_ENTRIES_OF_NAME_MAX`] of the actor's name and
/// role, and [`AUDIT_ENTRIES_MAX`] of all with a role, each once for changes and once for other entries; and
/// [`AUDIT_ENTRIES_OF_NAME_MAX`] without a role.
fn find_surplus(actor: &Actor, now: Time) -> Vec<Statement> {
    let find = |sql, most: i64| Statement::new(sql, [most.into(), DELETED_MAX.into()]);
    let of_name = |sql| {
        find(sql, AUDIT_ENTRIES_OF_NAME_MAX)
            .with(actor.who.as_str())
            .with(actor.role.as_str())
    };
    let since = match actor.who.as_str() {
        AUDIT_ANONYMOUS => i64::MAX,
        _ => kept_since(now),
    };
    vec![
        of_name(FIND_CHANGES_OF_NAME).with(since),
        of_name(FIND_OTHERS_OF_NAME),
        find(FIND_CHANGES, AUDIT_ENTRIES_MAX)
            .with(kept_since(now))
            .with(AUDIT_ANONYMOUS),
        find(FIND_OTHERS, AUDIT_ENTRIES_MAX),
        find(FIND_WITHOUT_ROLE, AUDIT_ENTRIES_OF_NAME_MAX),
    ]
}

/// Entries of changes after this time are kept; see [`AUDIT_DAYS_MIN`].
fn kept_since(now: Time) -> i64 {
    now.0 - AUDIT_DAYS_MIN * DAY_US
}

/// A `LIKE` pattern for texts that contain this one.
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
        message: row.text(13)?,
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

// One action may take several transactions: the first changes are kept, and all are counted.
const ADD: &str = insert!("items = audit.items + excluded.items");

const SET_OUTCOME: &str = insert!("done = excluded.done, said = excluded.said");

const READ: &str = "
SELECT id, at, who, role, action, target, link, request_id, source, before, after, items, done, said FROM audit
WHERE at >= $1 AND at < $2 AND at <= $3 AND (at < $3 OR id < $4)
    AND ($5 = '' OR who = $5) AND ($6 = '' OR action IN ($6, $7)) AND lower(target) LIKE $8 ESCAPE '\\'
ORDER BY at DESC, id DESC LIMIT $9 + 0";

const WHO: &str = "SELECT who FROM audit GROUP BY who ORDER BY max(at) DESC, who LIMIT 200";

const ACTIONS: &str = "SELECT action FROM audit GROUP BY action ORDER BY action LIMIT 200";

const DROP_OLD: &str = "
DELETE FROM audit WHERE at <= $1 AND id IN (SELECT id FROM audit WHERE at <= $1 ORDER BY at LIMIT $2 + 0)";

// An action that runs can still add to its entry.
const DROP_FOUND: &str =
    "DELETE FROM audit WHERE (id, items) IN (SELECT text(0), int(1) FROM rows($1))";

/// Finds the oldest `$2` of these entries that are not among the newest `$1`, if they meet the condition `$and`.
macro_rules! find_surplus {
    ($which:literal, $and:literal) => {
        concat!(
            "SELECT id, items FROM audit WHERE ",
            $which,
            $and,
            " AND at <= (SELECT at FROM audit WHERE ",
            $which,
            " ORDER BY at DESC LIMIT 1 OFFSET $1 + 0) ORDER BY at LIMIT $2 + 0"
        )
    };
}

// Entries that changed nothing have quotas of their own: their number is not limited by what there is to change.
const FIND_CHANGES: &str = find_surplus!("role <> '' AND items > 0", " AND (at <= $3 OR who = $4)");

const FIND_OTHERS: &str = find_surplus!("role <> '' AND items = 0", "");

// A failed sign-in has no role and is recorded under the name that was tried. Anyone who can reach the server can cause
// such entries, so they have a quota of their own.
const FIND_WITHOUT_ROLE: &str = find_surplus!("role = ''", "");

const FIND_CHANGES_OF_NAME: &str =
    find_surplus!("who = $3 AND role = $4 AND items > 0", " AND at <= $5");

const FIND_OTHERS_OF_NAME: &str = find_surplus!("who = $3 AND role = $4 AND items = 0", "");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_as_it_is_written() {
        assert_eq!(pattern(""), "%%");
        assert_eq!(pattern("50%_\\A"), "%50\\%\\_\\\\a%");
    }

    #[test]
    fn a_text_is_truncated_between_characters() {
        for (bytes, expected) in [(4_095, 4_095), (4_096, 4_096), (4_097, 4_096)] {
            assert_eq!(
                truncate(&"a".repeat(bytes)).len(),
                expected,
                "{bytes} bytes"
            );
        }
        let long = truncate(&"ä".repeat(4_000));
        assert_eq!(long.len(), AUDIT_TEXT_BYTES_MAX);
        assert_eq!(truncate("a\0b"), "ab");
    }
}
