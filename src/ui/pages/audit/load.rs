//! Loads the audit log.

use std::collections::BTreeSet;

use leptos::prelude::*;
use serde_json::{Map, Value};

use crate::auth::Role;
use crate::engine::{
    AUDIT_DAYS_MAX, AUDIT_DAYS_MIN, AUDIT_ENTRIES_MAX, AuditEntry, AuditFilter, Engine, Result,
    Time,
};
use crate::ui::actions::{current_name, former_name, is_stored_name};
use crate::ui::context::read;
use crate::ui::dates::{DATETIME_LOCAL, parse_time};
use crate::ui::error::PageError;
use crate::ui::model::PAGE_ROWS;
use crate::ui::pages::audit::model::{
    AuditQuery, AuditRow, AuditView, ChangeKind, ChangedItem, FieldChange,
};
use crate::ui::urls::encoding::is_dashboard_page;

/// A page of matching entries, newest first.
#[server]
pub async fn audit(query: AuditQuery) -> Result<AuditView, PageError> {
    read(Role::Admin, async |context| {
        load_audit(&context.engine, &query).await
    })
    .await
}

/// The kinds of items. The field with the name of the kind contains the name of the item. `queue` is last, because
/// jobs, recurring jobs and operations can also have a field for their queue.
const KINDS: [&str; 13] = [
    "mute",
    "operation",
    "alert",
    "search",
    "session",
    "inconsistencies",
    "job",
    "recurring",
    "option",
    "token",
    "worker",
    "deleted",
    "queue",
];

/// A page of matching entries.
pub async fn load_audit(engine: &Engine, query: &AuditQuery) -> Result<AuditView> {
    let (users, stored) = engine.audit_filters().await?;
    let names = stored.iter().map(|name| current_name(name));
    let actions: BTreeSet<_> = names.filter(|name| is_stored_name(name)).collect();
    let mut view = AuditView {
        rows: Vec::new(),
        next: None,
        users,
        actions: actions.into_iter().map(str::to_owned).collect(),
        filter_error: None,
        entries_max: AUDIT_ENTRIES_MAX,
        days: (AUDIT_DAYS_MIN, AUDIT_DAYS_MAX),
    };
    let filter = match filter(query) {
        Ok(filter) => filter,
        Err(why) => {
            view.filter_error = Some(why);
            return Ok(view);
        }
    };
    let entries = engine
        .audit_entries(&filter, cursor(&query.after), PAGE_ROWS + 1)
        .await?;
    let shown = entries.iter().take(PAGE_ROWS);
    view.rows = shown.map(row).collect();
    let last = view.rows.last().filter(|_| entries.len() > PAGE_ROWS);
    view.next = last.map(|row| format!("{}-{}", row.at, row.id));
    Ok(view)
}

/// Maximum size of the texts of an export in bytes, without the last batch. JSON can need six bytes for one of them;
/// the export still fits into a response then.
const EXPORT_BYTES_MAX: usize = 8 << 20;

/// Entries of an export that are read at a time.
const EXPORT_BATCH: usize = 100;

/// Up to `limit` matching entries, newest first, and whether there are more. An invalid time matches nothing.
pub async fn load_export(
    engine: &Engine,
    query: &AuditQuery,
    limit: usize,
) -> Result<(Vec<AuditEntry>, bool)> {
    let Ok(filter) = filter(query) else {
        return Ok((Vec::new(), false));
    };
    let (mut entries, mut bytes): (Vec<AuditEntry>, usize) = (Vec::new(), 0);
    loop {
        let last = entries.last();
        let last = last.map(|entry| (entry.at, entry.actor.id.clone()));
        // One more than a batch shows whether there are more.
        let mut batch = engine
            .audit_entries(&filter, last, EXPORT_BATCH + 1)
            .await?;
        let more = batch.len() > EXPORT_BATCH;
        batch.truncate(EXPORT_BATCH);
        bytes += batch.iter().map(AuditEntry::text_bytes).sum::<usize>();
        entries.append(&mut batch);
        if entries.len() >= limit || bytes >= EXPORT_BYTES_MAX || !more {
            let is_cut = entries.len() > limit;
            entries.truncate(limit);
            return Ok((entries, more || is_cut));
        }
    }
}

