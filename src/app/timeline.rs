//! A job's life, drawn to scale from its history, and told beside it.

use leptos::prelude::*;

use super::icons::icon;
use super::parts::{exact_millis, queue_link, worker_link};
use super::payload::folded;
use super::visit::to;
use crate::api::views::{Api, Entry, Happening, JobRow, Life, Place, Stand};
use crate::time;

/// The width of the drawing, in its own units.
const WIDTH: f64 = 1000.0;

/// The least width at which a stretch can be seen.
const SEEN: f64 = 3.0;

/// A time that the job spent in one way.
#[derive(Clone, Debug, PartialEq)]
struct Stretch {
    how: Stand,
    from: i64,
    to: i64,
}

/// One row of the drawing: from a put, or the first moment of waiting after a try, to the end of the next try.
type Lane = Vec<Stretch>;

/// Cuts the history into attempts. What lasts still, lasts until `now`.
fn lanes(api: Api, stand: Stand, life: &Life, now: i64) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = vec![Vec::new()];
    // A word that somebody had to say changes nothing.
    let happened = life
        .history
        .iter()
        .filter(|entry| entry.what != Happening::Note);
    let happened: Vec<&Entry> = happened.collect();
    for (i, entry) in happened.iter().enumerate() {
        let next = happened.get(i + 1);
        let how = match (entry.what, next) {
            // How it stands now is known better than the history can tell.
            (_, None) => stand,
            (Happening::Popped, _) => Stand::Running,
            // It went on to the dead letter as soon as somebody looked.
            (Happening::TimedOut, Some(next)) if next.what == Happening::Died => continue,
            (Happening::TimedOut, _) if !api.has(Stand::Stalled) => Stand::Waiting,
            (Happening::TimedOut, _) => Stand::Stalled,
            (Happening::Failed, _) => Stand::Failed,
            (Happening::Done, _) => Stand::Complete,
            (Happening::Died, _) => Stand::Dead,
            (Happening::Created | Happening::Advanced | Happening::Event, _) => Stand::Record,
            (Happening::Put | Happening::Retried | Happening::Respawned | Happening::Note, _) => {
                Stand::Waiting
            }
        };
        let ends = matches!(
            entry.what,
            Happening::Put | Happening::Retried | Happening::TimedOut | Happening::Respawned
        );
        if ends
            && lanes
                .last()
                .is_some_and(|lane| lane.iter().any(|stretch| stretch.how == Stand::Running))
        {
            lanes.push(Vec::new());
        }
        // After its end a job only lies there; that says nothing about its life.
        let over = next.is_none() && matches!(how, Stand::Failed | Stand::Complete | Stand::Dead);
        if let (false, Some(lane)) = (over, lanes.last_mut()) {
            stretches(
                lane,
                how,
                entry.when,
                next.map_or(now, |next| next.when),
                life.ready,
            );
        }
    }
    lanes.retain(|lane| !lane.is_empty());
    lanes
}

/// A wait that begins before the job is due is a schedule first.
fn stretches(lane: &mut Lane, how: Stand, from: i64, to: i64, ready: i64) {
    let to = to.max(from);
    // A lost lease is noticed when the job is handed on, in the same moment.
    if how == Stand::Stalled && to == from {
        return;
    }
    if how == Stand::Waiting && ready > from && ready < to {
        lane.push(Stretch {
            how: Stand::Scheduled,
            from,
            to: ready,
        });
        lane.push(Stretch {
            how,
            from: ready,
            to,
        });
    } else {
        lane.push(Stretch { how, from, to });
    }
}

fn verb(how: Stand) -> &'static str {
    match how {
        Stand::Waiting => "waited",
        Stand::Scheduled => "scheduled for",
        Stand::Depends => "waited for dependencies for",
        Stand::Running => "ran",
        Stand::Stalled => "stalled for",
        Stand::Failed => "failed for",
        Stand::Complete => "complete for",
        Stand::Dead => "dead for",
        Stand::Record => "recorded for",
    }
}

fn told(lane: &Lane) -> String {
    lane.iter()
        .map(|stretch| {
            format!(
                "{} {}",
                verb(stretch.how),
                time::span(stretch.to - stretch.from)
            )
        })
        .collect::<Vec<_>>()
        .join(" · ")
}

