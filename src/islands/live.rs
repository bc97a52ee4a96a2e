//! The island that keeps pages live. It subscribes to the live feed of the server, fetches the page again after a
//! change, and applies the differences (`live/morph.rs`). So only the server renders lists and counts, and the page
//! keeps what the user has opened, typed or selected.

#[cfg(feature = "hydrate")]
mod base;
#[cfg(feature = "hydrate")]
mod copy;
#[cfg(feature = "hydrate")]
mod hover;
#[cfg(feature = "hydrate")]
mod morph;
#[cfg(feature = "hydrate")]
mod notify;
#[cfg(any(feature = "hydrate", test))]
pub mod patch;
#[cfg(feature = "hydrate")]
mod select;
#[cfg(feature = "hydrate")]
mod share;
#[cfg(feature = "hydrate")]
mod suggest;
#[cfg(feature = "hydrate")]
mod times;
#[cfg(feature = "hydrate")]
mod wire;
#[cfg(feature = "hydrate")]
mod zoom;
#[cfg(not(feature = "hydrate"))]
mod wire {
    //! On the server, the island's functions are empty.
    use super::LiveState;
    use leptos::prelude::RwSignal;

    pub fn start(_: RwSignal<LiveState>, _: RwSignal<String>, _: RwSignal<String>, _: i64, _: u64) {
    }
    pub fn set_paused(_: bool) {}
    pub fn show_pending() {}
}

use leptos::prelude::*;

/// The state of the live updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "hydrate"),
    expect(dead_code, reason = "the server renders only the first state")
)]
pub enum LiveState {
    Connecting,
    Live,
    /// The feed is broken; the page is fetched at intervals until it works again.
    Stale,
    Paused,
}

impl LiveState {
    fn word(self) -> &'static str {
        match self {
            LiveState::Connecting => "Connecting",
            LiveState::Live => "Live",
            LiveState::Stale => "Stale",
            LiveState::Paused => "Paused",
        }
    }

    fn about(self) -> &'static str {
        match self {
            LiveState::Connecting => "Connecting to the live feed",
            LiveState::Live => "Updates after every change, usually within 1 s",
            LiveState::Stale => "The live feed is unavailable; retrying",
            LiveState::Paused => "Live updates are paused",
        }
    }
}

/// The live indicator, and the button that pauses live updates.
#[island]
pub fn Live(
    /// The server's time of the rendering, in microseconds.
    now: i64,
    /// The number of the feed's state that the page shows.
    seq: u64,
) -> impl IntoView {
    let state = RwSignal::new(LiveState::Connecting);
    let clock_warning = RwSignal::new(String::new());
    let pending = RwSignal::new(String::new());
    Effect::new(move |_| wire::start(state, clock_warning, pending, now, seq));
    let paused = move || state.get() == LiveState::Paused;
    view! {
        <span
            class="group flex items-center gap-1.5 text-sm text-muted data-[state=Stale]:font-semibold data-[state=Stale]:text-stalled unscripted:invisible"
            data-state=move || state.get().word()
        >
            <span
                class="size-2 rounded-full border-2 border-current group-data-[state=Live]:border-complete group-data-[state=Live]:bg-complete"
                aria-hidden="true"
            ></span>
            <span role="status" title=move || state.get().about()>{move || state.get().word()}</span>
            // Without a warning, the element stays in the page with an empty title.
            <span
                class="font-semibold text-stalled max-lg:absolute max-lg:top-full max-lg:right-0 max-lg:border max-lg:bg-card max-lg:px-3 max-lg:py-0.5 [&[title='']]:hidden"
                role="status" title=move || clock_warning.get()>{move || clock_warning.get()}</span>
            <button
                type="button"
                class="btn btn-quiet"
                data-shortcut="p"
                on:click=move |_| wire::set_paused(!paused())
            >
                {move || if paused() { "Resume" } else { "Pause" }} <span class="max-xl:sr-only">" live updates"</span>
            </button>
            <button
                type="button"
                class="btn btn-strong fixed inset-x-0 bottom-6 z-2 mx-auto w-fit max-md:bottom-20"
                hidden=move || pending.with(String::is_empty)
                title="The list does not move while you use it. Click to update it."
                on:click=move |_| wire::show_pending()
            >
                {move || pending.get()}
            </button>
        </span>
    }
}
