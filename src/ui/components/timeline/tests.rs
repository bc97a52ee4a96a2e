//! The attempts of a job, and what is shown of a long history.

use super::*;
use crate::ui::model::job::Entry;
use crate::ui::model::job::EventKind;
use crate::ui::model::job::JobTimes;
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::state::EffectiveState;

#[test]
fn the_first_and_the_newest_199_events_and_the_newest_20_attempts_are_shown() {
    let queue_ref = QueueRef::qless("q");
    for (count, listed, attempts) in [
        (200, 200, 20),
        (201, 200, 20),
        (10_000, 200, 20),
        (30, 30, 16),
    ] {
        let entry = |n: i64| Entry {
            what: if n % 2 == 0 {
                EventKind::Popped
            } else {
                EventKind::Retried
            },
            when: n,
            subject: None,
            detail: None,
            message: None,
        };
        let history: Vec<Entry> = (0..count).map(entry).collect();
        let html = events(&queue_ref, &history).to_html();
        assert_eq!(html.matches("<li").count(), listed, "{count}");
        assert_eq!(html.contains("Showing the first"), count > 200, "{count}");
        let times = JobTimes {
            created: 0,
            state_since: 0,
            available_at: 0,
            expires: None,
            history,
        };
        let all = super::attempts(Protocol::Qless, EffectiveState::Waiting, &times, count);
        assert_eq!(all.len().min(ATTEMPTS_SHOWN), attempts, "{count}");
    }
}

fn shape(
    state: EffectiveState,
    available_at: i64,
    history: &[(EventKind, i64)],
    now: i64,
) -> Shape {
    let entry = |(what, when): &(EventKind, i64)| Entry {
        what: *what,
        when: *when,
        subject: None,
        detail: None,
        message: None,
    };
    let times = JobTimes {
        created: 0,
        state_since: 0,
        available_at,
        expires: None,
        history: history.iter().map(entry).collect(),
    };
    let description = |attempt: &Attempt| attempt.iter().map(|s| (s.state, s.from, s.to)).collect();
    // Only the stalled period depends on the protocol.
    attempts(Protocol::Lmstfy, state, &times, now)
        .iter()
        .map(description)
        .collect()
}

type Shape = Vec<Vec<(EffectiveState, i64, i64)>>;

#[test]
fn every_attempt_has_a_row() {
    use EventKind::{Done, Popped, Put, Retried};
    let history = [
        (Put, 0),
        (Popped, 5),
        (Retried, 9),
        (Popped, 12),
        (Done, 20),
    ];
    assert_eq!(
        shape(EffectiveState::Complete, 0, &history, 1000),
        [
            vec![
                (EffectiveState::Waiting, 0, 5),
                (EffectiveState::Running, 5, 9)
            ],
            vec![
                (EffectiveState::Waiting, 9, 12),
                (EffectiveState::Running, 12, 20)
            ],
        ]
    );
}

#[test]
fn the_timeline_shows_dead_letter_and_respawn() {
    use EventKind::{DeadLettered, Popped, Put, Respawned, TimedOut};
    let mut history = vec![(Put, 0), (Popped, 5), (TimedOut, 9), (DeadLettered, 9)];
    let ran = vec![
        (EffectiveState::Waiting, 0, 5),
        (EffectiveState::Running, 5, 9),
    ];
    assert_eq!(
        shape(EffectiveState::Dead, 0, &history, 50),
        vec![ran.clone()]
    );
    history.push((Respawned, 30));
    let dead = [ran, vec![(EffectiveState::Dead, 9, 30)]].concat();
    assert_eq!(
        shape(EffectiveState::Waiting, 30, &history, 50),
        [dead, vec![(EffectiveState::Waiting, 30, 50)]]
    );
}

#[test]
fn periods_in_progress_end_now() {
    use EventKind::{Popped, Put};
    assert_eq!(
        shape(EffectiveState::Running, 0, &[(Put, 0), (Popped, 5)], 30),
        [vec![
            (EffectiveState::Waiting, 0, 5),
            (EffectiveState::Running, 5, 30)
        ]]
    );
    assert_eq!(
        shape(EffectiveState::Waiting, 10, &[(Put, 0)], 30),
        [vec![
            (EffectiveState::Scheduled, 0, 10),
            (EffectiveState::Waiting, 10, 30)
        ]]
    );
    assert_eq!(
        shape(EffectiveState::Depends, 0, &[(Put, 0)], 30),
        [vec![(EffectiveState::Depends, 0, 30)]]
    );
}

#[test]
fn a_note_does_not_change_the_state() {
    use EventKind::{Note, Popped, Put};
    let history = [(Put, 0), (Note, 2), (Popped, 5), (Note, 9)];
    assert_eq!(
        shape(EffectiveState::Running, 0, &history, 30),
        [vec![
            (EffectiveState::Waiting, 0, 5),
            (EffectiveState::Running, 5, 30)
        ]]
    );
}

#[test]
fn a_stalled_job_ran_until_its_lease_ended() {
    let entry = |what, when| Entry {
        what,
        when,
        subject: None,
        detail: None,
        message: None,
    };
    let times = JobTimes {
        created: 0,
        state_since: 5,
        available_at: 0,
        expires: Some(95),
        history: vec![entry(EventKind::Put, 0), entry(EventKind::Popped, 5)],
    };
    let found = attempts(Protocol::Qless, EffectiveState::Stalled, &times, 96);
    let found: Vec<_> = found[0].iter().map(|s| (s.state, s.from, s.to)).collect();
    assert_eq!(
        found,
        [
            (EffectiveState::Waiting, 0, 5),
            (EffectiveState::Running, 5, 95),
            (EffectiveState::Stalled, 95, 96),
        ]
    );
}

#[test]
fn clocks_that_disagree_make_no_negative_times() {
    use EventKind::{Popped, Put};
    let attempts = shape(EffectiveState::Running, 0, &[(Put, 10), (Popped, 5)], 0);
    assert!(attempts.iter().flatten().all(|(_, from, to)| to >= from));
}