/// Drawing and list.
pub fn timeline(job: &JobRow, life: &Life, now: i64) -> AnyView {
    let lanes = lanes(job.place.api, job.stand, life, now);
    let start = life
        .history
        .first()
        .map_or(life.created, |entry| entry.when);
    let end = lanes
        .iter()
        .flatten()
        .map(|stretch| stretch.to)
        .max()
        .unwrap_or(now);
    let whole = (end - start).max(1);
    let rows = lanes.iter().enumerate().map(|(i, lane)| {
        view! {
            <li>
                <span class="lane-name">{format!("Attempt {}", i + 1)}</span>
                {drawing(lane, start, whole)}
                <span class="lane-told">{told(lane)}</span>
            </li>
        }
    });
    view! {
        {(!lanes.is_empty())
            .then(|| {
                view! {
                    <ol class="lanes">{rows.collect_view()}</ol>
                    <p class="scale">
                        <span>{time::utc(start)}</span>
                        <span>{format!("{} total", time::span(end - start))}</span>
                        <span>{time::utc(end)}</span>
                    </p>
                }
            })}
        {events(&job.place, &life.history)}
    }
    .into_any()
}

fn drawing(lane: &Lane, start: i64, whole: i64) -> AnyView {
    let scale = |span: i64| span as f64 / whole as f64 * WIDTH;
    let rects = lane.iter().map(|stretch| {
        let width = scale(stretch.to - stretch.from).max(SEEN);
        let x = scale(stretch.from - start).min(WIDTH - width);
        view! {
            <rect class=format!("s-{}", stretch.how.as_str()) x=format!("{x:.1}") width=format!("{width:.1}") height="14" />
        }
    });
    view! {
        <svg class="lane" viewBox="0 0 1000 14" preserveAspectRatio="none" aria-hidden="true">
            {rects.collect_view()}
        </svg>
    }
    .into_any()
}

/// What happened, in a list: when, how long after the one before, and what.
pub fn events(place: &Place, history: &[Entry]) -> AnyView {
    let mut before: Option<i64> = None;
    let entries = history
        .iter()
        .map(|entry| {
            let gap = before.map(|before| format!("+{}", time::span(entry.when - before)));
            before = Some(entry.when);
            view! {
                <li class=(entry.what == Happening::Note).then_some("noted")>
                    {exact_millis(entry.when)}
                    <span class="gap">{gap}</span>
                    <div class="what">{line(entry, place)}</div>
                </li>
            }
        })
        .collect_view();
    view! { <ol class="events" aria-label="History">{entries}</ol> }.into_any()
}

