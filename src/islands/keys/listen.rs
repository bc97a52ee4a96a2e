//! Finds the control of a shortcut, and presses it.

use std::cell::RefCell;
use std::time::Duration;

use js_sys::Date;
use leptos::prelude::{document, set_timeout, window};
use leptos::wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlElement, HtmlInputElement, KeyboardEvent};

use super::{palette, rows};
use crate::islands::browser::{address, listen, query, query_all};

/// Timeout of a two-key shortcut, in milliseconds.
const SECOND_KEY_MS: f64 = 3_000.0;

/// The field of the search over all jobs.
const SEARCH_FIELD: &str = "/ui/jobs#q";

/// How long an announcement is visible.
const ANNOUNCEMENT_DURATION: Duration = Duration::from_secs(4);

thread_local! {
    /// The first key of a two-key shortcut, and when it was pressed.
    static FIRST: RefCell<Option<(String, f64)>> = const { RefCell::new(None) };
}

/// Starts to handle keys.
pub fn start() {
    listen(&document(), "keydown", |event| {
        if let Some(event) = event.dyn_ref::<KeyboardEvent>() {
            on_keydown(event);
        }
    });
    listen(&window(), "pagehide", |_| rows::store_list());
    palette::start();
}

fn on_keydown(event: &KeyboardEvent) {
    if event.default_prevented() || event.is_composing() {
        return;
    }
    let key = event.key();
    if key == "Tab" && keep_focus_in_dialog(event.shift_key()) {
        event.prevent_default();
        return;
    }
    let first = FIRST.take();
    let commands = event.ctrl_key() || event.meta_key();
    if commands && !event.alt_key() && !event.shift_key() && key.eq_ignore_ascii_case("k") {
        event.prevent_default();
        palette::toggle();
        return;
    }
    // On many keyboards, brackets need AltGr, which browsers report as Ctrl and Alt.
    let modified = (commands || event.alt_key()) && !event.get_modifier_state("AltGraph");
    if modified || is_off() || is_typed_into(event) || is_something_open() {
        return;
    }
    let keys = match first {
        Some((first, when)) if Date::now() - when < SECOND_KEY_MS => format!("{first} {key}"),
        _ if key == "g" || key == "*" => {
            FIRST.set(Some((key, Date::now())));
            return;
        }
        _ => key,
    };
    if run_shortcut(&keys, event) {
        event.prevent_default();
    }
}

/// Moves the focus from the last control of an open dialog to the first, or back. Returns whether it did.
fn keep_focus_in_dialog(backward: bool) -> bool {
    let Some(dialog) = query(".dialog:popover-open") else {
        return false;
    };
    let controls =
        dialog.query_selector_all("a[href], button, input:not([type=hidden]), select, textarea");
    let Ok(controls) = controls else { return false };
    let at = |index: u32| controls.item(index)?.dyn_into::<HtmlElement>().ok();
    let (Some(first), Some(last)) = (at(0), at(controls.length().saturating_sub(1))) else {
        return false;
    };
    let (end, other) = if backward {
        (first, last)
    } else {
        (last, first)
    };
    let active = document().active_element();
    let is_inside = dialog.contains(active.as_deref());
    if is_inside && active.as_ref() != Some(end.as_ref()) {
        return false;
    }
    other.focus().is_ok()
}

/// Handles a shortcut. Returns whether there was one.
fn run_shortcut(keys: &str, event: &KeyboardEvent) -> bool {
    match keys {
        "j" => rows::step(true),
        "k" => rows::step(false),
        // A held key must not repeat the action.
        _ if event.repeat() => return false,
        "x" | "X" => rows::toggle_selection(event.shift_key()),
        "* a" => rows::select_all(),
        "]" => rows::open_neighbor(true),
        "[" => rows::open_neighbor(false),
        "u" => return query("[data-undo]").map(|undo| press(&undo)).is_some(),
        keys => {
            let found = control_with_shortcut(keys);
            if let Some(found) = &found {
                press(found);
            } else if keys == "/" {
                // Pages without a search field open the search over all jobs, with the focus in its field.
                window().location().assign(&address(SEARCH_FIELD)).ok();
                return true;
            }
            return found.is_some();
        }
    }
    true
}

