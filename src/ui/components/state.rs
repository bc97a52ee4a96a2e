//! States, counts and protocols as icons, labels and table cells.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::icons::icon;
use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::state::{Counts, EffectiveState};

/// The label of a state.
pub fn state_label(state: EffectiveState) -> &'static str {
    state.as_str()
}

/// The class of a state's color.
pub fn color(state: EffectiveState) -> &'static str {
    match state {
        EffectiveState::Running => "text-running",
        EffectiveState::Waiting => "text-waiting",
        EffectiveState::Scheduled => "text-scheduled",
        EffectiveState::Depends => "text-depends",
        EffectiveState::Stalled => "text-stalled",
        EffectiveState::Failed => "text-failed",
        EffectiveState::Complete => "text-complete",
        EffectiveState::Dead => "text-dead",
        EffectiveState::Record => "text-record",
    }
}

/// A state as icon and label, in its color.
pub fn chip(state: EffectiveState) -> AnyView {
    view! { <span class=format!("chip {}", color(state))>{icon(state.as_str())} {state_label(state)}</span> }
        .into_any()
}

/// The state of a job, with a note for timed-out jobs.
pub fn state_view(job: &JobRow) -> AnyView {
    let more = job.is_timed_out().then(|| {
        view! { <span class="text-muted wrap-anywhere">" · timed out, before other waiting jobs"</span> }
    });
    view! { {chip(job.listed_state())} {more} }.into_any()
}

/// The label of a paused queue.
pub fn paused_chip() -> AnyView {
    view! { <span class="chip text-paused">{icon("paused")} "paused"</span> }.into_any()
}

/// A cell with a count. Zeros are pale; problems have the color of their state. `class` is added.
pub fn count_cell(n: i64, state: EffectiveState, class: &str) -> AnyView {
    let look = match (n, state) {
        (0, _) => "zero",
        (_, EffectiveState::Failed) => "num text-failed",
        (_, EffectiveState::Stalled) => "num text-stalled",
        (_, EffectiveState::Dead) => "num text-dead",
        _ => "num",
    };
    view! { <td class=joined(look, class)>{time::number(n)}</td> }.into_any()
}

fn joined(look: &str, class: &str) -> String {
    if class.is_empty() {
        look.to_owned()
    } else {
        format!("{look} {class}")
    }
}

/// The number of jobs in a state, with the name of the state.
pub fn counted(state: EffectiveState, n: i64) -> String {
    let label = match state {
        EffectiveState::Record if n == 1 => "Jobq job",
        EffectiveState::Record => "Jobq jobs",
        state => state_label(state),
    };
    format!("{} {label}", time::number(n))
}

/// The shares of the states as a bar. Complete jobs are left out, because their number only grows.
pub fn bar(counts: &Counts) -> AnyView {
    let shown: Vec<(EffectiveState, i64)> = EffectiveState::ALL
        .into_iter()
        .filter(|state| *state != EffectiveState::Complete)
        .map(|state| (state, counts.of(state)))
        .filter(|(_, n)| *n > 0)
        .collect();
    let total: i64 = shown.iter().map(|(_, n)| n).sum();
    let mut at = 0.0;
    let mut parts = Vec::new();
    for (state, n) in &shown {
        let width = *n as f64 / total.max(1) as f64 * 1000.0;
        parts.push(view! {
            <rect
                class=color(*state)
                x=format!("{at:.1}")
                width=format!("{width:.1}")
            />
        });
        at += width;
    }
    let words: Vec<String> = shown.iter().map(|(state, n)| counted(*state, *n)).collect();
    let label = if words.is_empty() {
        "empty".to_owned()
    } else {
        words.join(", ")
    };
    // The title is also the name for screen readers.
    view! {
        <svg class="bar" viewBox="0 0 1000 8" preserveAspectRatio="none" role="img">
            <title>{label}</title>
            {parts}
        </svg>
    }
    .into_any()
}

/// The protocol of a queue.
pub fn protocol_badge(protocol: Protocol) -> AnyView {
    view! { <span class="badge">{protocol.as_str()}</span> }.into_any()
}

/// A cell for a state that the protocol does not have.
pub fn not_applicable_cell(protocol: Protocol, class: &str) -> AnyView {
    let title = format!("Not used by {}", protocol.name());
    view! { <td class=joined("zero", class) title=title>"–"</td> }.into_any()
}
