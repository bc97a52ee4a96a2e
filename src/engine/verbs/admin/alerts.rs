//! Alerts: rules that call a webhook when a problem begins and when it ends, and what is sent.
//!
//! A reported problem is a row until it ends, with the ID of the delivery that reports it. Two servers that both
//! consider themselves the leader cannot report a problem twice: the second row of a problem conflicts, and a delivery
//! is only added with its row. The ID of the delivery that reports the end is derived from the first one.

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::maintenance::SystemTask;
use crate::engine::unit_of_work::Needs;
use crate::store::{Row, Statement, StoreError};

/// Maximum number of rules.
pub const ALERT_RULES_MAX: usize = 20;

/// Deliveries that are kept; adding more deletes the oldest, even if they have not been delivered.
pub const ALERT_DELIVERIES_MAX: i64 = 1_000;

/// Deliveries that a page shows.
pub const ALERT_DELIVERIES_SHOWN: i64 = 50;

/// Reported problems that are read: more than there can be, because each kind of problem has a limit.
const OPEN_MAX: i64 = 50_000;

/// The event of a delivery that reports a problem.
pub const ALERT_RAISED: &str = "raised";

/// The event of a delivery that reports the end of a problem.
pub const ALERT_ENDED: &str = "ended";

/// The event of a delivery that a user has requested.
pub const ALERT_TEST: &str = "test";

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertRule {
    pub id: String,
    pub name: String,
    /// The address of the webhook. Its path can contain a secret.
    pub url: String,
    /// The kinds of problems, as the dashboard names them.
    pub kinds: Vec<String>,
    /// Seconds that a problem lasts before it is reported, and that it is gone before its end is reported.
    pub after_s: i64,
    pub who: String,
    pub created_at: Time,
}

impl AlertRule {
    /// The address without path and query, which can contain a secret.
    pub fn origin(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("", &self.url));
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        format!("{scheme}://{host}")
    }
}

/// A problem that has been reported and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedProblem {
    /// The ID of the rule.
    pub rule: String,
    /// Identifies the problem among those of the rule.
    pub problem: String,
    /// The ID of the delivery that reports it.
    pub id: String,
    pub raised_at: Time,
    /// The problem in JSON.
    pub content: String,
}

/// A delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertDelivery {
    pub id: String,
    /// The ID of the rule, and its name at the time.
    pub rule: String,
    pub rule_name: String,
    pub event: String,
    /// The problem in JSON.
    pub content: String,
    pub created_at: Time,
    /// The number of attempts so far.
    pub attempts: i64,
    pub next_at: Time,
    /// When it was delivered or given up.
    pub done_at: Option<Time>,
    pub is_delivered: bool,
    /// The result of the last attempt.
    pub outcome: String,
}

impl AlertDelivery {
    fn of(row: &Row) -> std::result::Result<AlertDelivery, StoreError> {
        let done_at = row.int(8)?;
        Ok(AlertDelivery {
            id: row.text(0)?,
            rule: row.text(1)?,
            rule_name: row.text(2)?,
            event: row.text(3)?,
            content: row.text(4)?,
            created_at: Time(row.int(5)?),
            attempts: row.int(6)?,
            next_at: Time(row.int(7)?),
            done_at: (done_at != 0).then_some(Time(done_at)),
            is_delivered: row.int(9)? != 0,
            outcome: row.text(10)?,
        })
    }
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptResult {
    pub is_delivered: bool,
    pub outcome: String,
    /// Seconds until the next attempt; `None` if there is none.
    pub retry_s: Option<i64>,
}

/// The delivery that is added when a rule reports a problem or its end, or when a user requests a test.
struct NewDelivery<'a> {
    id: &'a str,
    /// The ID of the delivery that must have ended before this one is sent; empty for none.
    follows: &'a str,
    rule: &'a AlertRule,
    event: &'static str,
    content: &'a str,
    /// The reported problem that the delivery belongs to; empty for a test.
    problem: &'a str,
    /// The ID under which the problem was reported; empty for a test.
    reported_as: &'a str,
}

impl NewDelivery<'_> {
    /// The statements that add the delivery, and delete the oldest above the maximum.
    fn statements(&self, now: Time) -> [Statement; 2] {
        let args = [
            self.id.into(),
            self.follows.into(),
            self.rule.id.as_str().into(),
            self.rule.name.as_str().into(),
            self.event.into(),
            self.content.into(),
            now.0.into(),
            self.problem.into(),
            self.reported_as.into(),
        ];
        [
            Statement::new(ADD_DELIVERY, args),
            Statement::new(DROP_SURPLUS, [ALERT_DELIVERIES_MAX.into()]),
        ]
    }
}

impl Engine {
    /// All rules, by name.
    pub async fn alert_rules(&self) -> Result<Vec<AlertRule>> {
        let rows = self.readers().rows(Statement::new(RULES, [])).await?;
        let rule = |row: &Row| {
            let kinds = row.text(3)?;
            Ok(AlertRule {
                id: row.text(0)?,
                name: row.text(1)?,
                url: row.text(2)?,
                kinds: kinds.split(',').map(str::to_owned).collect(),
                after_s: row.int(4)?,
                who: row.text(5)?,
                created_at: Time(row.int(6)?),
            })
        };
        rows.iter().map(rule).collect()
    }

