//! Compares the problems with the rules: what to report, and whose end to report.

use std::collections::{HashMap, HashSet};

use serde_json::json;
use uuid::Uuid;

use crate::engine::{AlertRule, ReportedProblem, Time};
use crate::ui::pages::overview::reportable::ReportableProblem;

/// A rule and the key of a problem.
type Key = (String, String);

/// What the checks have seen since this server became the leader.
#[derive(Debug, Default)]
pub struct Watch {
    /// Since when problems that have not been reported exist.
    since: HashMap<Key, Time>,
    /// Since when reported problems have been gone.
    gone: HashMap<Key, Time>,
}

/// What to write.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Report the problem.
    Raise(AlertRule, ReportedProblem),
    /// Report the end of the problem.
    End(AlertRule, ReportedProblem),
}

impl Watch {
    /// Compares the problems that are `found` now with those that have been `reported`. A problem is reported once it
    /// has lasted as long as the rule says; its end, once it has been gone for as long.
    pub fn step(
        &mut self,
        rules: &[AlertRule],
        found: &[ReportableProblem],
        reported: Vec<ReportedProblem>,
        now: Time,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        let (mut since, mut gone) = (HashMap::new(), HashMap::new());
        let known: HashSet<Key> = reported
            .iter()
            .map(|it| (it.rule.clone(), it.problem.clone()))
            .collect();
        let mut present = HashSet::new();
        for rule in rules {
            for problem in found.iter().filter(|it| applies(rule, it)) {
                let key = (rule.id.clone(), problem.key());
                present.insert(key.clone());
                if known.contains(&key) {
                    continue;
                }
                let began = self.since.get(&key).copied().unwrap_or(now);
                if has_lasted(rule, began, now) {
                    changes.push(Change::Raise(rule.clone(), report(rule, problem, now)));
                }
                // Also if it is reported now: that can fail, and is repeated at the next check.
                since.insert(key, began);
            }
        }
        for reported in reported {
            let key = (reported.rule.clone(), reported.problem.clone());
            let rule = rules.iter().find(|rule| rule.id == reported.rule);
            let Some(rule) = rule.filter(|_| !present.contains(&key)) else {
                continue;
            };
            let ended = self.gone.get(&key).copied().unwrap_or(now);
            if has_lasted(rule, ended, now) {
                changes.push(Change::End(rule.clone(), reported));
            }
            gone.insert(key, ended);
        }
        (self.since, self.gone) = (since, gone);
        changes
    }
}

fn applies(rule: &AlertRule, problem: &ReportableProblem) -> bool {
    rule.kinds.iter().any(|kind| kind == problem.kind.as_str())
}

fn has_lasted(rule: &AlertRule, since: Time, now: Time) -> bool {
    now.0.saturating_sub(since.0) >= rule.after_s.saturating_mul(1_000_000)
}

