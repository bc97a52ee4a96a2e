//! What is wrong, found in the numbers of the overview.

use super::parts::many;
use super::time;
use super::visit::to;
use crate::api::views::{OverviewView, Pulse, QueueRow, Stand};

/// A waiting time in microseconds that deserves a look.
const LONG_US: i64 = 300_000_000;

/// Problems of one kind that are named one by one; the rest is summed up.
const NAMED_MAX: usize = 3;

/// Something that an operator should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Gives icon and colour.
    pub shape: &'static str,
    pub text: String,
    /// Where to look.
    pub address: String,
    /// The queue that must be let go on to mend it.
    pub unpause: Option<String>,
}

/// The problems, worst first.
pub fn problems(overview: &OverviewView, now: i64) -> Vec<Problem> {
    let mut problems = Vec::new();
    let queues = &overview.queues;
    problems.extend(nobody_works(overview, now));
    per_queue(&mut problems, queues, "paused", Stand::Waiting, |queue| {
        let n = queue.tally.waiting;
        (queue.paused && n > 0).then(|| {
            format!(
                "{} is paused, and {} there until it goes on",
                queue.name,
                many(n, "job waits", "jobs wait")
            )
        })
    });
    per_queue(&mut problems, queues, "stalled", Stand::Stalled, |queue| {
        let n = queue.tally.stalled;
        (n > 0).then(|| format!("{} stalled in {}", many(n, "job", "jobs"), queue.name))
    });
    per_queue(&mut problems, queues, "waiting", Stand::Waiting, |queue| {
        let wait = now.saturating_sub(queue.oldest_waiting?);
        (!queue.paused && queue.tally.waiting > 0 && wait > LONG_US).then(|| {
            format!(
                "{} has kept a job waiting for {}",
                queue.name,
                time::span(wait)
            )
        })
    });
    let failed: i64 = overview.groups.iter().map(|group| group.count).sum();
    if failed > 0 {
        let groups = i64::try_from(overview.groups.len()).unwrap_or(i64::MAX);
        problems.push(Problem {
            shape: "failed",
            text: format!(
                "{} failed, in {}",
                many(failed, "job has", "jobs have"),
                many(groups, "group", "groups")
            ),
            address: "/ui/failures".to_owned(),
            unpause: None,
        });
    }
    problems
}

fn nobody_works(overview: &OverviewView, now: i64) -> Option<Problem> {
    // What waits in a paused queue waits for somebody else.
    let waiting: i64 = overview
        .queues
        .iter()
        .filter(|queue| !queue.paused)
        .map(|queue| queue.tally.waiting)
        .sum();
    let alive = overview
        .workers
        .iter()
        .any(|worker| worker.pulse(now) == Pulse::Alive);
    (waiting > 0 && !alive).then(|| Problem {
        shape: "stalled",
        text: format!(
            "{}, and no worker has asked for any in the last minute",
            many(waiting, "job waits", "jobs wait")
        ),
        address: "/ui/workers".to_owned(),
        unpause: None,
    })
}

fn per_queue(
    problems: &mut Vec<Problem>,
    queues: &[QueueRow],
    shape: &'static str,
    list: Stand,
    check: impl Fn(&QueueRow) -> Option<String>,
) {
    let mut found: Vec<Problem> = queues
        .iter()
        .filter_map(|queue| {
            Some(Problem {
                shape,
                text: check(queue)?,
                address: to::stand(&queue.name, list),
                unpause: (shape == "paused").then(|| queue.name.clone()),
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
            address: format!("/ui/queues?sort={}", list.as_str()),
            unpause: None,
        });
    }
    problems.extend(found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::views::{Tally, WorkerRow};

    fn queue(name: &str, tally: Tally, oldest_waiting: Option<i64>) -> QueueRow {
        QueueRow {
            name: name.to_owned(),
            tally,
            oldest_waiting,
            paused: false,
            forgotten: false,
            recurring: 0,
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
        let tally = Tally {
            waiting: 3,
            running: 1,
            complete: 9,
            ..Tally::default()
        };
        let overview = OverviewView {
            queues: vec![queue("mail", tally, Some(0))],
            total: tally,
            groups: vec![],
            workers: vec![seen(0)],
        };
        assert_eq!(problems(&overview, 1_000_000), []);
    }

    #[test]
    fn waiting_without_workers_is_the_first_problem() {
        let tally = Tally {
            waiting: 3,
            stalled: 1,
            ..Tally::default()
        };
        let overview = OverviewView {
            queues: vec![queue("mail", tally, Some(0))],
            total: tally,
            groups: vec![],
            workers: vec![],
        };
        let found = problems(&overview, 1_000_000);
        assert_eq!(
            found[0].text,
            "3 jobs wait, and no worker has asked for any in the last minute"
        );
        assert_eq!(found[1].text, "1 job stalled in mail");
        assert_eq!(found[1].address, "/ui/queues/mail/stalled");
    }

    #[test]
    fn a_paused_queue_is_a_problem_once_if_jobs_wait_in_it() {
        let tally = Tally {
            waiting: 2,
            ..Tally::default()
        };
        let paused = |tally, since| QueueRow {
            paused: true,
            ..queue("mail", tally, since)
        };
        let found = |queue| {
            problems(
                &OverviewView {
                    queues: vec![queue],
                    total: tally,
                    groups: vec![],
                    workers: vec![],
                },
                2 * LONG_US,
            )
        };
        let some = found(paused(tally, Some(0)));
        assert_eq!(some.len(), 1);
        assert_eq!(
            some[0].text,
            "mail is paused, and 2 jobs wait there until it goes on"
        );
        assert_eq!(some[0].unpause.as_deref(), Some("mail"));
        assert_eq!(found(paused(Tally::default(), None)), []);
    }

    #[test]
    fn many_queues_with_one_problem_are_summed_up() {
        let tally = Tally {
            stalled: 1,
            ..Tally::default()
        };
        let queues = (0..10)
            .map(|i| queue(&format!("q{i}"), tally, None))
            .collect();
        let found = problems(
            &OverviewView {
                queues,
                total: tally,
                groups: vec![],
                workers: vec![],
            },
            0,
        );
        assert_eq!(found.len(), NAMED_MAX + 1);
        assert_eq!(found[NAMED_MAX].text, "… and 7 more queues");
    }
}
