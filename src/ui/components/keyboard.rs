//! The list of keyboard shortcuts and the palette, as the server renders them. The island `islands/keys.rs` handles the
//! keys.

use leptos::prelude::*;

use crate::ui::components::display_panel;
use crate::ui::components::frame::Page;
use crate::ui::components::icons::icon;
use crate::ui::page_request::PageRequest;

/// The shortcuts that open pages: address and keys.
const PAGE_SHORTCUTS: [(&str, &str); 9] = [
    ("/ui", "g o"),
    ("/ui/queues", "g q"),
    ("/ui/jobs", "g j"),
    ("/ui/failures", "g f"),
    ("/ui/dead", "g d"),
    ("/ui/workers", "g w"),
    ("/ui/tracked", "g t"),
    ("/ui/stats", "g s"),
    ("/ui/config", "g c"),
];

/// The shortcuts except those that open a page.
const HELP: [(&str, &[(&str, &str)]); 3] = [
    (
        "Everywhere",
        &[
            ("Ctrl K", "find a page, job or action"),
            ("/", "search"),
            ("p", "pause or resume live updates"),
            ("z", "switch times: relative, UTC, local"),
            ("d", "switch rows: comfortable, compact"),
            ("u", "undo, if available"),
            ("?", "this list"),
            ("Esc", "close"),
        ],
    ),
    (
        "In lists",
        &[
            ("j", "next row"),
            ("k", "previous row"),
            ("Enter", "open the row"),
            ("x", "select the row"),
            ("Shift X", "select rows from the last selected one"),
            ("* a", "select the whole page"),
            ("* m", "select all matching jobs"),
            ("r", "retry the row, or the selected jobs"),
            ("m, t, c", "move, track, cancel the selected jobs"),
        ],
    ),
    (
        "On a job’s page",
        &[
            ("r", "retry, respawn or requeue"),
            ("e", "edit and retry"),
            ("c", "cancel or delete, with confirmation"),
            ("m", "move"),
            ("t", "track or untrack"),
            ("y", "copy the ID"),
            (".", "copy the first curl command"),
            ("]", "next job in the list you came from"),
            ("[", "previous job in that list"),
        ],
    ),
];

/// The keys that open the page at this address.
pub fn shortcut_of(address: &str) -> Option<&'static str> {
    let known = PAGE_SHORTCUTS
        .into_iter()
        .find(|(page, _)| *page == address);
    known.map(|(_, keys)| keys)
}

/// The button that opens the palette. Without JavaScript it is a link to the search at `search`.
pub fn find_button(search: &'static str) -> AnyView {
    view! {
        <a id="find" class="btn btn-quiet" href=search>
            {icon("search")} <span class="max-lg:sr-only">"Find"</span> <span class="sr-only">"anything"</span> <kbd class="unscripted:hidden max-lg:hidden" aria-hidden="true">"Ctrl K"</kbd>
        </a>
    }
    .into_any()
}

/// The list of shortcuts, which opens without JavaScript, with the setting that turns them off. `pages` are those of
/// the navigation.
pub fn help(request: &PageRequest, pages: &[Page]) -> AnyView {
    let page_keys = pages
        .iter()
        .filter_map(|(address, _, name)| Some((shortcut_of(address)?, *name)));
    view! {
        <div id="keys" class="dialog max-h-[calc(100dvh-24px)] w-[min(720px,100vw-24px)] overflow-auto" popover="auto" role="dialog" aria-labelledby="keys-title">
            <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
                <h2 id="keys-title">"Keyboard shortcuts"</h2>
                <button type="button" class="btn" autofocus popovertarget="keys" popovertargetaction="hide">"Close"</button>
            </div>
            <div class="columns-[2_260px] gap-x-8 text-sm [&_section]:break-inside-avoid [&_section]:pb-3 [&_h3]:font-semibold [&_dl>div]:flex [&_dl>div]:gap-2 [&_dl>div]:py-0.5 [&_dt]:w-20 [&_dt]:shrink-0">
                {HELP.map(|(title, keys)| list(title, keys.iter().copied())).collect_view()}
                {list("Open a page", page_keys)}
            </div>
            {display_panel::keys_form(request)}
        </div>
    }
    .into_any()
}

fn list(title: &'static str, keys: impl Iterator<Item = (&'static str, &'static str)>) -> AnyView {
    let keys = keys.map(|(keys, what)| {
        let keys = keys
            .split(' ')
            .map(|key| view! { <kbd>{key.to_owned()}</kbd> });
        view! { <div><dt>{keys.collect_view()}</dt><dd>{what}</dd></div> }
    });
    view! {
        <section>
            <h3>{title}</h3>
            <dl>{keys.collect_view()}</dl>
        </section>
    }
    .into_any()
}

/// The empty palette, and the element that announces the effect of a key. The island fills both.
pub fn palette() -> AnyView {
    view! {
        <dialog
            id="palette"
            class="dialog mt-14 w-[min(560px,100vw-24px)] p-0"
            aria-label="Find anything">
            <input
                id="palette-input"
                class="min-h-11 w-full border-0 px-4 -outline-offset-2"
                type="text"
                role="combobox"
                aria-label="Search term"
                aria-autocomplete="list"
                aria-expanded="true"
                aria-controls="palette-list"
                placeholder="Page, queue, worker, tag, failure, job ID or action"
                maxlength="200"
                autocomplete="off"
                autocapitalize="off"
                spellcheck="false"
            />
            <div id="palette-list" class="mt-0 max-h-[min(400px,100dvh-160px)] overflow-auto px-2 pt-1 pb-2" role="listbox" aria-label="Results"></div>
            <p id="palette-count" class="sr-only" role="status"></p>
        </dialog>
        <div
            id="announcement"
            class="fixed inset-x-0 bottom-18 z-3 mx-auto w-fit rounded-md border border-control bg-card px-4 py-2 empty:border-0 empty:p-0"
            role="status"
        ></div>
    }
    .into_any()
}
