//! A job's life, drawn to scale from its history, and told beside it.

use leptos::prelude::*;

use super::icons::icon;
use super::parts::{queue_link, worker_link};
use super::time;
use super::visit::to;
use crate::api::views::{Entry, Happening, JobView, Stand};

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
fn lanes(job: &JobView, now: i64) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = vec![Vec::new()];
    // A word that somebody had to say changes nothing.
    let happened = job
        .history
        .iter()
        .filter(|entry| entry.what != Happening::Note);
    let happened: Vec<&Entry> = happened.collect();
    for (i, entry) in happened.iter().enumerate() {
        let next = happened.get(i + 1);
        let how = match (entry.what, next) {
            // How it stands now is known better than the history can tell.
            (_, None) => job.row.stand,
            (Happening::Popped, _) => Stand::Running,
            (Happening::TimedOut, _) => Stand::Stalled,
            (Happening::Failed, _) => Stand::Failed,
            (Happening::Done, _) => Stand::Complete,
            (Happening::Put | Happening::Retried | Happening::Note, _) => Stand::Waiting,
        };
        let ends = matches!(
            entry.what,
            Happening::Put | Happening::Retried | Happening::TimedOut
        );
        if ends
            && lanes
                .last()
                .is_some_and(|lane| lane.iter().any(|stretch| stretch.how == Stand::Running))
        {
            lanes.push(Vec::new());
        }
        // After its end a job only lies there; that says nothing about its life.
        let over = next.is_none() && matches!(how, Stand::Failed | Stand::Complete);
        if let (false, Some(lane)) = (over, lanes.last_mut()) {
            stretches(
                lane,
                how,
                entry.when,
                next.map_or(now, |next| next.when),
                job.ready,
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
        Stand::Scheduled => "was scheduled for",
        Stand::Depends => "waited for others for",
        Stand::Running => "ran",
        Stand::Stalled => "lay stalled for",
        Stand::Failed => "lay failed for",
        Stand::Complete => "lay complete for",
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
pub fn timeline(job: &JobView, now: i64) -> AnyView {
    let lanes = lanes(job, now);
    let start = job.history.first().map_or(job.created, |entry| entry.when);
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
                        <span>{format!("{} in all", time::span(end - start))}</span>
                        <span>{time::utc(end)}</span>
                    </p>
                }
            })}
        <ol class="events" aria-label="History">{entries(job)}</ol>
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

fn entries(job: &JobView) -> AnyView {
    let mut before: Option<i64> = None;
    job.history
        .iter()
        .map(|entry| {
            let gap = before.map(|before| format!("+{}", time::span(entry.when - before)));
            before = Some(entry.when);
            view! {
                <li class=(entry.what == Happening::Note).then_some("noted")>
                    <time datetime=time::iso(entry.when)>{time::utc_millis(entry.when)}</time>
                    <span class="gap">{gap}</span>
                    <span class="what">{line(entry)}</span>
                </li>
            }
        })
        .collect_view()
        .into_any()
}

/// What happened, in words.
pub fn line(entry: &Entry) -> AnyView {
    let subject = entry.subject.as_deref();
    let group = |group: &str| {
        view! { <a class="name" href=to::failure(group)>{group.to_owned()}</a> }.into_any()
    };
    match entry.what {
        Happening::Put => view! { "put into " {subject.map(queue_link)} }.into_any(),
        Happening::Popped => view! { "taken by " {subject.map(worker_link)} }.into_any(),
        Happening::TimedOut => "lease lost".into_any(),
        Happening::Retried => match subject {
            Some(subject) => view! { "given back after " {group(subject)} }.into_any(),
            None => "given back to be tried again".into_any(),
        },
        Happening::Failed => view! { "failed: " {subject.map(group)} }.into_any(),
        Happening::Done => "completed".into_any(),
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
    use crate::api::views::{JobRow, Relatives};

    fn job(stand: Stand, ready: i64, history: &[(Happening, i64)]) -> JobView {
        let entry = |(what, when): &(Happening, i64)| Entry {
            what: *what,
            when: *when,
            subject: None,
            detail: None,
        };
        JobView {
            row: JobRow {
                id: "j".to_owned(),
                queue: "q".to_owned(),
                klass: None,
                stand,
                priority: 0.0,
                retries: 5,
                remaining: 5,
                tags: Vec::new(),
                worker: None,
                when: 0,
                glimpse: String::new(),
                failure: None,
                waits_for: 0,
            },
            tracked: false,
            origin: None,
            created: 0,
            since: 0,
            ready,
            expires: None,
            history: history.iter().map(entry).collect(),
            body: String::new(),
            dependencies: Relatives::default(),
            dependents: Relatives::default(),
        }
    }

    fn shape(lanes: &[Lane]) -> Vec<Vec<(Stand, i64, i64)>> {
        lanes
            .iter()
            .map(|lane| lane.iter().map(|s| (s.how, s.from, s.to)).collect())
            .collect()
    }

    #[test]
    fn every_attempt_has_a_lane() {
        use Happening::{Done, Popped, Put, Retried};
        let job = job(
            Stand::Complete,
            0,
            &[
                (Put, 0),
                (Popped, 5),
                (Retried, 9),
                (Popped, 12),
                (Done, 20),
            ],
        );
        assert_eq!(
            shape(&lanes(&job, 1000)),
            [
                vec![(Stand::Waiting, 0, 5), (Stand::Running, 5, 9)],
                vec![(Stand::Waiting, 9, 12), (Stand::Running, 12, 20)],
            ]
        );
    }

    #[test]
    fn what_lasts_still_lasts_until_now() {
        use Happening::{Popped, Put};
        let running = job(Stand::Running, 0, &[(Put, 0), (Popped, 5)]);
        assert_eq!(
            shape(&lanes(&running, 30)),
            [vec![(Stand::Waiting, 0, 5), (Stand::Running, 5, 30)]]
        );
        let due = job(Stand::Waiting, 10, &[(Put, 0)]);
        assert_eq!(
            shape(&lanes(&due, 30)),
            [vec![(Stand::Scheduled, 0, 10), (Stand::Waiting, 10, 30)]]
        );
        let depending = job(Stand::Depends, 0, &[(Put, 0)]);
        assert_eq!(
            shape(&lanes(&depending, 30)),
            [vec![(Stand::Depends, 0, 30)]]
        );
    }

    #[test]
    fn a_note_changes_nothing() {
        use Happening::{Note, Popped, Put};
        let noted = job(
            Stand::Running,
            0,
            &[(Put, 0), (Note, 2), (Popped, 5), (Note, 9)],
        );
        assert_eq!(
            shape(&lanes(&noted, 30)),
            [vec![(Stand::Waiting, 0, 5), (Stand::Running, 5, 30)]]
        );
    }

    #[test]
    fn clocks_that_disagree_make_no_negative_times() {
        use Happening::{Popped, Put};
        let job = job(Stand::Running, 0, &[(Put, 10), (Popped, 5)]);
        assert!(
            lanes(&job, 0)
                .iter()
                .flatten()
                .all(|stretch| stretch.to >= stretch.from)
        );
    }
}
