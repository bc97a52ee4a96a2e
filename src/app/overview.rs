//! `/ui`: the overview.

use leptos::prelude::*;
use leptos_meta::Title;

#[component]
pub fn OverviewPage() -> impl IntoView {
    view! {
        <Title text="Overview" />
        <h1>"Switchyard"</h1>
        <Counter start=0 />
    }
}

/// A first island, to prove the way from Rust to a living button.
#[island]
fn Counter(start: i32) -> impl IntoView {
    let count = RwSignal::new(start);
    view! {
        <button type="button" on:click=move |_| count.update(|n| *n += 1)>
            "Clicked " {count} " times"
        </button>
    }
}