    /// Adds a rule, unless there are [`ALERT_RULES_MAX`], or there is one with its name.
    pub async fn add_alert_rule(&self, rule: AlertRule) -> Result<()> {
        self.write(Needs::default(), None, 1, move |work| {
            work.audit_alert_rule(&rule, true);
            let args = [
                rule.id.as_str().into(),
                rule.name.as_str().into(),
                rule.url.as_str().into(),
                rule.kinds.join(",").into(),
                rule.after_s.into(),
                rule.who.as_str().into(),
                work.now.0.into(),
                (ALERT_RULES_MAX as i64).into(),
            ];
            work.add_statements([Statement::new(ADD_RULE, args)]);
            Ok(())
        })
        .await
    }

    /// Deletes a rule with its reported problems, and gives up what it has not delivered.
    pub async fn delete_alert_rule(&self, rule: AlertRule) -> Result<()> {
        self.write(Needs::default(), None, 1, move |work| {
            work.audit_alert_rule(&rule, false);
            let id = || rule.id.as_str().into();
            work.add_statements([
                Statement::new(DELETE_RULE, [id()]),
                Statement::new(DELETE_REPORTED, [id()]),
                Statement::new(GIVE_UP_ALL, [id(), work.now.0.into()]),
            ]);
            Ok(())
        })
        .await
    }

    /// Adds a delivery that a user has requested.
    pub async fn test_alert_rule(&self, rule: AlertRule, id: String) -> Result<()> {
        self.write(Needs::default(), None, 1, move |work| {
            let delivery = NewDelivery {
                id: &id,
                follows: "",
                rule: &rule,
                event: ALERT_TEST,
                content: "null",
                problem: "",
                reported_as: "",
            };
            work.add_statements(delivery.statements(work.now));
            Ok(())
        })
        .await
    }

    /// The reported problems of all rules, oldest first.
    pub async fn reported_problems(&self) -> Result<Vec<ReportedProblem>> {
        let open = Statement::new(REPORTED, [OPEN_MAX.into()]);
        let rows = self.readers().rows(open).await?;
        let reported = |row: &Row| {
            Ok(ReportedProblem {
                rule: row.text(0)?,
                problem: row.text(1)?,
                id: row.text(2)?,
                raised_at: Time(row.int(3)?),
                content: row.text(4)?,
            })
        };
        rows.iter().map(reported).collect()
    }

    /// Reports a problem, unless the rule has been deleted or has already reported it.
    pub async fn report_problem(&self, rule: AlertRule, reported: ReportedProblem) -> Result<()> {
        self.write(Needs::default(), None, 1, move |work| {
            let args = [
                rule.id.as_str().into(),
                reported.problem.as_str().into(),
                reported.id.as_str().into(),
                reported.raised_at.0.into(),
                reported.content.as_str().into(),
            ];
            let delivery = NewDelivery {
                id: &reported.id,
                follows: "",
                rule: &rule,
                event: ALERT_RAISED,
                content: &reported.content,
                problem: &reported.problem,
                reported_as: &reported.id,
            };
            work.add_statements([Statement::new(REPORT, args)]);
            work.add_statements(delivery.statements(work.now));
            Ok(())
        })
        .await
    }

    /// Reports the end of a reported problem.
    pub async fn report_end(&self, rule: AlertRule, reported: ReportedProblem) -> Result<()> {
        self.write(Needs::default(), None, 1, move |work| {
            let id = format!("{}-end", reported.id);
            let delivery = NewDelivery {
                id: &id,
                follows: &reported.id,
                rule: &rule,
                event: ALERT_ENDED,
                content: &reported.content,
                problem: &reported.problem,
                reported_as: &reported.id,
            };
            work.add_statements(delivery.statements(work.now));
            let args = [
                rule.id.as_str().into(),
                reported.problem.as_str().into(),
                reported.id.as_str().into(),
            ];
            work.add_statements([Statement::new(END, args)]);
            Ok(())
        })
        .await
    }

    /// Deliveries that are due, with the address of their webhook; at most `limit`. The rules alternate, so that a
    /// webhook that does not answer does not delay those of other rules.
    pub async fn due_alert_deliveries(&self, limit: i64) -> Result<Vec<(AlertDelivery, String)>> {
        let due = Statement::new(DUE, [self.now(None).0.into(), limit.into()]);
        let rows = self.readers().rows(due).await?;
        let delivery = |row: &Row| Ok((AlertDelivery::of(row)?, row.text(11)?));
        rows.iter().map(delivery).collect()
    }

    /// The newest deliveries.
    pub async fn alert_deliveries(&self) -> Result<Vec<AlertDelivery>> {
        let newest = Statement::new(NEWEST, [ALERT_DELIVERIES_SHOWN.into()]);
        let rows = self.readers().rows(newest).await?;
        let deliveries = rows.iter().map(AlertDelivery::of);
        Ok(deliveries.collect::<std::result::Result<_, _>>()?)
    }

