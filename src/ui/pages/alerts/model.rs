//! The view model of the page about alerts. It contains neither the secret nor the paths of webhooks.

use serde::{Deserialize, Serialize};

/// The rules, what they have reported, and what was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlertsView {
    /// Whether the server sends alerts.
    pub is_on: bool,
    pub rules: Vec<RuleRow>,
    /// Reported problems that have not ended, newest first.
    pub reported: Vec<ReportedRow>,
    /// The number of all of them.
    pub reported_total: usize,
    /// Newest first.
    pub deliveries: Vec<DeliveryRow>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleRow {
    pub name: String,
    /// Scheme, host and port of its webhook.
    pub webhook: String,
    /// The displayed names of the kinds of problems.
    pub kinds: Vec<String>,
    /// Whether these are all kinds.
    pub has_all_kinds: bool,
    pub after_s: i64,
    pub who: String,
    pub created: i64,
    /// Reported problems that have not ended.
    pub reported: usize,
}

/// A reported problem that has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportedRow {
    pub id: String,
    pub rule: String,
    pub text: String,
    /// The page that shows it.
    pub address: String,
    pub since: i64,
}

/// A delivery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryRow {
    pub id: String,
    pub rule: String,
    pub event: String,
    /// The problem; empty for a test.
    pub text: String,
    pub created: i64,
    pub attempts: i64,
    /// The time of the next attempt; `None` if the delivery has ended.
    pub next: Option<i64>,
    pub is_delivered: bool,
    pub outcome: String,
}