fn report(rule: &AlertRule, problem: &ReportableProblem, now: Time) -> ReportedProblem {
    let queue = problem.queue.as_ref().map(|queue| {
        json!({
            "api": queue.protocol.as_str(),
            "namespace": queue.namespace,
            "name": queue.name,
        })
    });
    let content = json!({
        "kind": problem.kind.as_str(),
        "queue": queue,
        "group": problem.group,
        "text": problem.text,
        "path": problem.address,
    });
    ReportedProblem {
        rule: rule.id.clone(),
        problem: problem.key(),
        id: Uuid::now_v7().simple().to_string(),
        raised_at: now,
        content: content.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::model::problem::ProblemKind;
    use crate::ui::model::queue_ref::QueueRef;

    const AT: i64 = 1_000_000_000;

    fn rule(after_s: i64) -> AlertRule {
        AlertRule {
            id: "r".to_owned(),
            name: "Night".to_owned(),
            url: "http://127.0.0.1/a".to_owned(),
            kinds: vec!["paused".to_owned(), "stalled".to_owned()],
            after_s,
            who: String::new(),
            created_at: Time(0),
        }
    }

    fn paused(queue: &str, kind: ProblemKind) -> ReportableProblem {
        ReportableProblem {
            kind,
            queue: Some(QueueRef::qless(queue)),
            group: None,
            text: "text".to_owned(),
            address: "/ui".to_owned(),
        }
    }

    /// Whether each change reports a problem or its end, and the key of the problem.
    fn reported(changes: &[Change]) -> Vec<(&'static str, String)> {
        let one = |change: &Change| match change {
            Change::Raise(_, it) => ("raised", it.problem.clone()),
            Change::End(_, it) => ("ended", it.problem.clone()),
        };
        changes.iter().map(one).collect()
    }

    #[test]
    fn a_problem_is_reported_once_when_it_has_lasted_and_once_when_it_is_gone() {
        let (mut watch, rules) = (Watch::default(), [rule(10)]);
        let found = [paused("a", ProblemKind::Paused)];
        let mut open: Vec<ReportedProblem> = vec![];
        let mut seen = vec![];
        for second in 0..60 {
            let found = if second < 30 { &found[..] } else { &[] };
            let now = Time(AT).plus_seconds(f64::from(second));
            let changes = watch.step(&rules, found, open.clone(), now);
            for change in &changes {
                match change {
                    Change::Raise(_, it) => open.push(it.clone()),
                    Change::End(_, it) => open.retain(|open| open != it),
                }
            }
            seen.extend(
                reported(&changes)
                    .into_iter()
                    .map(|it| (second, it.0, it.1)),
            );
        }
        let key = || "paused qless  a".to_owned();
        assert_eq!(seen, [(10, "raised", key()), (40, "ended", key())]);
    }

    #[test]
    fn an_interruption_starts_the_time_again_and_other_kinds_are_not_reported() {
        let (mut watch, rules) = (Watch::default(), [rule(10)]);
        let found = [
            paused("a", ProblemKind::Stalled),
            paused("a", ProblemKind::Dead),
        ];
        let mut step = |second: i64, found: &[ReportableProblem]| {
            let now = Time(AT + second * 1_000_000);
            reported(&watch.step(&rules, found, vec![], now))
        };
        assert_eq!(step(0, &found), []);
        assert_eq!(step(9, &found), []);
        assert_eq!(step(10, &[]), []);
        assert_eq!(step(11, &found), []);
        assert_eq!(step(20, &found), []);
        assert_eq!(
            step(21, &found),
            [("raised", "stalled qless  a".to_owned())]
        );
    }

    #[test]
    fn a_report_that_was_not_written_is_repeated_at_the_next_check() {
        let (mut watch, rules) = (Watch::default(), [rule(10)]);
        let found = [paused("a", ProblemKind::Paused)];
        let mut step = |second: i64, found: &[ReportableProblem], open: &[ReportedProblem]| {
            let now = Time(AT + second * 1_000_000);
            watch.step(&rules, found, open.to_vec(), now)
        };
        let key = || "paused qless  a".to_owned();
        assert_eq!(step(0, &found, &[]), []);
        let raised = step(10, &found, &[]);
        assert_eq!(reported(&raised), [("raised", key())]);
        assert_eq!(
            reported(&step(15, &found, &[])),
            [("raised", key())],
            "not written"
        );
        let [Change::Raise(_, open) | Change::End(_, open)] = &raised[..] else {
            panic!("{raised:?}");
        };
        let open = [open.clone()];
        assert_eq!(step(20, &found, &open), []);
        assert_eq!(step(25, &[], &open), []);
        for second in [35, 40] {
            let ended = step(second, &[], &open);
            assert_eq!(reported(&ended), [("ended", key())], "{second}");
        }
        assert_eq!(step(45, &[], &[]), []);
    }

    #[test]
    fn without_a_delay_a_problem_is_reported_at_once() {
        let found = [paused("a", ProblemKind::Paused)];
        let changes = Watch::default().step(&[rule(0)], &found, vec![], Time(AT));
        assert_eq!(reported(&changes).len(), 1);
    }
}
