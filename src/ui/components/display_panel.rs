//! The panel with the display settings.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::ui::actions::display::{SetClock, SetDensity, SetKeys, Theme};
use crate::ui::components::forms::hidden;
use crate::ui::components::icons::icon;
use crate::ui::display::{CLOCK, DENSITY, KEYS, Setting, THEME};
use crate::ui::page_request::PageRequest;

/// The button that opens the panel.
pub fn button() -> AnyView {
    view! {
        <button type="button" class="btn btn-quiet" popovertarget="display" aria-label="Display" data-shortcut="">
            {icon("theme")} <span class="max-xs:hidden">"Display"</span>
        </button>
    }
    .into_any()
}

/// The panel: a form for each setting except single-key shortcuts, and the button that opens the list of shortcuts.
pub fn panel(request: &PageRequest) -> AnyView {
    let display = request.display;
    view! {
        <div id="display" class="dialog inset-[52px_8px_auto_auto] m-0 w-72 p-4" popover="auto" role="dialog" aria-labelledby="display-title">
            <h2 id="display-title">"Display"</h2>
            {form(Theme::PATH, &THEME, display.theme, request)}
            {form(SetClock::PATH, &CLOCK, display.clock, request)}
            {form(SetDensity::PATH, &DENSITY, display.density, request)}
            <button type="button" class="btn" popovertarget="keys" data-shortcut="?">"Keyboard shortcuts…"</button>
        </div>
    }
    .into_any()
}

/// The form that turns single-key shortcuts on and off.
pub fn keys_form(request: &PageRequest) -> AnyView {
    form(SetKeys::PATH, &KEYS, request.display.keys, request)
}

/// A button for each value.
fn form(
    action: &'static str,
    setting: &'static Setting,
    chosen: &str,
    request: &PageRequest,
) -> AnyView {
    let next = setting.next(chosen);
    let buttons = setting.values.iter().map(|(value, word)| {
        let is_chosen = *value == chosen;
        let key = match setting.key {
            Some("") => (!is_chosen).then_some(""),
            key => key.filter(|_| *value == next),
        };
        view! {
            <button
                type="submit"
                name=setting.name
                value=*value
                class=match (is_chosen, *value == "local") {
                    (true, _) => "btn btn-strong",
                    // Only the browser knows its time zone.
                    (false, true) => "btn unscripted:hidden",
                    (false, false) => "btn",
                }
                aria-pressed=is_chosen.to_string()
                aria-label=format!("{}: {word}", setting.title)
                data-shortcut=key
            >
                {*word}
            </button>
        }
    });
    view! {
        <form method="post" action=action>
            {hidden(vec![("back", request.here())])}
            <span class="text-sm text-muted" aria-hidden="true">{setting.title}</span>
            <div class="flex flex-wrap items-center gap-2" role="group" aria-label=setting.title>{buttons.collect_view()}</div>
        </form>
    }
    .into_any()
}
