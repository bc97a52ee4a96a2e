//! What alerts report: the problems of the overview, one for each queue or failure group.

use crate::ui::components::basics::plural;
use crate::ui::model::problem::ProblemKind;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::pages::overview::model::OverviewView;
use crate::ui::pages::overview::problems::{self, Problem};
use crate::ui::urls;

/// Maximum number of reported problems of one kind. Beyond it, only those of the first queues or failure groups by name
/// are reported.
pub const REPORTABLE_MAX: usize = 100;

/// A problem that alerts report.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportableProblem {
    pub kind: ProblemKind,
    pub queue: Option<QueueRef>,
    pub group: Option<String>,
    pub text: String,
    /// The page that shows it.
    pub address: String,
}

impl ReportableProblem {
    /// Identifies the problem while its text changes.
    pub fn key(&self) -> String {
        let kind = self.kind.as_str();
        match (&self.queue, &self.group) {
            (Some(queue), _) => {
                let protocol = queue.protocol.as_str();
                format!("{kind} {protocol} {} {}", queue.namespace, queue.name)
            }
            (None, Some(group)) => format!("{kind} {group}"),
            (None, None) => kind.to_owned(),
        }
    }
}

/// The problems at this time.
pub fn reportable_problems(mut overview: OverviewView, now: i64) -> Vec<ReportableProblem> {
    let name = |queue: &QueueRow| {
        let QueueRef {
            protocol,
            namespace,
            name,
        } = &queue.queue_ref;
        (protocol.as_str(), namespace.clone(), name.clone())
    };
    overview.queues.sort_by_cached_key(name);
    let all = problems::find(&overview, now, REPORTABLE_MAX).into_iter();
    let separate = [ProblemKind::Failed, ProblemKind::Dead];
    let of_queues = [
        ProblemKind::Unclaimed,
        ProblemKind::Paused,
        ProblemKind::Stalled,
        ProblemKind::LongWait,
    ];
    // Without a queue, it says how many more queues have the problem.
    let is_summary =
        |problem: &Problem| problem.queue.is_none() && of_queues.contains(&problem.kind);
    let mut found: Vec<ReportableProblem> = all
        .filter(|problem| !separate.contains(&problem.kind) && !is_summary(problem))
        .map(|problem| ReportableProblem {
            kind: problem.kind,
            queue: problem.queue,
            group: None,
            text: problem.text,
            address: problem.address,
        })
        .collect();
    let groups = overview.groups.iter();
    let groups = groups.filter(|group| group.muted.is_none());
    found.extend(groups.map(|group| ReportableProblem {
        kind: ProblemKind::Failed,
        queue: None,
        group: Some(group.group.clone()),
        text: format!(
            "{} in the group {}",
            plural(group.count, "failed job", "failed jobs"),
            group.group
        ),
        address: urls::failure(&group.group),
    }));
    let dead = overview.queues.iter().filter(|queue| queue.counts.dead > 0);
    found.extend(dead.take(REPORTABLE_MAX).map(|queue| ReportableProblem {
        kind: ProblemKind::Dead,
        queue: Some(queue.queue_ref.clone()),
        group: None,
        text: format!(
            "{} in {}",
            plural(queue.counts.dead, "dead job", "dead jobs"),
            queue.queue_ref.label()
        ),
        address: urls::state(
            &queue.queue_ref,
            crate::ui::model::state::EffectiveState::Dead,
        ),
    }));
    found.sort_by_cached_key(ReportableProblem::key);
    let mut of_kind = std::collections::HashMap::new();
    found.retain(|problem| {
        let count: &mut usize = of_kind.entry(problem.kind).or_default();
        *count += 1;
        *count <= REPORTABLE_MAX
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::model::failure::{GroupRow, MutedFailures};
    use crate::ui::model::series::RecentActivity;
    use crate::ui::model::state::Counts;

    fn overview(queues: Vec<QueueRow>, groups: Vec<GroupRow>) -> OverviewView {
        OverviewView {
            queues,
            totals: vec![],
            groups,
            failures: None,
            workers: vec![],
            dead: vec![],
            dead_letters: 0,
            recent: RecentActivity::default(),
        }
    }

    #[test]
    fn each_queue_and_each_group_that_is_not_muted_is_a_problem_of_its_own() {
        let counts = Counts {
            stalled: 2,
            ..Counts::default()
        };
        let queues = (0..5).map(|n| QueueRow::sample(&format!("q{n}"), counts, Some(0)));
        let groups = (0..3).map(|n| GroupRow {
            group: format!("Group {n}"),
            count: 3,
            first: None,
            last: None,
            message: None,
            muted: (n == 2).then(|| MutedFailures {
                reason: "known".to_owned(),
                who: "ada".to_owned(),
                until: 2_000_000,
            }),
        });
        let found = reportable_problems(overview(queues.collect(), groups.collect()), 1_000_000);
        let keys: Vec<String> = found.iter().map(ReportableProblem::key).collect();
        let expected = ["failed Group 0", "failed Group 1"].map(str::to_owned);
        let stalled = (0..5).map(|n| format!("stalled qless  q{n}"));
        assert_eq!(
            keys,
            expected.into_iter().chain(stalled).collect::<Vec<_>>()
        );
        assert_eq!(found[0].text, "3 failed jobs in the group Group 0");
    }

    #[test]
    fn a_kind_has_up_to_100_problems() {
        let counts = Counts {
            stalled: 1,
            ..Counts::default()
        };
        for (queues, expected) in [(99, 99), (100, 100), (101, 100)] {
            let queues = (0..queues).map(|n| QueueRow::sample(&format!("q{n}"), counts, Some(0)));
            let found = reportable_problems(overview(queues.collect(), vec![]), 1_000_000);
            assert_eq!(found.len(), expected);
        }
    }
}
