//! The palette. Its pages and actions come from the current page, names and IDs from the server.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use js_sys::{Array, JSON, JsString, Reflect, encode_uri_component};
use leptos::prelude::{document, set_timeout, window};
use leptos::task::spawn_local;
use leptos::wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, Event, HtmlDialogElement, HtmlInputElement, KeyboardEvent};

use super::listen::{control, is_in_row, press};
use crate::islands::browser::{address, fetch, listen, query, query_all};

/// How long after the last input the palette queries the server.
const DEBOUNCE: Duration = Duration::from_millis(120);

/// An entry of the palette.
#[derive(Clone)]
struct Entry {
    group: String,
    text: String,
    /// The note beside the text.
    note: String,
    action: EntryAction,
}

#[derive(Clone)]
enum EntryAction {
    Open(String),
    Press(Element),
}

thread_local! {
    /// The entries of the page, the results of the server, and the visible entries of both.
    static PAGE_ENTRIES: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
    static RESULTS: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
    static SHOWN: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
    static SELECTED: Cell<usize> = const { Cell::new(0) };
    /// Counts inputs, so that late responses can be ignored.
    static INPUT_COUNT: Cell<u32> = const { Cell::new(0) };
}

/// Adds the listeners of the palette and its button.
pub fn start() {
    if let Some(button) = query("#find") {
        button.set_attribute("role", "button").ok();
        button.set_attribute("aria-haspopup", "dialog").ok();
        listen(&button, "click", |event| {
            event.prevent_default();
            toggle();
        });
        listen(&button, "keydown", |event| {
            let event = event.dyn_into::<KeyboardEvent>();
            if let Some(event) = event.ok().filter(|event| event.key() == " ") {
                event.prevent_default();
                toggle();
            }
        });
    }
    if let (Some(dialog), Some(input)) = (dialog(), input()) {
        listen(&input, "input", |_| on_input());
        listen(&dialog, "keydown", |event| {
            if let Some(event) = event.dyn_ref::<KeyboardEvent>() {
                on_keydown(event);
            }
        });
        listen(&dialog, "click", |event| click(&event));
        // Keeps the focus in the field.
        listen(&dialog, "mousedown", |event| {
            if target(&event).is_some_and(|target| target.id() != "palette-input") {
                event.prevent_default();
            }
        });
    }
}

fn dialog() -> Option<HtmlDialogElement> {
    query("#palette")?.dyn_into().ok()
}

fn input() -> Option<HtmlInputElement> {
    query("#palette-input")?.dyn_into().ok()
}

fn target(event: &Event) -> Option<Element> {
    event.target()?.dyn_into().ok()
}

/// Opens or closes the palette. Closing restores the focus.
pub fn toggle() {
    let (Some(dialog), Some(input)) = (dialog(), input()) else {
        return;
    };
    if dialog.open() {
        dialog.close();
        return;
    }
    PAGE_ENTRIES.set(pages().chain(actions()).collect());
    RESULTS.take();
    input.set_value("");
    // Closes open panels, which would cover the palette.
    if let Some(panel) = query_all("[popover]")
        .into_iter()
        .find(|panel| panel.matches(":popover-open").unwrap_or(false))
    {
        panel
            .dyn_ref::<web_sys::HtmlElement>()
            .map(web_sys::HtmlElement::hide_popover);
    }
    if dialog.show_modal().is_ok() {
        on_input();
    }
}

/// The pages of the navigation.
fn pages() -> impl Iterator<Item = Entry> {
    query_all("#rail a[href]").into_iter().filter_map(|link| {
        Some(Entry {
            group: "Pages".to_owned(),
            text: link.query_selector("span").ok()??.text_content()?,
            note: link.get_attribute("data-shortcut").unwrap_or_default(),
            action: EntryAction::Open(link.get_attribute("href")?),
        })
    })
}

/// The actions of the page, without those of rows.
fn actions() -> impl Iterator<Item = Entry> {
    let controls = query_all("[data-shortcut]").into_iter();
    controls
        .filter(|element| !is_in_row(element))
        .filter_map(|element| {
            let control = control(&element)?;
            // Leaves out links of the navigation, which have a group of their own, and fields.
            if !control.matches("button").ok()? {
                return None;
            }
            let label = control
                .get_attribute("aria-label")
                .or_else(|| control.text_content());
            Some(Entry {
                group: "Actions".to_owned(),
                text: label?.trim().to_owned(),
                note: element.get_attribute("data-shortcut").unwrap_or_default(),
                action: EntryAction::Press(element),
            })
        })
}

/// Shows matching entries: those of the page at once, and those of the server when it responds.
fn on_input() {
    let Some(input) = input() else { return };
    let text = input.value().trim().to_owned();
    let number = INPUT_COUNT.get().wrapping_add(1);
    INPUT_COUNT.set(number);
    SELECTED.set(0);
    RESULTS.with_borrow_mut(|found| found.retain(|entry| fits(entry, &text)));
    show(&text);
    if text.is_empty() {
        return;
    }
    let ask = move || {
        if INPUT_COUNT.get() == number {
            spawn_local(async move {
                let found = find(&text).await;
                if INPUT_COUNT.get() == number {
                    RESULTS.set(found.unwrap_or_default());
                    show(&text);
                }
            });
        }
    };
    set_timeout(ask, DEBOUNCE);
}

fn fits(entry: &Entry, text: &str) -> bool {
    lower(&entry.text).contains(&lower(text))
}