fn filter(query: &AuditQuery) -> Result<AuditFilter, String> {
    let action = current_name(&query.action);
    Ok(AuditFilter {
        who: query.user.clone(),
        actions: [action, former_name(action)].map(str::to_owned),
        target: query.target.trim().to_owned(),
        from: time(&query.from)?,
        until: time(&query.until)?,
    })
}

/// Parses the value of a `datetime-local` field, or a date; UTC.
fn time(text: &str) -> Result<Option<Time>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let time = parse_time(text, &DATETIME_LOCAL);
    let time = time.ok_or_else(|| format!("“{text}” is not a valid time; use YYYY-MM-DDTHH:MM"))?;
    Ok(Some(time))
}

fn cursor(after: &str) -> Option<(Time, String)> {
    let (at, id) = after.split_once('-')?;
    Some((Time(at.parse().ok()?), id.to_owned()))
}

fn row(entry: &AuditEntry) -> AuditRow {
    let actor = entry.actor.clone();
    // Entries of earlier versions can have links to other addresses.
    let link = Some(actor.link).filter(|link| is_dashboard_page(link));
    AuditRow {
        id: actor.id,
        at: entry.at.0,
        user: actor.who,
        role: actor.role,
        action: current_name(&actor.action).to_owned(),
        target: actor.target,
        link: link.unwrap_or_default(),
        changes: changes(&entry.before, &entry.after),
        items: entry.items,
        done: entry.done,
        message: entry.message.clone(),
        request_id: actor.request_id,
        source: actor.source,
    }
}

type Facts = Option<Map<String, Value>>;

fn changes(before: &str, after: &str) -> Vec<ChangedItem> {
    let list = |text: &str| serde_json::from_str::<Vec<Facts>>(text).unwrap_or_default();
    let pairs = list(before).into_iter().zip(list(after));
    pairs
        .filter_map(|pair| changed_item(&pair.0, &pair.1))
        .collect()
}

fn changed_item(before: &Facts, after: &Facts) -> Option<ChangedItem> {
    let known = after.as_ref().or(before.as_ref())?;
    let kind = KINDS.into_iter().find(|kind| known.contains_key(*kind))?;
    let name = match kind {
        "deleted" => format!("jobs: {}", text_of(known.get(kind))),
        _ => format!("{kind} {}", text_of(known.get(kind))),
    };
    let change = match (before, after) {
        (None, Some(_)) if kind == "deleted" => ChangeKind::Gone,
        (None, _) => ChangeKind::New,
        (_, None) => ChangeKind::Gone,
        _ => ChangeKind::Stays,
    };
    let of = |facts: &Facts, name: &str| facts.as_ref().and_then(|facts| facts.get(name).cloned());
    let names = known.keys().filter(|name| *name != kind);
    let facts = names.map(|name| (name, of(before, name), of(after, name)));
    let facts = facts.filter(|(_, before, after)| before != after);
    Some(ChangedItem {
        name,
        kind: change,
        facts: facts
            .map(|(name, before, after)| FieldChange {
                name: name.clone(),
                before: text_of(before.as_ref()),
                after: text_of(after.as_ref()),
            })
            .collect(),
    })
}

