//! What is wrong, found in the numbers of the overview.

use crate::time;
use crate::ui::components::basics::many;
use crate::ui::components::chart::Unit;
use crate::ui::model::failure::GroupRow;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::series::Recent;
use crate::ui::model::state::EffectiveState;
use crate::ui::model::worker::Pulse;
use crate::ui::pages::overview::model::OverviewView;
use crate::ui::urls;

/// A waiting time in microseconds that deserves a look.
const LONG_US: i64 = 300_000_000;

/// A failure rate has jumped if so many jobs failed, and so many times as great a share as before.
const JUMP_FAILURES: i64 = 5;

const JUMP_TIMES: f64 = 3.0;

/// The time of a commit, in seconds, that deserves a look.
const SLOW_COMMIT_S: f64 = 0.25;

/// Problems of one kind that are named one by one; the rest is summed up.
const NAMED_MAX: usize = 3;

/// Something that an operator should look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Gives icon and colour.
    pub shape: &'static str,
    pub text: String,
    /// The API of the queue that it is about.
    pub protocol: Option<Protocol>,
    /// Where to look.
    pub address: String,
    /// A moment that tells since when, and what it is.
    pub since: Option<(&'static str, i64)>,
    /// What would mend it, at once.
    pub remedy: Option<Remedy>,
}

/// What an operator may do about a problem where it is named.
#[derive(Clone, Debug, PartialEq)]
pub enum Remedy {
    /// Let the queue go on.
    Unpause(QueueRef),
    /// Retry all jobs of the group.
    RetryGroup(GroupRow),
    /// Take so many jobs out of the dead letter of the queue.
    PutToWork(QueueRef, i64),
}

/// Whether a queue has a problem of its own.
pub fn is_troubled(queue: &QueueRow, now: i64) -> bool {
    let counts = &queue.counts;
    let waits = counts.waiting > 0;
    let long = queue
        .oldest_waiting
        .is_some_and(|since| now.saturating_sub(since) > LONG_US);
    counts.stalled + counts.failed + counts.dead > 0 || waits && (queue.paused || long)
}

/// The problems, worst first.
pub fn problems(overview: &OverviewView, now: i64) -> Vec<Problem> {
    let mut problems = Vec::new();
    let queues = &overview.queues;
    problems.extend(full_disk(&overview.recent));
    problems.extend(nobody_works(overview, now));
    queue_problems(&mut problems, queues, now);
    problems.extend(failed_groups(overview));
    problems.extend(failing_more(&overview.recent));
    problems.extend(slow_commits(&overview.recent));
    dead(&mut problems, overview, now);
    problems
}

/// Paused, stalled and waiting queues.
fn queue_problems(problems: &mut Vec<Problem>, queues: &[QueueRow], now: i64) {
    per_queue(
        problems,
        queues,
        "paused",
        EffectiveState::Waiting,
        |queue| {
            let n = queue.counts.waiting;
            (queue.paused && n > 0).then(|| {
                format!(
                    "{} is paused with {} waiting",
                    queue.queue_ref.label(),
                    many(n, "job", "jobs")
                )
            })
        },
    );
    per_queue(
        problems,
        queues,
        "stalled",
        EffectiveState::Stalled,
        |queue| {
            let n = queue.counts.stalled;
            // Where the API has no stalled jobs, the next round of upkeep takes such a job away from its consumer.
            (n > 0 && queue.queue_ref.protocol.has(EffectiveState::Stalled)).then(|| {
                format!(
                    "{} stalled in {}",
                    many(n, "job", "jobs"),
                    queue.queue_ref.label()
                )
            })
        },
    );
    per_queue(
        problems,
        queues,
        "waiting",
        EffectiveState::Waiting,
        |queue| {
            let wait = now.saturating_sub(queue.oldest_waiting?);
            (!queue.paused && queue.counts.waiting > 0 && wait > LONG_US).then(|| {
                format!(
                    "{}: oldest job has been waiting {}",
                    queue.queue_ref.label(),
                    time::span(wait)
                )
            })
        },
    );
}

