//! The timeline of a job, drawn to scale from its history, and the history as a list.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::basics::number_of;
use crate::ui::components::icons::icon;
use crate::ui::components::links::{queue_link, worker_link};
use crate::ui::components::payload::{FormatBudget, collapsed};
use crate::ui::components::state::color;
use crate::ui::components::time::exact_millis;
use crate::ui::model::job::{Entry, EventKind, JobRow, JobTimes};
use crate::ui::model::queue_ref::{Protocol, QueueRef};
use crate::ui::model::state::EffectiveState;
use crate::ui::urls;

/// The width of the drawing, in SVG units.
const WIDTH: f64 = 1000.0;

/// Minimum width of a period, so that it is visible.
const WIDTH_MIN: f64 = 3.0;

/// Attempts that are drawn, and periods of each: the newest ones.
const ATTEMPTS_SHOWN: usize = 20;

const PERIODS_SHOWN: usize = 50;

/// Events that are listed: the first one and the newest ones.
const EVENTS_SHOWN: usize = 200;

/// A note among the events.
const NOTE: &str = "grid grid-cols-[16px_minmax(0,1fr)] gap-x-2 gap-y-1 rounded-md bg-page px-2.5 py-1 [&>svg]:mt-0.5 [&>svg]:text-muted";

/// A period of the timeline.
#[derive(Clone, Debug, PartialEq)]
struct Period {
    state: EffectiveState,
    from: i64,
    to: i64,
}

/// One row of the drawing, an attempt: from the put, or from the end of the previous attempt, to the end of this one.
type Attempt = Vec<Period>;

/// Splits the history into attempts. The last period ends at `now`.
fn attempts(
    protocol: Protocol,
    current: EffectiveState,
    times: &JobTimes,
    now: i64,
) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = vec![Vec::new()];
    // A note does not change the state.
    let happened = times
        .history
        .iter()
        .filter(|entry| entry.what != EventKind::Note);
    let happened: Vec<&Entry> = happened.collect();
    // Of the last attempt: whether the job ran, in the periods that were looked at.
    let (mut has_run, mut seen) = (false, 0);
    for (i, entry) in happened.iter().enumerate() {
        let next = happened.get(i + 1);
        let Some(state) = state_after(entry, next, protocol, current) else {
            continue;
        };
        let ends_attempt = matches!(
            entry.what,
            EventKind::Put | EventKind::Retried | EventKind::TimedOut | EventKind::Respawned
        );
        if ends_attempt {
            let periods = attempts.last().map(Vec::as_slice).unwrap_or_default();
            let mut new = periods.iter().skip(seen);
            has_run |= new.any(|period| period.state == EffectiveState::Running);
            seen = periods.len();
            if std::mem::take(&mut has_run) {
                attempts.push(Vec::new());
                seen = 0;
            }
        }
        // The time after the end of a job is not drawn.
        let over = next.is_none()
            && matches!(
                state,
                EffectiveState::Failed | EffectiveState::Complete | EffectiveState::Dead
            );
        if let (false, Some(attempt)) = (over, attempts.last_mut()) {
            let mut from = entry.when;
            // The job ran until its lease ended.
            if let (EventKind::Popped, EffectiveState::Stalled, Some(end)) =
                (entry.what, state, times.expires)
            {
                let end = end.clamp(from, now.max(from));
                add_periods(
                    attempt,
                    EffectiveState::Running,
                    from,
                    end,
                    times.available_at,
                );
                from = end;
            }
            let to = next.map_or(now, |next| next.when);
            add_periods(attempt, state, from, to, times.available_at);
        }
    }
    attempts.retain(|attempt| !attempt.is_empty());
    attempts
}

/// The state of the job after an event, until the next one; `None` if no period begins with the event.
fn state_after(
    entry: &Entry,
    next: Option<&&Entry>,
    protocol: Protocol,
    current: EffectiveState,
) -> Option<EffectiveState> {
    Some(match (entry.what, next) {
        // The current state is more reliable than the history.
        (_, None) => current,
        (EventKind::Popped, _) => EffectiveState::Running,
        // When a lease expires, the next claim or maintenance dead-letters the job at once.
        (EventKind::TimedOut, Some(next)) if next.what == EventKind::DeadLettered => return None,
        (EventKind::TimedOut, _) if !protocol.has(EffectiveState::Stalled) => {
            EffectiveState::Waiting
        }
        (EventKind::TimedOut, _) => EffectiveState::Stalled,
        (EventKind::Failed, _) => EffectiveState::Failed,
        (EventKind::Done, _) => EffectiveState::Complete,
        (EventKind::DeadLettered, _) => EffectiveState::Dead,
        (EventKind::Created | EventKind::Advanced | EventKind::Event, _) => EffectiveState::Record,
        (EventKind::Put | EventKind::Retried | EventKind::Respawned | EventKind::Note, _) => {
            EffectiveState::Waiting
        }
    })
}

