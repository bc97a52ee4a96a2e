//! Problems that the overview shows, derived from its counts.

#[cfg(test)]
mod tests;

use crate::time;
use crate::ui::components::basics::{number_of, plural};
use crate::ui::components::chart::Unit;
use crate::ui::model::failure::GroupRow;
use crate::ui::model::problem::ProblemKind;
use crate::ui::model::queue::{PauseDetails, QueueRow};
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::series::RecentActivity;
use crate::ui::model::state::EffectiveState;
use crate::ui::model::worker::WorkerActivity;
use crate::ui::pages::overview::model::OverviewView;
use crate::ui::urls;

/// A waiting time above this is a problem, in microseconds.
const LONG_US: i64 = 300_000_000;

/// The failure rate has jumped if at least this many jobs failed, and the rate is this many times the earlier rate.
const JUMP_FAILURES: i64 = 5;

const JUMP_TIMES: f64 = 3.0;

/// A commit time above this is a problem, in seconds.
const SLOW_COMMIT_S: f64 = 0.25;

/// Maximum number of problems of one kind that are listed; the others are summarized.
const NAMED_MAX: usize = 3;

/// A problem and its remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub kind: ProblemKind,
    /// Its queue.
    pub queue: Option<QueueRef>,
    /// Determines icon and color.
    pub shape: &'static str,
    pub text: String,
    /// The protocol of its queue.
    pub protocol: Option<Protocol>,
    /// The page that shows it.
    pub address: String,
    /// A point in time with its label, such as the first failure.
    pub since: Option<(&'static str, i64)>,
    /// By whom, until when and why its queue is paused, if that is known.
    pub pause: Option<PauseDetails>,
    /// An action that solves it.
    pub remedy: Option<SuggestedAction>,
}

/// An action beside a problem.
#[derive(Clone, Debug, PartialEq)]
pub enum SuggestedAction {
    /// Resume the queue.
    ResumeQueue(QueueRef),
    /// Retry all jobs of the group.
    RetryGroup(GroupRow),
    /// Requeue this many dead jobs of the queue.
    RequeueDead(QueueRef, i64),
}

/// Whether a queue has a problem of its own.
pub fn has_problem(queue: &QueueRow, now: i64) -> bool {
    let counts = &queue.counts;
    let waits = counts.waiting > 0;
    let long = queue
        .oldest_waiting
        .is_some_and(|since| now.saturating_sub(since) > LONG_US);
    let is_unclaimed = queue.unclaimed_since(now).is_some();
    counts.stalled + counts.failed + counts.dead > 0
        || waits && (queue.paused || long)
        || is_unclaimed
}

/// The problems, worst first.
pub fn problems(overview: &OverviewView, now: i64) -> Vec<Problem> {
    find(overview, now, NAMED_MAX)
}

/// The problems, with up to `named` queues for each kind; with dead jobs, the queues in `overview.dead`.
pub fn find(overview: &OverviewView, now: i64, named: usize) -> Vec<Problem> {
    let mut problems = Vec::new();
    let queues = &overview.queues;
    problems.extend(full_disk(&overview.recent));
    let no_workers = no_workers(overview, now);
    // This problem already covers all qless queues.
    let without_qless = no_workers.is_some();
    problems.extend(no_workers);
    unclaimed_queues(&mut problems, queues, without_qless, now, named);
    queue_problems(&mut problems, queues, now, named);
    problems.extend(failed_groups(overview));
    problems.extend(failing_more(&overview.recent));
    problems.extend(slow_commits(&overview.recent));
    dead(&mut problems, overview, now);
    problems
}

/// Queues with waiting jobs from which no worker claims.
fn unclaimed_queues(
    problems: &mut Vec<Problem>,
    queues: &[QueueRow],
    without_qless: bool,
    now: i64,
    named: usize,
) {
    let list = EffectiveState::Waiting;
    per_queue(
        problems,
        queues,
        (ProblemKind::Unclaimed, named),
        list,
        |queue| {
            queue.unclaimed_since(now)?;
            let is_covered = without_qless && queue.queue_ref.protocol == Protocol::Qless;
            (!is_covered).then(|| {
                format!(
                    "{} has {}, but no worker claims from this queue",
                    queue.queue_ref.label(),
                    plural(queue.counts.waiting, "waiting job", "waiting jobs")
                )
            })
        },
    );
}