fn failed_groups(overview: &OverviewView) -> Option<Problem> {
    let failed: i64 = overview.groups.iter().map(|group| group.count).sum();
    (failed > 0).then(|| {
        let groups = i64::try_from(overview.groups.len()).unwrap_or(i64::MAX);
        Problem {
            shape: "failed",
            text: format!(
                "{} in {}",
                many(failed, "failed job", "failed jobs"),
                many(groups, "group", "groups")
            ),
            protocol: None,
            address: "/ui/failures".to_owned(),
            since: overview
                .groups
                .iter()
                .filter_map(|group| group.first)
                .min()
                .map(|first| ("first", first)),
            remedy: match overview.groups.as_slice() {
                [group] => Some(Remedy::RetryGroup(group.clone())),
                _ => None,
            },
        }
    })
}

fn full_disk(recent: &Recent) -> Option<Problem> {
    recent.is_disk_full.then(|| Problem {
        shape: "failed",
        text: "The disk is full: new jobs are refused. Workers can still complete jobs. Free disk space \
               or delete jobs"
            .to_owned(),
        protocol: None,
        address: "/ui/about".to_owned(),
        since: None,
        remedy: None,
    })
}

fn failing_more(recent: &Recent) -> Option<Problem> {
    let (now, before) = (recent.now.failure_rate()?, recent.before.failure_rate()?);
    let jumped = recent.now.failed >= JUMP_FAILURES && now >= before * JUMP_TIMES;
    jumped.then(|| Problem {
        shape: "failed",
        text: format!(
            "{} failed in the last 5 minutes; the failure rate is {}, up from {} in the hour before",
            many(recent.now.failed, "job", "jobs"),
            Unit::Share.told(now),
            Unit::Share.told(before),
        ),
        protocol: None,
        address: "/ui/failures?range=1h".to_owned(),
        since: None,
        remedy: None,
    })
}

fn slow_commits(recent: &Recent) -> Option<Problem> {
    let p95 = recent.commits_p95.filter(|p95| *p95 > SLOW_COMMIT_S)?;
    Some(Problem {
        shape: "waiting",
        text: format!(
            "The database is slow: p95 commit time was {} in the last minute",
            time::seconds(p95)
        ),
        protocol: None,
        address: "/ui/stats".to_owned(),
        since: None,
        remedy: None,
    })
}

fn dead(problems: &mut Vec<Problem>, overview: &OverviewView, now: i64) {
    let named = overview.dead.iter().map(|letter| {
        let since = letter.head.as_ref().map_or(String::new(), |head| {
            let since = now.saturating_sub(head.when);
            format!(", oldest for {}", time::span(since))
        });
        Problem {
            shape: "dead",
            text: format!(
                "{} in {}{since}",
                many(letter.size, "dead job", "dead jobs"),
                letter.queue_ref.label()
            ),
            protocol: Some(letter.queue_ref.protocol),
            address: urls::stand(&letter.queue_ref, EffectiveState::Dead),
            since: None,
            remedy: Some(Remedy::PutToWork(letter.queue_ref.clone(), letter.size)),
        }
    });
    problems.extend(named);
    let more = overview.dead_letters.saturating_sub(overview.dead.len());
    if more > 0 {
        let more = i64::try_from(more).unwrap_or(i64::MAX);
        problems.push(Problem {
            shape: "dead",
            text: format!("… and {}", many(more, "more queue", "more queues")),
            protocol: None,
            address: "/ui/dead".to_owned(),
            since: None,
            remedy: None,
        });
    }
}

fn nobody_works(overview: &OverviewView, now: i64) -> Option<Problem> {
    // What waits in a paused queue waits for somebody else; and who works for lmstfy or Relay has no name, so
    // nobody can say whether there is anybody.
    let waiting: i64 = overview
        .queues
        .iter()
        .filter(|queue| !queue.paused && queue.queue_ref.protocol == Protocol::Qless)
        .map(|queue| queue.counts.waiting)
        .sum();
    let alive = overview
        .workers
        .iter()
        .any(|worker| worker.pulse(now) == Pulse::Alive);
    (waiting > 0 && !alive).then(|| Problem {
        shape: "stalled",
        text: format!(
            "{}, but no worker has asked for jobs in the last minute",
            many(waiting, "waiting job", "waiting jobs")
        ),
        protocol: None,
        address: "/ui/workers".to_owned(),
        since: None,
        remedy: None,
    })
}

