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

/// A state as icon and label, in its color.
pub fn chip(state: EffectiveState) -> AnyView {
    view! { <span class=format!("chip s-{}", state.as_str())>{icon(state.as_str())} {state_label(state)}</span> }
        .into_any()
}

/// The state of a job, with a note for timed-out jobs.
pub fn state_view(job: &JobRow) -> AnyView {
    let more = job.is_timed_out().then(|| {
        view! { <span class="aside">" · timed out, first in line"</span> }
    });
    view! { {chip(job.state)} {more} }.into_any()
}

/// The label of a paused queue.
pub fn paused_chip() -> AnyView {
    view! { <span class="chip s-paused">{icon("paused")} "paused"</span> }.into_any()
}

/// A cell with a count. Zeros are pale; problems have the color of their state.
pub fn count_cell(n: i64, state: EffectiveState, class: &str) -> AnyView {
    let look = match (n, state) {
        (0, _) => "zero".to_owned(),
        (_, EffectiveState::Failed | EffectiveState::Stalled | EffectiveState::Dead) => {
            format!("s-{}", state.as_str())
        }
        _ => String::new(),
    };
    view! { <td class=format!("n {look} {class}")>{time::number(n)}</td> }.into_any()
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
                class=format!("s-{}", state.as_str())
                x=format!("{at:.1}")
                width=format!("{width:.1}")
                height="8"
            />
        });
        at += width;
    }
    let words: Vec<String> = shown
        .iter()
        .map(|(state, n)| {
            let label = match state {
                EffectiveState::Record if *n != 1 => "records",
                state => state_label(*state),
            };
            format!("{} {label}", time::number(*n))
        })
        .collect();
    let label = if words.is_empty() {
        "empty".to_owned()
    } else {
        words.join(", ")
    };
    view! {
        <svg class="bar" viewBox="0 0 1000 8" preserveAspectRatio="none" role="img" aria-label=label>
            <title>{label.clone()}</title>
            {parts}
        </svg>
    }
    .into_any()
}

/// The protocol of a queue.
pub fn protocol_badge(protocol: Protocol) -> AnyView {
    view! { <span class="api">{protocol.as_str()}</span> }.into_any()
}

/// A cell for a state that the protocol does not have.
pub fn not_applicable_cell(protocol: Protocol, class: &str) -> AnyView {
    let title = format!("Not used by {}", protocol.name());
    view! { <td class=format!("n zero {class}") title=title>"–"</td> }.into_any()
}
