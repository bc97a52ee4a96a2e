//! States, counts and protocols as icons, words and cells.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::icons::icon;
use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::state::{Counts, EffectiveState};

/// The word for a state.
pub fn word(stand: EffectiveState) -> &'static str {
    stand.as_str()
}

/// A state as icon, word and colour.
pub fn chip(stand: EffectiveState) -> AnyView {
    view! { <span class=format!("chip s-{}", stand.as_str())>{icon(stand.as_str())} {word(stand)}</span> }
        .into_any()
}

/// How a job stands: its state, and what the word alone would hide.
pub fn standing(job: &JobRow) -> AnyView {
    let more = job.is_taken_away().then(|| {
        view! { <span class="aside">" · timed out, first in line"</span> }
    });
    view! { {chip(job.stand)} {more} }.into_any()
}

/// That a queue is paused.
pub fn paused() -> AnyView {
    view! { <span class="chip s-paused">{icon("paused")} "paused"</span> }.into_any()
}

/// A cell with a count; zeros step back, and what needs eyes has its state's colour.
pub fn count_cell(n: i64, stand: EffectiveState, class: &str) -> AnyView {
    let look = match (n, stand) {
        (0, _) => "zero".to_owned(),
        (_, EffectiveState::Failed | EffectiveState::Stalled | EffectiveState::Dead) => {
            format!("s-{}", stand.as_str())
        }
        _ => String::new(),
    };
    view! { <td class=format!("n {look} {class}")>{time::number(n)}</td> }.into_any()
}

/// Shares of the states as a bar; what is complete is not part of it, for it only grows.
pub fn bar(counts: &Counts) -> AnyView {
    let shown: Vec<(EffectiveState, i64)> = EffectiveState::ALL
        .into_iter()
        .filter(|stand| *stand != EffectiveState::Complete)
        .map(|stand| (stand, counts.of(stand)))
        .filter(|(_, n)| *n > 0)
        .collect();
    let total: i64 = shown.iter().map(|(_, n)| n).sum();
    let mut at = 0.0;
    let mut parts = Vec::new();
    for (stand, n) in &shown {
        let width = *n as f64 / total.max(1) as f64 * 1000.0;
        parts.push(view! {
            <rect
                class=format!("s-{}", stand.as_str())
                x=format!("{at:.1}")
                width=format!("{width:.1}")
                height="8"
            />
        });
        at += width;
    }
    let words: Vec<String> = shown
        .iter()
        .map(|(stand, n)| format!("{} {}", time::number(*n), word(*stand)))
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

/// The API through which a queue is worked on, quietly.
pub fn badge(protocol: Protocol) -> AnyView {
    view! { <span class="api">{protocol.as_str()}</span> }.into_any()
}

/// A cell for what the API of a queue does not have.
pub fn lacking(protocol: Protocol, class: &str) -> AnyView {
    let title = format!("Not used by {}", protocol.as_str());
    view! { <td class=format!("n zero {class}") title=title>"–"</td> }.into_any()
}