/// Problems of queues: paused, stalled, and long waits.
fn queue_problems(problems: &mut Vec<Problem>, queues: &[QueueRow], now: i64, named: usize) {
    use ProblemKind::{LongWait, Paused, Stalled};
    per_queue(
        problems,
        queues,
        (Paused, named),
        EffectiveState::Waiting,
        |queue| {
            let n = queue.counts.waiting;
            (queue.paused && n > 0).then(|| {
                format!(
                    "{} is paused with {} waiting",
                    queue.queue_ref.label(),
                    plural(n, "job", "jobs")
                )
            })
        },
    );
    per_queue(
        problems,
        queues,
        (Stalled, named),
        EffectiveState::Stalled,
        |queue| {
            let n = queue.counts.stalled;
            // In the other protocols, maintenance soon requeues or dead-letters jobs whose lease has expired.
            (n > 0 && queue.queue_ref.protocol.has(EffectiveState::Stalled)).then(|| {
                format!(
                    "{} stalled in {}",
                    plural(n, "job", "jobs"),
                    queue.queue_ref.label()
                )
            })
        },
    );
    per_queue(
        problems,
        queues,
        (LongWait, named),
        EffectiveState::Waiting,
        |queue| {
            let wait = now.saturating_sub(queue.oldest_waiting?);
            let is_claimed = queue.unclaimed_since(now).is_none();
            (is_claimed && !queue.paused && queue.counts.waiting > 0 && wait > LONG_US).then(|| {
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
    let groups = overview.groups.iter();
    let groups: Vec<&GroupRow> = groups.filter(|group| group.muted.is_none()).collect();
    let totals = overview.failure_totals();
    (totals.unmuted_jobs > 0).then(|| Problem {
        kind: ProblemKind::Failed,
        queue: None,
        shape: "failed",
        text: format!(
            "{} in {}",
            plural(totals.unmuted_jobs, "failed job", "failed jobs"),
            plural(totals.unmuted_groups, "group", "groups")
        ),
        protocol: None,
        address: "/ui/failures".to_owned(),
        since: groups
            .iter()
            .filter_map(|group| group.first)
            .min()
            .map(|first| ("first", first)),
        pause: None,
        remedy: match groups.as_slice() {
            [group] if totals.unmuted_groups == 1 => {
                Some(SuggestedAction::RetryGroup((*group).clone()))
            }
            _ => None,
        },
    })
}

fn full_disk(recent: &RecentActivity) -> Option<Problem> {
    recent.is_disk_full.then(|| Problem {
        kind: ProblemKind::FullDisk,
        queue: None,
        shape: "failed",
        text: "The disk is full: new jobs are refused. Workers can still complete jobs. Free disk space \
               or delete jobs"
            .to_owned(),
        protocol: None,
        address: "/ui/about".to_owned(),
        since: None,
        pause: None,
        remedy: None,
    })
}

fn failing_more(recent: &RecentActivity) -> Option<Problem> {
    let (now, before) = (recent.now.failure_rate()?, recent.before.failure_rate()?);
    let jumped = recent.now.failed >= JUMP_FAILURES && now >= before * JUMP_TIMES;
    jumped.then(|| Problem {
        kind: ProblemKind::FailureRate,
        queue: None,
        shape: "failed",
        text: format!(
            "{} failed in the last 5 minutes; the failure rate is {}, up from {} in the hour before",
            plural(recent.now.failed, "job", "jobs"),
            Unit::Share.text(now),
            Unit::Share.text(before),
        ),
        protocol: None,
        address: "/ui/failures?range=1h".to_owned(),
        since: None,
        pause: None,
        remedy: None,
    })
}

fn slow_commits(recent: &RecentActivity) -> Option<Problem> {
    let p95 = recent.commits_p95.filter(|p95| *p95 > SLOW_COMMIT_S)?;
    Some(Problem {
        kind: ProblemKind::SlowDatabase,
        queue: None,
        shape: "waiting",
        text: format!(
            "The database is slow: p95 commit time was {} in the last minute",
            time::seconds(p95)
        ),
        protocol: None,
        address: "/ui/stats".to_owned(),
        since: None,
        pause: None,
        remedy: None,
    })
}

fn dead(problems: &mut Vec<Problem>, overview: &OverviewView, now: i64) {
    let named = overview.dead.iter().map(|row| {
        let since = row.oldest.as_ref().map_or(String::new(), |oldest| {
            let since = now.saturating_sub(oldest.state_time);
            format!(", the oldest dead for {}", time::span(since))
        });
        Problem {
            kind: ProblemKind::Dead,
            queue: Some(row.queue_ref.clone()),
            shape: "dead",
            text: format!(
                "{} in {}{since}",
                plural(row.size, "dead job", "dead jobs"),
                row.queue_ref.label()
            ),
            protocol: Some(row.queue_ref.protocol),
            address: urls::state(&row.queue_ref, EffectiveState::Dead),
            since: None,
            pause: None,
            remedy: Some(SuggestedAction::RequeueDead(
                row.queue_ref.clone(),
                row.size,
            )),
        }
    });
    problems.extend(named);
    let more = overview.dead_letters.saturating_sub(overview.dead.len());
    if more > 0 {
        let more = number_of(more);
        problems.push(Problem {
            kind: ProblemKind::Dead,
            queue: None,
            shape: "dead",
            text: format!("… and {}", plural(more, "more queue", "more queues")),
            protocol: None,
            address: "/ui/dead".to_owned(),
            since: None,
            pause: None,
            remedy: None,
        });
    }
}

fn no_workers(overview: &OverviewView, now: i64) -> Option<Problem> {
    // Ignores paused queues, and lmstfy and Relay queues, because their workers have no names.
    let waiting: i64 = overview
        .queues
        .iter()
        .filter(|queue| !queue.paused && queue.queue_ref.protocol == Protocol::Qless)
        .map(|queue| queue.counts.waiting)
        .sum();
    let alive = overview
        .workers
        .iter()
        .any(|worker| worker.activity(now) == WorkerActivity::Alive);
    (waiting > 0 && !alive).then(|| Problem {
        kind: ProblemKind::NoWorkers,
        queue: None,
        shape: "stalled",
        text: format!(
            "{}, but no qless worker has been active in the last minute",
            plural(waiting, "waiting job", "waiting jobs")
        ),
        protocol: None,
        address: "/ui/workers".to_owned(),
        since: None,
        pause: None,
        remedy: None,
    })
}

/// The icon of a kind of problem of queues.
fn icon_of(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Unclaimed => "stalled",
        ProblemKind::LongWait => "waiting",
        kind => kind.as_str(),
    }
}

fn per_queue(
    problems: &mut Vec<Problem>,
    queues: &[QueueRow],
    (kind, named): (ProblemKind, usize),
    list: EffectiveState,
    check: impl Fn(&QueueRow) -> Option<String>,
) {
    // Only the named ones become problems, because the others can be many thousands.
    let mut found = queues
        .iter()
        .filter_map(|queue| Some((queue, check(queue)?)));
    let of_queue = |(queue, text): (&QueueRow, String)| Problem {
        kind,
        queue: Some(queue.queue_ref.clone()),
        shape: icon_of(kind),
        text,
        protocol: Some(queue.queue_ref.protocol),
        address: urls::state(&queue.queue_ref, list),
        since: match kind {
            ProblemKind::Paused => queue
                .oldest_waiting
                .map(|since| ("oldest available", since)),
            ProblemKind::Unclaimed => queue.last_claim.map(|last| ("last claim", last)),
            _ => None,
        },
        pause: Some(&queue.pause)
            .filter(|pause| kind == ProblemKind::Paused && !pause.is_plain())
            .cloned(),
        remedy: (kind == ProblemKind::Paused)
            .then(|| SuggestedAction::ResumeQueue(queue.queue_ref.clone())),
    };
    problems.extend(found.by_ref().take(named).map(of_queue));
    let more = found.count();
    if more > 0 {
        problems.push(Problem {
            kind,
            queue: None,
            shape: icon_of(kind),
            text: format!(
                "… and {}",
                plural(number_of(more), "more queue", "more queues")
            ),
            protocol: None,
            address: format!("/ui/queues?sort={}", list.as_str()),
            since: None,
            pause: None,
            remedy: None,
        });
    }
}
