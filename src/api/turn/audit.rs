//! The audit: what a form is about, and the entries as they are shown.

mod export;
mod target;

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use serde_json::{Map, Value};

use super::super::views::{AuditQuery, AuditRow, AuditView, Fact, Fate, Thing};
use crate::engine::{
    AUDIT_DAYS_MAX, AUDIT_ENTRIES_MAX, AuditEntry, AuditFilter, Engine, Result, Time,
};

pub use export::{audit_csv, audit_json};
pub use target::{Target, audited_action};

/// Entries on a page.
const PAGE: usize = 50;

/// What names a thing, by the kinds that there are; a job and a recurring job name a queue besides.
const KINDS: [&str; 7] = [
    "job",
    "recurring",
    "option",
    "token",
    "worker",
    "deleted",
    "queue",
];

/// A page of the entries that are wanted.
pub async fn audit(engine: &Engine, query: &AuditQuery) -> Result<AuditView> {
    let (people, actions) = engine.audit_filters().await?;
    let mut view = AuditView {
        rows: Vec::new(),
        next: None,
        people,
        actions,
        mistaken: None,
        kept: (AUDIT_ENTRIES_MAX, AUDIT_DAYS_MAX),
    };
    let filter = match filter(query) {
        Ok(filter) => filter,
        Err(why) => {
            view.mistaken = Some(why);
            return Ok(view);
        }
    };
    let entries = engine
        .audit_entries(&filter, cursor(&query.after), PAGE + 1)
        .await?;
    let shown = entries.iter().take(PAGE);
    view.rows = shown.map(row).collect();
    let last = view.rows.last().filter(|_| entries.len() > PAGE);
    view.next = last.map(|row| format!("{}-{}", row.at, row.id));
    Ok(view)
}

/// Up to `limit` of the entries that are wanted, the newest; and whether there are more. What is wanted by a time that
/// is none is nothing.
pub async fn audit_export(
    engine: &Engine,
    query: &AuditQuery,
    limit: usize,
) -> Result<(Vec<AuditEntry>, bool)> {
    let Ok(filter) = filter(query) else {
        return Ok((Vec::new(), false));
    };
    let mut entries = engine.audit_entries(&filter, None, limit + 1).await?;
    let more = entries.len() > limit;
    entries.truncate(limit);
    Ok((entries, more))
}

fn filter(query: &AuditQuery) -> Result<AuditFilter, String> {
    Ok(AuditFilter {
        who: query.who.clone(),
        action: query.action.clone(),
        target: query.target.trim().to_owned(),
        from: moment(&query.from)?,
        until: moment(&query.until)?,
    })
}

/// A moment as a browser's field gives it; UTC.
fn moment(text: &str) -> Result<Option<Time>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let at = |format: &str| NaiveDateTime::parse_from_str(text, format).ok();
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let moment = at("%Y-%m-%dT%H:%M")
        .or_else(|| at("%Y-%m-%dT%H:%M:%S"))
        .or_else(|| Some(day()?.and_time(NaiveTime::MIN)));
    let moment =
        moment.ok_or_else(|| format!("“{text}” is not a valid time; use YYYY-MM-DDTHH:MM"))?;
    Ok(Some(Time(moment.and_utc().timestamp_micros())))
}

fn cursor(after: &str) -> Option<(Time, String)> {
    let (at, id) = after.split_once('-')?;
    Some((Time(at.parse().ok()?), id.to_owned()))
}

fn row(entry: &AuditEntry) -> AuditRow {
    let actor = entry.actor.clone();
    AuditRow {
        id: actor.id,
        at: entry.at.0,
        who: actor.who,
        role: actor.role,
        action: actor.action,
        target: actor.target,
        link: actor.link,
        things: things(&entry.before, &entry.after),
        items: entry.items,
        done: entry.done,
        said: entry.said.clone(),
        request_id: actor.request_id,
        source: actor.source,
    }
}

type Facts = Option<Map<String, Value>>;

fn things(before: &str, after: &str) -> Vec<Thing> {
    let list = |text: &str| serde_json::from_str::<Vec<Facts>>(text).unwrap_or_default();
    let pairs = list(before).into_iter().zip(list(after));
    pairs.filter_map(|pair| thing(&pair.0, &pair.1)).collect()
}

fn thing(before: &Facts, after: &Facts) -> Option<Thing> {
    let known = after.as_ref().or(before.as_ref())?;
    let kind = KINDS.into_iter().find(|kind| known.contains_key(*kind))?;
    let name = match kind {
        "deleted" => format!("jobs: {}", told(known.get(kind))),
        _ => format!("{kind} {}", told(known.get(kind))),
    };
    let fate = match (before, after) {
        (None, Some(_)) if kind == "deleted" => Fate::Gone,
        (None, _) => Fate::New,
        (_, None) => Fate::Gone,
        _ => Fate::Stays,
    };
    let of = |facts: &Facts, name: &str| facts.as_ref().and_then(|facts| facts.get(name).cloned());
    let names = known.keys().filter(|name| *name != kind);
    let facts = names.map(|name| (name, of(before, name), of(after, name)));
    let facts = facts.filter(|(_, before, after)| before != after);
    Some(Thing {
        name,
        fate,
        facts: facts
            .map(|(name, before, after)| Fact {
                name: name.clone(),
                before: told(before.as_ref()),
                after: told(after.as_ref()),
            })
            .collect(),
    })
}

fn told(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::Array(items)) if items.is_empty() => "none".to_owned(),
        Some(Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(|item| told(Some(item))).collect();
            items.join(", ")
        }
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_shown() {
        let before = r#"[{"job":"a","queue":"q","state":"failed","tags":[]},null,{"job":"c"}]"#;
        let after =
            r#"[{"job":"a","queue":"q","state":"waiting","tags":["x","y"]},{"job":"b"},null]"#;
        let things = things(before, after);
        let names: Vec<_> = things
            .iter()
            .map(|it| (it.name.as_str(), it.fate))
            .collect();
        assert_eq!(
            names,
            [
                ("job a", Fate::Stays),
                ("job b", Fate::New),
                ("job c", Fate::Gone)
            ]
        );
        let facts = things[0].facts.iter();
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
    fn a_time_is_read_or_refused() {
        assert_eq!(moment("1970-01-01T00:01"), Ok(Some(Time(60_000_000))));
        assert_eq!(moment("1970-01-02"), Ok(Some(Time(86_400_000_000))));
        assert_eq!(moment(" "), Ok(None));
        assert!(moment("yesterday").is_err());
    }
}