    /// Begins an attempt, which may last for `lease_s` seconds. Returns false if another server has begun it, or the
    /// delivery has ended.
    pub async fn begin_alert_attempt(
        &self,
        delivery: &AlertDelivery,
        lease_s: i64,
    ) -> Result<bool> {
        let until = self.now(None).plus_seconds(lease_s as f64);
        let args = [
            delivery.id.as_str().into(),
            delivery.attempts.into(),
            until.0.into(),
        ];
        let begin = SystemTask::Run(Statement::new(BEGIN_ATTEMPT, args));
        Ok(self.run_system_task(begin).await? > 0)
    }

    /// Ends the attempt that has begun after `delivery` was read.
    pub async fn end_alert_attempt(
        &self,
        delivery: &AlertDelivery,
        result: AttemptResult,
    ) -> Result<()> {
        let (id, attempts) = (delivery.id.clone(), delivery.attempts + 1);
        self.write(Needs::default(), None, 1, move |work| {
            let now = work.now;
            let next_at = now.plus_seconds(result.retry_s.unwrap_or_default() as f64);
            let done_at = if result.retry_s.is_none() { now.0 } else { 0 };
            let args = [
                id.as_str().into(),
                attempts.into(),
                next_at.0.into(),
                done_at.into(),
                i64::from(result.is_delivered).into(),
                result.outcome.as_str().into(),
            ];
            work.add_statements([Statement::new(END_ATTEMPT, args)]);
            Ok(())
        })
        .await
    }
}

const RULES: &str =
    "SELECT id, name, url, kinds, after_s, who, created_at FROM alert_rules ORDER BY name, id";

const ADD_RULE: &str = "
INSERT INTO alert_rules (id, name, url, kinds, after_s, who, created_at)
SELECT $1, $2, $3, $4, $5, $6, $7
WHERE (SELECT count(*) FROM alert_rules) < $8 AND NOT EXISTS (SELECT 1 FROM alert_rules WHERE name = $2)";

const DELETE_RULE: &str = "DELETE FROM alert_rules WHERE id = $1";

const DELETE_REPORTED: &str = "DELETE FROM alerts WHERE rule = $1";

const GIVE_UP_ALL: &str = "
UPDATE alert_deliveries SET done_at = $2, outcome = 'the rule was deleted' WHERE rule = $1 AND done_at = 0";

const REPORTED: &str =
    "SELECT rule, problem, id, raised_at, content FROM alerts ORDER BY raised_at, id LIMIT $1 + 0";

const REPORT: &str = "
INSERT INTO alerts (rule, problem, id, raised_at, content)
SELECT $1, $2, $3, $4, $5 WHERE EXISTS (SELECT 1 FROM alert_rules WHERE id = $1)
ON CONFLICT (rule, problem) DO NOTHING";

const END: &str = "DELETE FROM alerts WHERE rule = $1 AND problem = $2 AND id = $3";

const ADD_DELIVERY: &str = "
INSERT INTO alert_deliveries
    (id, follows, rule, rule_name, event, content, created_at, attempts, next_at, done_at, delivered, outcome)
SELECT $1, $2, $3, $4, $5, $6, $7, 0, $7, 0, 0, ''
WHERE $8 = '' OR EXISTS (SELECT 1 FROM alerts WHERE rule = $3 AND problem = $8 AND id = $9)
ON CONFLICT (id) DO NOTHING";

const DROP_SURPLUS: &str = "
DELETE FROM alert_deliveries WHERE created_at < (
    SELECT created_at FROM alert_deliveries ORDER BY created_at DESC LIMIT 1 OFFSET $1 - 1)";

const DUE: &str = "
SELECT d.id, d.rule, d.rule_name, d.event, d.content, d.created_at, d.attempts, d.next_at, d.done_at, d.delivered,
    d.outcome, r.url
FROM alert_deliveries AS d CROSS JOIN alert_rules AS r
WHERE d.done_at = 0 AND d.next_at <= $1 AND r.id = d.rule
    AND NOT EXISTS (SELECT 1 FROM alert_deliveries AS f WHERE f.id = d.follows AND f.done_at = 0)
ORDER BY row_number() OVER (PARTITION BY d.rule ORDER BY d.next_at, d.id), d.next_at, d.id LIMIT $2 + 0";

const NEWEST: &str = "
SELECT id, rule, rule_name, event, content, created_at, attempts, next_at, done_at, delivered, outcome
FROM alert_deliveries ORDER BY created_at DESC, id DESC LIMIT $1 + 0";

const BEGIN_ATTEMPT: &str = "
UPDATE alert_deliveries SET attempts = attempts + 1, next_at = $3 WHERE id = $1 AND attempts = $2 AND done_at = 0";

const END_ATTEMPT: &str = "
UPDATE alert_deliveries SET next_at = $3, done_at = $4, delivered = $5, outcome = $6
WHERE id = $1 AND attempts = $2 AND done_at = 0";