/// What happened to a job that is at `place` now, in words.
pub fn line(entry: &Entry, place: &Place) -> AnyView {
    let subject = entry.subject.as_deref();
    let group = |group: &str| {
        view! { <a class="name" href=to::failure(group)>{group.to_owned()}</a> }.into_any()
    };
    match entry.what {
        Happening::Put => {
            let queue = subject.map(|name| Place {
                name: name.to_owned(),
                ..place.clone()
            });
            let word = match place.api {
                Api::Qless => "added to ",
                Api::Lmstfy => "published to ",
                Api::Relay => "enqueued in ",
                Api::Jobq => "created in ",
            };
            view! { {word} {queue.as_ref().map(queue_link)} }.into_any()
        }
        Happening::Popped => match subject.filter(|worker| !worker.is_empty()) {
            Some(worker) => view! { "claimed by " {worker_link(worker)} }.into_any(),
            None if place.api == Api::Relay => "run started".into_any(),
            None => "claimed by a consumer".into_any(),
        },
        Happening::TimedOut if place.api == Api::Lmstfy => {
            "time to run (TTR) ended without an acknowledgment".into_any()
        }
        Happening::TimedOut if place.api == Api::Relay => {
            "timed out without a heartbeat".into_any()
        }
        Happening::TimedOut => "lease expired".into_any(),
        Happening::Retried => match subject {
            Some(subject) => view! { "retried by the worker after " {group(subject)} }.into_any(),
            None => "retried by the worker".into_any(),
        },
        Happening::Failed => view! { "failed: " {subject.map(group)} }.into_any(),
        Happening::Done => "completed".into_any(),
        Happening::Died if place.api == Api::Relay => "dead-lettered: no retries left".into_any(),
        Happening::Respawned if place.api == Api::Relay => "requeued".into_any(),
        Happening::Died => "dead-lettered: no tries left".into_any(),
        Happening::Respawned => "respawned".into_any(),
        Happening::Created => "created".into_any(),
        Happening::Advanced => view! {
            "state: " {subject.map(folded)} " → " {entry.detail.as_deref().map(folded)}
        }
        .into_any(),
        Happening::Event => view! { "event: " {entry.detail.as_deref().map(folded)} }.into_any(),
        Happening::Note => view! {
            {icon("note")}
            <span class="unseen">"note: "</span>
            <span class="said">{subject.unwrap_or_default().to_owned()}</span>
            {entry.detail.clone().map(|more| view! { <code class="said-more">{more}</code> })}
        }
        .into_any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(stand: Stand, ready: i64, history: &[(Happening, i64)], now: i64) -> Shape {
        let entry = |(what, when): &(Happening, i64)| Entry {
            what: *what,
            when: *when,
            subject: None,
            detail: None,
        };
        let life = Life {
            created: 0,
            since: 0,
            ready,
            expires: None,
            history: history.iter().map(entry).collect(),
        };
        let told = |lane: &Lane| lane.iter().map(|s| (s.how, s.from, s.to)).collect();
        // Only what lies stalled depends on the API.
        lanes(Api::Lmstfy, stand, &life, now)
            .iter()
            .map(told)
            .collect()
    }

    type Shape = Vec<Vec<(Stand, i64, i64)>>;

    #[test]
    fn every_attempt_has_a_lane() {
        use Happening::{Done, Popped, Put, Retried};
        let history = [
            (Put, 0),
            (Popped, 5),
            (Retried, 9),
            (Popped, 12),
            (Done, 20),
        ];
        assert_eq!(
            shape(Stand::Complete, 0, &history, 1000),
            [
                vec![(Stand::Waiting, 0, 5), (Stand::Running, 5, 9)],
                vec![(Stand::Waiting, 9, 12), (Stand::Running, 12, 20)],
            ]
        );
    }

    #[test]
    fn a_job_that_died_lies_there_and_begins_anew_when_it_is_respawned() {
        use Happening::{Died, Popped, Put, Respawned, TimedOut};
        let mut history = vec![(Put, 0), (Popped, 5), (TimedOut, 9), (Died, 9)];
        let ran = vec![(Stand::Waiting, 0, 5), (Stand::Running, 5, 9)];
        assert_eq!(shape(Stand::Dead, 0, &history, 50), vec![ran.clone()]);
        history.push((Respawned, 30));
        let died = [ran, vec![(Stand::Dead, 9, 30)]].concat();
        assert_eq!(
            shape(Stand::Waiting, 30, &history, 50),
            [died, vec![(Stand::Waiting, 30, 50)]]
        );
    }

    #[test]
    fn what_lasts_still_lasts_until_now() {
        use Happening::{Popped, Put};
        assert_eq!(
            shape(Stand::Running, 0, &[(Put, 0), (Popped, 5)], 30),
            [vec![(Stand::Waiting, 0, 5), (Stand::Running, 5, 30)]]
        );
        assert_eq!(
            shape(Stand::Waiting, 10, &[(Put, 0)], 30),
            [vec![(Stand::Scheduled, 0, 10), (Stand::Waiting, 10, 30)]]
        );
        assert_eq!(
            shape(Stand::Depends, 0, &[(Put, 0)], 30),
            [vec![(Stand::Depends, 0, 30)]]
        );
    }

    #[test]
    fn a_note_changes_nothing() {
        use Happening::{Note, Popped, Put};
        let history = [(Put, 0), (Note, 2), (Popped, 5), (Note, 9)];
        assert_eq!(
            shape(Stand::Running, 0, &history, 30),
            [vec![(Stand::Waiting, 0, 5), (Stand::Running, 5, 30)]]
        );
    }

    #[test]
    fn clocks_that_disagree_make_no_negative_times() {
        use Happening::{Popped, Put};
        let lanes = shape(Stand::Running, 0, &[(Put, 10), (Popped, 5)], 0);
        assert!(lanes.iter().flatten().all(|(_, from, to)| to >= from));
    }
}
