//! Loads the alert rules and their deliveries.

use leptos::prelude::*;
use serde::Deserialize;

use crate::auth::Role;
use crate::engine::{AlertDelivery, AlertRule, Engine, ReportedProblem, Result};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::model::problem::ProblemKind;
use crate::ui::pages::alerts::model::{AlertsView, DeliveryRow, ReportedRow, RuleRow};
use crate::ui::urls::encoding::is_dashboard_page;

/// Maximum number of reported problems on the page.
pub const REPORTED_SHOWN: usize = 50;

/// The rules, what they have reported, and the newest deliveries.
#[server]
pub async fn alerts() -> Result<AlertsView, PageError> {
    read(Role::Admin, async |context| {
        load_alerts(&context.engine, context.sends_alerts).await
    })
    .await
}

async fn load_alerts(engine: &Engine, is_on: bool) -> Result<AlertsView> {
    let (rules, reported, deliveries) = futures::try_join!(
        engine.alert_rules(),
        engine.reported_problems(),
        engine.alert_deliveries()
    )?;
    let newest = reported.iter().rev().take(REPORTED_SHOWN);
    Ok(AlertsView {
        is_on,
        reported: newest.map(|it| reported_row(it, &rules)).collect(),
        reported_total: reported.len(),
        deliveries: deliveries.into_iter().map(delivery_row).collect(),
        rules: rules.iter().map(|rule| rule_row(rule, &reported)).collect(),
    })
}

fn rule_row(rule: &AlertRule, reported: &[ReportedProblem]) -> RuleRow {
    let kinds = rule
        .kinds
        .iter()
        .filter_map(|kind| ProblemKind::parse(kind));
    let kinds: Vec<String> = kinds.map(|kind| kind.label().to_owned()).collect();
    let reported = reported.iter().filter(|it| it.rule == rule.id);
    RuleRow {
        name: rule.name.clone(),
        webhook: rule.origin(),
        has_all_kinds: kinds.len() == ProblemKind::ALL.len(),
        kinds,
        after_s: rule.after_s,
        who: rule.who.clone(),
        created: rule.created_at.0,
        reported: reported.count(),
    }
}

/// What pages show of the stored problem.
#[derive(Default, Deserialize)]
struct Content {
    text: String,
    path: String,
}

fn content(json: &str) -> Content {
    serde_json::from_str(json).unwrap_or_default()
}

fn reported_row(reported: &ReportedProblem, rules: &[AlertRule]) -> ReportedRow {
    let rule = rules.iter().find(|rule| rule.id == reported.rule);
    let Content { text, path } = content(&reported.content);
    ReportedRow {
        id: reported.id.clone(),
        rule: rule.map(|rule| rule.name.clone()).unwrap_or_default(),
        text,
        address: Some(path)
            .filter(|path| is_dashboard_page(path))
            .unwrap_or_else(|| "/ui".to_owned()),
        since: reported.raised_at.0,
    }
}

fn delivery_row(delivery: AlertDelivery) -> DeliveryRow {
    DeliveryRow {
        text: content(&delivery.content).text,
        id: delivery.id,
        rule: delivery.rule_name,
        event: delivery.event,
        created: delivery.created_at.0,
        attempts: delivery.attempts,
        next: delivery.done_at.is_none().then_some(delivery.next_at.0),
        is_delivered: delivery.is_delivered,
        outcome: delivery.outcome,
    }
}
