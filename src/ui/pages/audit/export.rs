//! The audit log as CSV and JSON.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::engine::AuditEntry;
use crate::time::iso;
use crate::ui::actions::current_name;
use crate::ui::present::csv::line;

/// An entry in an export.
#[derive(Serialize)]
struct Exported<'a> {
    at: String,
    who: &'a str,
    role: &'a str,
    action: &'a str,
    target: &'a str,
    link: &'a str,
    before: Option<&'a RawValue>,
    after: Option<&'a RawValue>,
    items: i64,
    outcome: &'static str,
    result: &'a str,
    request_id: &'a str,
    from: &'a str,
}

/// The entries as JSON.
pub fn audit_json(entries: &[AuditEntry], more: bool) -> String {
    #[derive(Serialize)]
    struct Export<'a> {
        entries: Vec<Exported<'a>>,
        /// Whether there are older entries.
        more: bool,
    }
    let entries = entries.iter().map(|entry| Exported {
        at: iso(entry.at.0),
        who: &entry.actor.who,
        role: &entry.actor.role,
        action: current_name(&entry.actor.action),
        target: &entry.actor.target,
        link: &entry.actor.link,
        before: serde_json::from_str(&entry.before).ok(),
        after: serde_json::from_str(&entry.after).ok(),
        items: entry.items,
        outcome: AuditEntry::outcome(entry.done),
        result: &entry.message,
        request_id: &entry.actor.request_id,
        from: &entry.actor.source,
    });
    let export = Export {
        entries: entries.collect(),
        more,
    };
    serde_json::to_string(&export).unwrap_or_default()
}

/// The entries as CSV (RFC 4180).
pub fn audit_csv(entries: &[AuditEntry]) -> String {
    let mut csv = String::from(
        "at,who,role,action,target,before,after,items,outcome,result,request_id,from\r\n",
    );
    for entry in entries {
        let (at, items) = (iso(entry.at.0), entry.items.to_string());
        let actor = &entry.actor;
        let cells = [
            &at,
            &actor.who,
            &actor.role,
            current_name(&actor.action),
            &actor.target,
            &entry.before,
            &entry.after,
            &items,
            AuditEntry::outcome(entry.done),
            &entry.message,
            &actor.request_id,
            &actor.source,
        ];
        csv.push_str(&line(&cells));
    }
    csv
}