fn per_queue(
    problems: &mut Vec<Problem>,
    queues: &[QueueRow],
    shape: &'static str,
    list: EffectiveState,
    check: impl Fn(&QueueRow) -> Option<String>,
) {
    let mut found: Vec<Problem> = queues
        .iter()
        .filter_map(|queue| {
            Some(Problem {
                shape,
                text: check(queue)?,
                protocol: Some(queue.queue_ref.protocol),
                address: urls::stand(&queue.queue_ref, list),
                since: queue
                    .oldest_waiting
                    .filter(|_| shape == "paused")
                    .map(|since| ("oldest available", since)),
                remedy: (shape == "paused").then(|| Remedy::Unpause(queue.queue_ref.clone())),
            })
        })
        .collect();
    if found.len() > NAMED_MAX {
        let more = found.len() - NAMED_MAX;
        found.truncate(NAMED_MAX);
        found.push(Problem {
            shape,
            text: format!(
                "… and {}",
                many(
                    i64::try_from(more).unwrap_or(i64::MAX),
                    "more queue",
                    "more queues"
                )
            ),
            protocol: None,
            address: format!("/ui/queues?sort={}", list.as_str()),
            since: None,
            remedy: None,
        });
    }
    problems.extend(found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::model::failure::GroupRow;
    use crate::ui::model::queue::QueueRow;
    use crate::ui::model::queue_ref::QueueRef;
    use crate::ui::model::series::Recent;
    use crate::ui::model::series::Span;
    use crate::ui::model::state::Counts;
    use crate::ui::model::worker::WorkerRow;
    use crate::ui::pages::dead_letters::model::DeadRow;
    use crate::ui::pages::overview::model::OverviewView;

    fn queue(name: &str, counts: Counts, oldest_waiting: Option<i64>) -> QueueRow {
        QueueRow {
            queue_ref: QueueRef::qless(name),
            counts,
            oldest_waiting,
            paused: false,
            forgotten: false,
            recurring: 0,
        }
    }

    fn overview(queues: Vec<QueueRow>, workers: Vec<WorkerRow>) -> OverviewView {
        OverviewView {
            queues,
            totals: vec![],
            groups: vec![],
            workers,
            dead: vec![],
            dead_letters: 0,
            recent: Recent::default(),
        }
    }

    fn seen(last_seen: i64) -> WorkerRow {
        WorkerRow {
            name: "w".to_owned(),
            last_seen,
            running: 0,
            stalled: 0,
        }
    }

    #[test]
    fn a_healthy_server_has_no_problems() {
        let counts = Counts {
            waiting: 3,
            running: 1,
            complete: 9,
            ..Counts::default()
        };
        let overview = overview(vec![queue("mail", counts, Some(0))], vec![seen(0)]);
        assert_eq!(problems(&overview, 1_000_000), []);
    }

    #[test]
    fn waiting_without_workers_is_the_first_problem() {
        let counts = Counts {
            waiting: 3,
            stalled: 1,
            ..Counts::default()
        };
        let overview = overview(vec![queue("mail", counts, Some(0))], vec![]);
        let found = problems(&overview, 1_000_000);
        assert_eq!(
            found[0].text,
            "3 waiting jobs, but no worker has asked for jobs in the last minute"
        );
        assert_eq!(found[1].text, "1 job stalled in mail");
        assert_eq!(found[1].address, "/ui/queues/mail/stalled");
    }

    #[test]
    fn a_paused_queue_is_a_problem_once_if_jobs_wait_in_it() {
        let counts = Counts {
            waiting: 2,
            ..Counts::default()
        };
        let paused = |counts, since| QueueRow {
            paused: true,
            ..queue("mail", counts, since)
        };
        let found = |queue| problems(&overview(vec![queue], vec![]), 2 * LONG_US);
        let some = found(paused(counts, Some(0)));
        assert_eq!(some.len(), 1);
        assert_eq!(some[0].text, "mail is paused with 2 jobs waiting");
        assert_eq!(
            some[0].remedy,
            Some(Remedy::Unpause(QueueRef::qless("mail")))
        );
        assert_eq!(found(paused(Counts::default(), None)), []);
    }

    #[test]
    fn a_jump_of_the_failure_rate_and_slow_commits_are_problems() {
        let span = |completed, failed| Span {
            completed,
            failed,
            ..Span::default()
        };
        let found = |now, before, commits_p95| {
            let recent = Recent {
                now,
                before,
                commits_p95,
                ..Recent::default()
            };
            let overview = OverviewView {
                recent,
                ..overview(vec![], vec![])
            };
            let found = problems(&overview, 0).into_iter();
            found.map(|problem| problem.text).collect::<Vec<_>>()
        };
        assert_eq!(
            found(span(5, 5), span(95, 5), None),
            [
                "5 jobs failed in the last 5 minutes; the failure rate is 50%, up from 5% in the hour before"
            ]
        );
        assert!(found(span(0, 4), span(95, 5), None).is_empty(), "too few");
        assert!(found(span(90, 10), span(95, 5), None).is_empty(), "twice");
        assert!(found(span(0, 9), span(0, 0), None).is_empty(), "no before");
        assert!(found(span(1, 0), span(1, 0), Some(0.25)).is_empty());
        assert_eq!(
            found(span(1, 0), span(1, 0), Some(0.5)),
            ["The database is slow: p95 commit time was 500 ms in the last minute"]
        );
    }

    #[test]
    fn what_has_failed_says_since_when_and_can_be_retried_if_it_is_one_group() {
        let group = |name: &str, first| GroupRow {
            group: name.to_owned(),
            count: 2,
            first: Some(first),
            last: Some(9),
            message: None,
        };
        let mut overview = overview(vec![], vec![]);
        overview.groups = vec![group("a", 7)];
        let found = problems(&overview, 0).remove(0);
        assert_eq!(found.since, Some(("first", 7)));
        assert_eq!(found.remedy, Some(Remedy::RetryGroup(group("a", 7))));
        overview.groups.push(group("b", 5));
        let found = problems(&overview, 0).remove(0);
        assert_eq!((found.since, found.remedy), (Some(("first", 5)), None));
    }

    #[test]
    fn dead_letters_are_named_and_those_beyond_summed_up() {
        let waiting = Counts {
            waiting: 1,
            dead: 7,
            ..Counts::default()
        };
        let queue_ref = QueueRef::lmstfy("shop", "mail");
        let queue = QueueRow {
            queue_ref: queue_ref.clone(),
            ..queue("", waiting, Some(0))
        };
        let mut overview = overview(vec![queue], vec![]);
        overview.dead_letters = 3;
        overview.dead = vec![DeadRow {
            queue_ref: queue_ref.clone(),
            size: 7,
            head: None,
        }];
        let found = problems(&overview, 0);
        assert_eq!(found.len(), 2, "nobody knows whether anybody consumes");
        assert_eq!(found[0].text, "7 dead jobs in shop/mail");
        assert_eq!(found[0].address, "/ui/lmstfy/shop/mail/dead");
        assert_eq!(found[0].remedy, Some(Remedy::PutToWork(queue_ref, 7)));
        assert_eq!(found[1].text, "… and 2 more queues");
    }

    #[test]
    fn many_queues_with_one_problem_are_summed_up() {
        let counts = Counts {
            stalled: 1,
            ..Counts::default()
        };
        let queues = (0..10)
            .map(|i| queue(&format!("q{i}"), counts, None))
            .collect();
        let found = problems(&overview(queues, vec![]), 0);
        assert_eq!(found.len(), NAMED_MAX + 1);
        assert_eq!(found[NAMED_MAX].text, "… and 7 more queues");
    }
}