/// Adds a period. If the job waits before it is due, the part before that is a scheduled period.
fn add_periods(
    attempt: &mut Attempt,
    state: EffectiveState,
    from: i64,
    to: i64,
    available_at: i64,
) {
    let to = to.max(from);
    // An expired lease is detected when the job is claimed again, so the stalled period has length 0.
    if state == EffectiveState::Stalled && to == from {
        return;
    }
    if state == EffectiveState::Waiting && available_at > from && available_at < to {
        attempt.push(Period {
            state: EffectiveState::Scheduled,
            from,
            to: available_at,
        });
        attempt.push(Period {
            state,
            from: available_at,
            to,
        });
    } else {
        attempt.push(Period { state, from, to });
    }
}

fn verb(state: EffectiveState) -> &'static str {
    match state {
        EffectiveState::Waiting => "waited",
        EffectiveState::Scheduled => "scheduled for",
        EffectiveState::Depends => "waited for dependencies for",
        EffectiveState::Running => "ran",
        EffectiveState::Stalled => "stalled for",
        EffectiveState::Failed => "failed for",
        EffectiveState::Complete => "complete for",
        EffectiveState::Dead => "dead for",
        EffectiveState::Record => "unchanged for",
    }
}

fn description(attempt: &[Period]) -> String {
    attempt
        .iter()
        .map(|period| {
            format!(
                "{} {}",
                verb(period.state),
                time::span(period.to - period.from)
            )
        })
        .collect::<Vec<_>>()
        .join(" · ")
}

/// The drawing and the list of events.
pub fn timeline(job: &JobRow, times: &JobTimes, now: i64) -> AnyView {
    let attempts = attempts(job.queue_ref.protocol, job.state, times, now);
    let start = times
        .history
        .first()
        .map_or(times.created, |entry| entry.when);
    let end = attempts
        .iter()
        .flatten()
        .map(|period| period.to)
        .max()
        .unwrap_or(now);
    let whole = (end - start).max(1);
    let earlier = attempts.len().saturating_sub(ATTEMPTS_SHOWN);
    let rows = attempts
        .iter()
        .enumerate()
        .skip(earlier)
        .map(|(i, attempt)| {
            let attempt = attempt
                .get(attempt.len().saturating_sub(PERIODS_SHOWN)..)
                .unwrap_or_default();
            view! {
                <li>
                    <span>{format!("Attempt {}", i + 1)}</span>
                    {drawing(attempt, start, whole)}
                    <span>{description(attempt)}</span>
                </li>
            }
        });
    view! {
        {(!attempts.is_empty())
            .then(|| {
                let earlier = (earlier > 0).then(|| format!("Showing the newest {ATTEMPTS_SHOWN} of {} attempts.", time::number(number_of(attempts.len()))));
                view! {
                    {earlier.map(|note| view! { <p class="text-muted wrap-anywhere">{note}</p> })}
                    <ol class="*:grid *:grid-cols-[80px_minmax(0,1fr)_minmax(0,280px)] *:items-center *:gap-3 *:py-0.75 *:text-sm max-sm:*:grid-cols-1 max-sm:*:gap-0.5 [&_span]:text-muted">{rows.collect_view()}</ol>
                    <p class="mb-3 flex flex-wrap justify-between gap-x-3 py-1 pr-73 pl-23 text-xs text-muted max-sm:px-0 max-sm:pb-0">
                        <span>{time::utc(start)}</span>
                        <span>{format!("{} total", time::span(end - start))}</span>
                        <span>{time::utc(end)}</span>
                    </p>
                }
            })}
        {events(&job.queue_ref, &times.history)}
    }
    .into_any()
}

fn drawing(attempt: &[Period], start: i64, whole: i64) -> AnyView {
    let scale = |span: i64| span as f64 / whole as f64 * WIDTH;
    let rects = attempt.iter().map(|period| {
        let width = scale(period.to - period.from).max(WIDTH_MIN);
        let x = scale(period.from - start).min(WIDTH - width);
        view! {
            <rect class=color(period.state) x=format!("{x:.1}") width=format!("{width:.1}") height="14" />
        }
    });
    view! {
        <svg class="block h-3.5 w-full rounded-[3px] bg-page fill-current" viewBox="0 0 1000 14" preserveAspectRatio="none" aria-hidden="true">
            {rects.collect_view()}
        </svg>
    }
    .into_any()
}