fn is_off() -> bool {
    let html = document().document_element();
    html.is_some_and(|html| html.get_attribute("data-keys").as_deref() == Some("off"))
}

/// Whether the focused element uses the key itself.
fn is_typed_into(event: &Event) -> bool {
    let target = event.target();
    let Some(target) = target.and_then(|target| target.dyn_into::<HtmlElement>().ok()) else {
        return false;
    };
    let is_button = |input: &HtmlInputElement| {
        ["checkbox", "radio", "button", "submit", "reset"].contains(&input.type_().as_str())
    };
    match target.dyn_ref::<HtmlInputElement>() {
        Some(input) => !is_button(input),
        None => target.is_content_editable() || target.matches("textarea, select").unwrap_or(false),
    }
}

/// Whether a dialog, a panel or the palette is open.
fn is_something_open() -> bool {
    // Two queries, because browsers reject a whole selector list with an unknown selector.
    ["dialog[open]", ":popover-open"]
        .iter()
        .any(|open| query(open).is_some())
}

/// Whether the element is in a row of a list.
pub fn is_in_row(element: &Element) -> bool {
    element.closest("tr[data-key]").ok().flatten().is_some()
}

/// The control with this shortcut: that of the focused row, otherwise one outside of rows, preferably in the page
/// itself.
fn control_with_shortcut(keys: &str) -> Option<Element> {
    let is_for_keys =
        |element: &Element| element.get_attribute("data-shortcut").as_deref() == Some(keys);
    let mut found: Vec<Element> = query_all("[data-shortcut]");
    found.retain(is_for_keys);
    if let Some(row) = rows::current()
        && let Some(here) = found.iter().find(|element| row.contains(Some(element)))
    {
        return Some(here.clone());
    }
    found.retain(|element| !is_in_row(element));
    let inside = |element: &&Element| element.closest("main").ok().flatten().is_some();
    found.iter().find(inside).or(found.first()).cloned()
}

/// The button, link or field of an element with `data-shortcut`.
pub fn control(element: &Element) -> Option<HtmlElement> {
    const CONTROLS: &str = "a, button, input:not([type=hidden]), textarea";
    let control = match element.matches(CONTROLS) {
        Ok(true) => Some(element.clone()),
        _ => element.query_selector(CONTROLS).ok().flatten(),
    };
    control.and_then(|control| control.dyn_into().ok())
}

/// Presses a control; focuses a field.
pub fn press(element: &Element) {
    let Some(control) = control(element) else {
        return;
    };
    // Scrolls to the control, so that the effect is visible.
    if let Ok(Some(details)) = control.closest("details:not([open])") {
        details.set_attribute("open", "").ok();
        control.scroll_into_view();
    }
    if control
        .matches("input:not([type=radio]), textarea")
        .unwrap_or(false)
    {
        control.focus().ok();
        if let Some(input) = control.dyn_ref::<HtmlInputElement>() {
            input.select();
        }
        return;
    }
    let Some(panel) = control.get_attribute("popovertarget") else {
        control.click();
        return;
    };
    // Focuses the button first, so that the panel can restore the focus. In the panel, fields get the focus, never
    // buttons.
    control.focus().ok();
    control.click();
    let field = query(&format!("#{panel} input:not([type=hidden])"));
    if let Some(field) = field.and_then(|field| field.dyn_into::<HtmlElement>().ok()) {
        field.focus().ok();
    }
}

/// Announces, on the screen and to screen readers, an effect that is not visible.
pub fn announce(text: &str) {
    let Some(announcement) = query("#announcement") else {
        return;
    };
    announcement.set_text_content(Some(text));
    set_timeout(
        move || announcement.set_text_content(None),
        ANNOUNCEMENT_DURATION,
    );
}
