//! The view model of the audit log.

use serde::{Deserialize, Serialize};

/// The filter of the address; empty fields match all entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditQuery {
    pub user: String,
    pub action: String,
    /// A part of the target.
    pub target: String,
    /// The range of times: inclusive start and exclusive end, `YYYY-MM-DDTHH:MM`, UTC.
    pub from: String,
    pub until: String,
    /// The last entry of the previous page.
    pub after: String,
}

impl AuditQuery {
    pub fn of(param: impl Fn(&str) -> String) -> AuditQuery {
        AuditQuery {
            user: param("who"),
            action: param("action"),
            target: param("target"),
            from: param("from"),
            until: param("until"),
            after: param("after"),
        }
    }

    /// The filters by their names in the address.
    pub fn filters(&self) -> [(&'static str, &str); 5] {
        [
            ("who", &self.user),
            ("action", &self.action),
            ("target", &self.target),
            ("from", &self.from),
            ("until", &self.until),
        ]
    }
}

/// A page of entries, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditView {
    pub rows: Vec<AuditRow>,
    /// The last entry of this page, if there is a next page.
    pub next: Option<String>,
    /// The users and actions in the log.
    pub users: Vec<String>,
    pub actions: Vec<String>,
    /// The error of the filter.
    pub filter_error: Option<String>,
    /// How many entries are kept, approximately.
    pub entries_max: i64,
    /// For how many days all changes of users are kept, at least, and any entry, at most.
    pub days: (i64, i64),
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    pub id: String,
    pub at: i64,
    pub user: String,
    pub role: String,
    pub action: String,
    /// The target, and the page that shows it; both can be empty.
    pub target: String,
    pub link: String,
    /// The first items that were changed.
    pub changes: Vec<ChangedItem>,
    /// The number of changed items.
    pub items: i64,
    /// Whether the action was done.
    pub done: bool,
    pub message: String,
    pub request_id: String,
    pub source: String,
}

/// An item that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedItem {
    pub name: String,
    pub kind: ChangeKind,
    /// The fields that differ; for new and deleted items, all fields.
    pub facts: Vec<FieldChange>,
}

/// How an item was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeKind {
    New,
    Stays,
    Gone,
}

/// A field before and after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    pub name: String,
    /// Empty if the item did not exist.
    pub before: String,
    /// Empty if the item was deleted.
    pub after: String,
}