/// The history as a list: the time, the time since the previous event, and the event. Of a long one, the first event
/// and the newest ones.
pub fn events(queue_ref: &QueueRef, history: &[Entry]) -> AnyView {
    let budget = FormatBudget::default();
    let omitted = history.len().saturating_sub(EVENTS_SHOWN);
    let note = (omitted > 0).then(|| {
        let (shown, all) = (EVENTS_SHOWN - 1, time::number(number_of(history.len())));
        view! { <p class="text-muted wrap-anywhere">{format!("Showing the first and the newest {shown} of {all} events. The API returns all of them.")}</p> }
    });
    let first = history.first().map(|first| (first, None)).into_iter();
    let newest = history.iter().skip(1 + omitted);
    let newest = newest.zip(history.iter().skip(omitted).map(Some));
    let entries = first
        .chain(newest)
        .map(|(entry, before)| {
            let gap = before.map(|before| format!("+{}", time::span(entry.when - before.when)));
            view! {
                <li>
                    {exact_millis(entry.when)}
                    <span>{gap}</span>
                    <div class=(entry.what == EventKind::Note).then_some(NOTE)>{line(entry, queue_ref, &budget)}</div>
                </li>
            }
        })
        .collect_view();
    view! { {note} <ol class="*:grid *:grid-cols-[204px_80px_minmax(0,1fr)] *:gap-3 *:border-t *:border-line *:py-1 *:text-sm max-sm:*:grid-cols-[minmax(0,1fr)_auto] max-sm:[&>li>div]:col-span-full [&_a]:underline [&>li>span]:text-right [&>li>span]:text-muted [&>li>time]:text-muted" aria-label="History">{entries}</ol> }.into_any()
}

/// An event of a job in `queue_ref`, in words.
pub fn line(entry: &Entry, queue_ref: &QueueRef, budget: &FormatBudget) -> AnyView {
    let subject = entry.subject.as_deref();
    let collapsed = |text| collapsed(text, budget);
    let group = |group: &str| {
        view! { <a class="name" href=urls::failure(group)>{group.to_owned()}</a> }.into_any()
    };
    match entry.what {
        EventKind::Put => {
            let queue = subject.map(|name| QueueRef {
                name: name.to_owned(),
                ..queue_ref.clone()
            });
            let word = match queue_ref.protocol {
                Protocol::Qless => "added to ",
                Protocol::Lmstfy => "published to ",
                Protocol::Relay => "enqueued in ",
                Protocol::Jobq => "created in ",
            };
            view! { {word} {queue.as_ref().map(queue_link)} }.into_any()
        }
        EventKind::Popped => match subject.filter(|worker| !worker.is_empty()) {
            Some(worker) => view! { "claimed by " {worker_link(worker)} }.into_any(),
            None if queue_ref.protocol == Protocol::Relay => "run started".into_any(),
            None => "claimed by a consumer".into_any(),
        },
        EventKind::TimedOut if queue_ref.protocol == Protocol::Lmstfy => {
            "time to run (TTR) ended without an acknowledgment".into_any()
        }
        EventKind::TimedOut if queue_ref.protocol == Protocol::Relay => {
            "lease expired: no heartbeat within its timeout".into_any()
        }
        EventKind::TimedOut => "lease ended: expired or timed out".into_any(),
        EventKind::Retried => match subject {
            Some(subject) => view! { "retried by the worker after " {group(subject)} }.into_any(),
            None => "retried by the worker".into_any(),
        },
        EventKind::Failed => view! { "failed: " {subject.map(group)} }.into_any(),
        EventKind::Done => "completed".into_any(),
        EventKind::DeadLettered if queue_ref.protocol == Protocol::Relay => {
            "dead-lettered: no retries left".into_any()
        }
        EventKind::Respawned if queue_ref.protocol == Protocol::Relay => "requeued".into_any(),
        EventKind::DeadLettered => "dead-lettered: no tries left".into_any(),
        EventKind::Respawned => "respawned".into_any(),
        EventKind::Created => "created".into_any(),
        EventKind::Advanced => view! {
            "state: " {subject.map(collapsed)} " → " {entry.detail.as_deref().map(collapsed)}
        }
        .into_any(),
        EventKind::Event => view! { "event: " {entry.detail.as_deref().map(collapsed)} }.into_any(),
        EventKind::Note => view! {
            {icon("note")}
            <span class="sr-only">"note: "</span>
            <span class="wrap-anywhere whitespace-pre-wrap">{subject.unwrap_or_default().to_owned()}</span>
            {entry.detail.clone().map(|more| view! { <code class="col-start-2 text-muted wrap-anywhere in-[td]:ml-1.5">{more}</code> })}
        }
        .into_any(),
    }
}

#[cfg(test)]
mod tests;