fn text_of(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::Array(items)) if items.is_empty() => "none".to_owned(),
        Some(Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(|item| text_of(Some(item))).collect();
            items.join(", ")
        }
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Actor, engine_without_tasks};
    use crate::ui::pages::audit::model::ChangeKind;

    #[test]
    fn changed_fields_are_shown() {
        let before = r#"[{"job":"a","queue":"q","state":"failed","tags":[]},null,{"job":"c"}]"#;
        let after =
            r#"[{"job":"a","queue":"q","state":"waiting","tags":["x","y"]},{"job":"b"},null]"#;
        let changes = changes(before, after);
        let names: Vec<_> = changes
            .iter()
            .map(|it| (it.name.as_str(), it.kind))
            .collect();
        assert_eq!(
            names,
            [
                ("job a", ChangeKind::Stays),
                ("job b", ChangeKind::New),
                ("job c", ChangeKind::Gone)
            ]
        );
        let facts = changes[0].facts.iter();
        let facts: Vec<_> = facts
            .map(|fact| {
                (
                    fact.name.as_str(),
                    fact.before.as_str(),
                    fact.after.as_str(),
                )
            })
            .collect();
        assert_eq!(
            facts,
            [("state", "failed", "waiting"), ("tags", "none", "x, y")]
        );
    }

    #[test]
    fn times_are_parsed_or_rejected() {
        assert_eq!(time("1970-01-01T00:01"), Ok(Some(Time(60_000_000))));
        assert_eq!(time("1970-01-02"), Ok(Some(Time(86_400_000_000))));
        assert_eq!(time(" "), Ok(None));
        assert!(time("yesterday").is_err());
    }

    #[tokio::test]
    async fn entries_of_earlier_versions_show_the_current_name_of_their_action() {
        let engine = engine_without_tasks().await;
        for (n, name) in ["mend", "repair", "make_queue", "cancel"]
            .iter()
            .enumerate()
        {
            let actor = Actor {
                id: n.to_string(),
                action: (*name).to_owned(),
                ..Actor::default()
            };
            engine.record_outcome(&actor, true, "Done.").await.unwrap();
        }
        let load = async |action: &str| {
            let query = AuditQuery {
                action: action.to_owned(),
                ..AuditQuery::default()
            };
            let view = load_audit(&engine, &query).await.unwrap();
            assert_eq!(view.actions, ["cancel", "create_queue", "repair"]);
            let rows = view.rows.iter().map(|row| row.action.clone());
            let mut names: Vec<_> = rows.collect();
            names.sort_unstable();
            let (entries, _) = load_export(&engine, &query, 100).await.unwrap();
            assert_eq!(entries.len(), names.len(), "{action}");
            names
        };
        assert_eq!(
            load("").await,
            ["cancel", "create_queue", "repair", "repair"]
        );
        for name in ["mend", "repair"] {
            assert_eq!(load(name).await, ["repair", "repair"], "{name}");
        }
        assert_eq!(load("make_queue").await, ["create_queue"]);
        assert_eq!(load("cancel").await, ["cancel"]);
        assert_eq!(load("undepend").await, [""; 0]);
        engine.close().await;
    }

    #[tokio::test]
    async fn an_export_ends_at_its_limits() {
        let engine = engine_without_tasks().await;
        let add = async |n: usize, target: usize| {
            let actor = Actor {
                id: format!("{n:05}"),
                target: "x".repeat(target),
                ..Actor::default()
            };
            engine.record_outcome(&actor, true, "Done.").await.unwrap();
        };
        for n in 0..201 {
            add(n, 0).await;
        }
        let export = async |limit: usize| {
            let all = AuditQuery::default();
            let (entries, more) = load_export(&engine, &all, limit).await.unwrap();
            assert!(entries.is_sorted_by(|one, next| one.actor.id > next.actor.id));
            (entries.len(), more)
        };
        assert_eq!(export(150).await, (150, true));
        assert_eq!(export(200).await, (200, true));
        assert_eq!(export(201).await, (201, false));
        assert_eq!(export(202).await, (201, false));
        let large = (1_000..3_200).map(|n| add(n, 4_096));
        futures::future::join_all(large).await;
        let (entries, more) = export(10_000).await;
        // 21 batches of 100 entries of 4 KiB.
        assert_eq!((entries, more), (2_100, true));
        engine.close().await;
    }
}
