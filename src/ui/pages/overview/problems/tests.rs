use super::*;
use crate::ui::model::failure::GroupRow;
use crate::ui::model::queue::{PauseDetails, QueueRow};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::series::RecentActivity;
use crate::ui::model::series::Span;
use crate::ui::model::state::Counts;
use crate::ui::model::worker::WorkerRow;
use crate::ui::pages::dead_letters::model::DeadRow;
use crate::ui::pages::overview::model::OverviewView;

fn overview(queues: Vec<QueueRow>, workers: Vec<WorkerRow>) -> OverviewView {
    OverviewView {
        queues,
        totals: vec![],
        groups: vec![],
        failures: None,
        workers,
        dead: vec![],
        dead_letters: 0,
        recent: RecentActivity::default(),
    }
}

fn worker(last_seen: i64) -> WorkerRow {
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
    let overview = overview(
        vec![QueueRow::sample("mail", counts, Some(0))],
        vec![worker(0)],
    );
    assert_eq!(problems(&overview, 1_000_000), []);
}

#[test]
fn waiting_without_workers_is_the_first_problem() {
    let counts = Counts {
        waiting: 3,
        stalled: 1,
        ..Counts::default()
    };
    let overview = overview(vec![QueueRow::sample("mail", counts, Some(0))], vec![]);
    let found = problems(&overview, 1_000_000);
    assert_eq!(
        found[0].text,
        "3 waiting jobs, but no qless worker has been active in the last minute"
    );
    assert_eq!(found[1].text, "1 job stalled in mail");
    assert_eq!(found[1].address, "/ui/queues/mail/stalled");
}

#[test]
fn a_paused_queue_with_waiting_jobs_is_one_problem() {
    let counts = Counts {
        waiting: 2,
        ..Counts::default()
    };
    let paused = |counts, since| QueueRow {
        paused: true,
        ..QueueRow::sample("mail", counts, since)
    };
    let found = |queue| problems(&overview(vec![queue], vec![]), 2 * LONG_US);
    let some = found(paused(counts, Some(0)));
    assert_eq!(some.len(), 1);
    assert_eq!(some[0].text, "mail is paused with 2 jobs waiting");
    assert_eq!(
        some[0].remedy,
        Some(SuggestedAction::ResumeQueue(QueueRef::qless("mail")))
    );
    assert_eq!(some[0].pause, None);
    assert_eq!(found(paused(Counts::default(), None)), []);
    let pause = PauseDetails {
        reason: "the printer is broken".into(),
        by: "ada".into(),
        ..PauseDetails::default()
    };
    let with_reason = found(QueueRow {
        pause: pause.clone(),
        ..paused(counts, Some(0))
    });
    assert_eq!(with_reason[0].pause, Some(pause));
}

#[test]
fn a_jump_of_the_failure_rate_and_slow_commits_are_problems() {
    let span = |completed, failed| Span {
        completed,
        failed,
        ..Span::default()
    };
    let found = |now, before, commits_p95| {
        let recent = RecentActivity {
            now,
            before,
            commits_p95,
            ..RecentActivity::default()
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
fn a_single_failed_group_can_be_retried() {
    let group = |name: &str, first| GroupRow {
        group: name.to_owned(),
        count: 2,
        first: Some(first),
        last: Some(9),
        message: None,
        muted: None,
    };
    let mut overview = overview(vec![], vec![]);
    overview.groups = vec![group("a", 7)];
    let found = problems(&overview, 0).remove(0);
    assert_eq!(found.since, Some(("first", 7)));
    assert_eq!(
        found.remedy,
        Some(SuggestedAction::RetryGroup(group("a", 7)))
    );
    overview.groups.push(group("b", 5));
    let found = problems(&overview, 0).remove(0);
    assert_eq!((found.since, found.remedy), (Some(("first", 5)), None));
}

#[test]
fn further_dead_letters_are_summarized() {
    let waiting = Counts {
        waiting: 1,
        dead: 7,
        ..Counts::default()
    };
    let queue_ref = QueueRef::lmstfy("shop", "mail");
    let queue = QueueRow {
        queue_ref: queue_ref.clone(),
        ..QueueRow::sample("", waiting, Some(0))
    };
    let mut overview = overview(vec![queue], vec![]);
    overview.dead_letters = 3;
    overview.dead = vec![DeadRow {
        queue_ref: queue_ref.clone(),
        size: 7,
        oldest: None,
    }];
    let found = problems(&overview, 0);
    assert_eq!(
        found.len(),
        2,
        "lmstfy consumers have no names, so no problem reports their absence"
    );
    assert_eq!(found[0].text, "7 dead jobs in shop/mail");
    assert_eq!(found[0].address, "/ui/lmstfy/shop/mail/dead");
    assert_eq!(
        found[0].remedy,
        Some(SuggestedAction::RequeueDead(queue_ref, 7))
    );
    assert_eq!(found[1].text, "… and 2 more queues");
}

#[test]
fn many_queues_with_the_same_problem_are_summarized() {
    let counts = Counts {
        stalled: 1,
        ..Counts::default()
    };
    let queues = (0..10)
        .map(|i| QueueRow::sample(&format!("q{i}"), counts, None))
        .collect();
    let found = problems(&overview(queues, vec![]), 0);
    assert_eq!(found.len(), NAMED_MAX + 1);
    assert_eq!(found[NAMED_MAX].text, "… and 7 more queues");
}

#[test]
fn a_queue_from_which_no_worker_claims_is_a_problem_after_two_minutes() {
    let waiting = Counts {
        waiting: 2,
        ..Counts::default()
    };
    let queue = QueueRow {
        queue_ref: QueueRef::lmstfy("shop", "mail"),
        last_claim: Some(0),
        ..QueueRow::sample("", waiting, Some(0))
    };
    let found = |now| problems(&overview(vec![queue.clone()], vec![]), now);
    assert_eq!(found(120_000_000), []);
    // Later, too, the row about long waits would only repeat it.
    for now in [120_000_001, 2 * LONG_US] {
        let found = found(now);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            found[0].text,
            "shop/mail has 2 waiting jobs, but no worker claims from this queue"
        );
        assert_eq!(
            (found[0].shape, found[0].since),
            ("stalled", Some(("last claim", 0)))
        );
    }
    assert!(has_problem(&queue, 120_000_001) && !has_problem(&queue, 1));
}