/// Uses the browser's case conversion, which keeps Unicode tables out of the WebAssembly.
fn lower(text: &str) -> String {
    String::from(JsString::from(text).to_lower_case())
}

/// Fetches the results of the server.
async fn find(text: &str) -> Result<Vec<Entry>, JsValue> {
    let found = address(&format!("/ui/find?q={}", encoded(text)));
    let groups = JSON::parse(&fetch(&found, "{}").await?)?;
    let field = |of: &JsValue, name: &str| Reflect::get(of, &name.into()).unwrap_or_default();
    let text = |of: &JsValue, name: &str| field(of, name).as_string().unwrap_or_default();
    let mut found = Vec::new();
    for group in groups.dyn_into::<Array>()?.iter() {
        for item in field(&group, "items").dyn_into::<Array>()?.iter() {
            found.push(Entry {
                group: text(&group, "kind"),
                text: text(&item, "name"),
                note: text(&item, "about"),
                action: EntryAction::Open(address(&text(&item, "to"))),
            });
        }
    }
    Ok(found)
}

fn encoded(text: &str) -> String {
    String::from(encode_uri_component(text))
}

/// Renders the matching entries. Names are inserted as text.
fn show(text: &str) {
    let mut entries = PAGE_ENTRIES.with_borrow(Clone::clone);
    entries.retain(|entry| fits(entry, text));
    entries.extend(RESULTS.with_borrow(Clone::clone));
    if !text.is_empty() {
        entries.push(Entry {
            group: "Search".to_owned(),
            text: format!("Search all jobs for “{text}”"),
            note: String::new(),
            action: EntryAction::Open(address(&format!("/ui/jobs?q={}", encoded(text)))),
        });
    }
    if let Some(list) = query("#palette-list") {
        list.set_text_content(None);
        let mut of_group: Option<Element> = None;
        for (number, entry) in entries.iter().enumerate() {
            let same = of_group
                .as_ref()
                .filter(|group| group.get_attribute("aria-label").as_ref() == Some(&entry.group));
            let group = match same {
                Some(group) => Some(group.clone()),
                None => group(&list, &entry.group),
            };
            if let Some(group) = &group {
                option(group, number, entry);
            }
            of_group = group;
        }
    }
    if let Some(count) = query("#palette-count") {
        let found = match entries.len() {
            1 => "1 result".to_owned(),
            n => format!("{n} results"),
        };
        count.set_text_content(Some(&found));
    }
    SHOWN.set(entries);
    select(SELECTED.get());
}

/// Appends a new element.
fn append(parent: &Element, name: &str, text: &str) -> Option<Element> {
    let element = document().create_element(name).ok()?;
    element.set_text_content(Some(text));
    parent.append_child(&element).ok()?;
    Some(element)
}

fn group(list: &Element, name: &str) -> Option<Element> {
    let group = append(list, "div", "")?;
    group.set_attribute("role", "group").ok();
    group.set_attribute("aria-label", name).ok();
    append(&group, "div", name)?
        .set_attribute("aria-hidden", "true")
        .ok();
    Some(group)
}

fn option(group: &Element, number: usize, entry: &Entry) -> Option<()> {
    let option = append(group, "div", "")?;
    option.set_id(&format!("option-{number}"));
    option.set_attribute("role", "option").ok();
    append(&option, "span", &entry.text);
    if !entry.note.is_empty() {
        append(&option, "small", &entry.note);
    }
    Some(())
}

/// Selects a visible entry.
fn select(number: usize) {
    let last = SHOWN.with_borrow(Vec::len).saturating_sub(1);
    let number = number.min(last);
    SELECTED.set(number);
    let Some(input) = input() else { return };
    input.remove_attribute("aria-activedescendant").ok();
    for option in query_all("#palette-list [role=option]") {
        let is_it = option.id() == format!("option-{number}");
        option
            .set_attribute("aria-selected", if is_it { "true" } else { "false" })
            .ok();
        if is_it {
            input
                .set_attribute("aria-activedescendant", &option.id())
                .ok();
            let nearest = web_sys::ScrollIntoViewOptions::new();
            nearest.set_block(web_sys::ScrollLogicalPosition::Nearest);
            option.scroll_into_view_with_scroll_into_view_options(&nearest);
        }
    }
}

fn on_keydown(event: &KeyboardEvent) {
    let (selected, count) = (SELECTED.get(), SHOWN.with_borrow(Vec::len).max(1));
    match event.key().as_str() {
        _ if event.is_composing() => return,
        "ArrowDown" => select((selected + 1) % count),
        "ArrowUp" => select((selected + count - 1) % count),
        "Enter" => run_entry(selected),
        _ => return,
    }
    event.prevent_default();
}

fn click(event: &Event) {
    let Some(target) = target(event) else { return };
    if target.id() == "palette" {
        toggle();
    } else if let Ok(Some(option)) = target.closest("[role=option]") {
        let number = option.id();
        let number = number
            .strip_prefix("option-")
            .and_then(|number| number.parse().ok());
        number.into_iter().for_each(run_entry);
    }
}

/// Runs the entry with this number.
fn run_entry(number: usize) {
    let action = SHOWN.with_borrow(|shown| shown.get(number).map(|entry| entry.action.clone()));
    let Some(action) = action else { return };
    // Closes first, so that restoring the focus does not override a later change.
    toggle();
    match action {
        EntryAction::Open(page) if page.starts_with(&address("/ui")) => {
            window().location().assign(&page).ok();
        }
        EntryAction::Open(_) => {}
        EntryAction::Press(element) => press(&element),
    }
}
