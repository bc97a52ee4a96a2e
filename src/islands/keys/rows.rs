//! Rows of lists: moving the focus, selecting rows, and paging through the jobs of the last list.

use std::cell::RefCell;

use leptos::prelude::{document, window};
use leptos::wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, HtmlInputElement};

use super::listen::announce;
use crate::islands::browser::{query, query_all, storage};

const ROWS: &str = "main tr[data-key]";

/// The storage key of the jobs of the last list, one URL per line.
const LIST: &str = "switchyard-list";

thread_local! {
    /// The key of the row that was selected last.
    static LAST_SELECTED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The focused row.
pub fn current() -> Option<Element> {
    document().active_element()?.closest(ROWS).ok().flatten()
}

/// The visible rows, each with its element that can have the focus.
fn rows() -> Vec<(Element, HtmlElement)> {
    let focusable = |row: Element| {
        let mut found = ["a[href]", "button, input, select"]
            .iter()
            .filter_map(|kind| row.query_selector(kind).ok().flatten());
        let found = found.next()?.dyn_into::<HtmlElement>().ok()?;
        found.offset_parent()?;
        Some((row, found))
    };
    query_all(ROWS).into_iter().filter_map(focusable).collect()
}

/// Moves the focus to the next or the previous row.
pub fn step(forward: bool) {
    let (rows, current) = (rows(), current());
    let at = rows
        .iter()
        .position(|(row, _)| Some(row) == current.as_ref());
    let to = match at {
        Some(at) if forward => (at + 1).min(rows.len() - 1),
        Some(at) => at.saturating_sub(1),
        None => 0,
    };
    if let Some((_, focusable)) = rows.get(to) {
        focusable.focus().ok();
    }
}

fn checkbox(row: &Element) -> Option<HtmlInputElement> {
    let found = row.query_selector("input[type=checkbox]").ok().flatten();
    found.and_then(|found| found.dyn_into().ok())
}

/// Clicks the checkbox, so that its listeners run.
fn set(checkbox: &HtmlInputElement, checked: bool) {
    if checkbox.checked() != checked {
        checkbox.click();
    }
}

/// Toggles the selection of a row; with `from_last`, applies the last toggle to all rows in between.
pub fn toggle_selection(from_last: bool) {
    let Some(row) = current() else { return };
    let Some(here) = checkbox(&row) else { return };
    let key = row.get_attribute("data-key");
    let last = LAST_SELECTED.replace(key);
    let rows: Vec<Element> = rows().into_iter().map(|(row, _)| row).collect();
    let at = |key: Option<String>| {
        rows.iter()
            .position(|row| row.get_attribute("data-key") == key)
    };
    let last = last.filter(|_| from_last).and_then(|last| at(Some(last)));
    let (Some(from), Some(to)) = (last, rows.iter().position(|other| *other == row)) else {
        here.click();
        return;
    };
    let (first, end) = (from.min(to), from.max(to));
    let checked = rows
        .get(from)
        .and_then(checkbox)
        .is_none_or(|anchor| anchor.checked());
    for row in rows.iter().take(end + 1).skip(first) {
        if let Some(checkbox) = checkbox(row) {
            set(&checkbox, checked);
        }
    }
}

/// Selects all rows of the page.
pub fn select_all() {
    for (row, _) in rows() {
        if let Some(checkbox) = checkbox(&row) {
            set(&checkbox, true);
        }
    }
}

/// Stores the jobs of this list for their pages. The page of a job, which can list other jobs, does not change it.
pub fn store_list() {
    if query("#jid").is_some() {
        return;
    }
    let mut list: Vec<String> = Vec::new();
    for link in query_all("main tbody a.id") {
        list.extend(
            link.get_attribute("href")
                .filter(|href| !list.contains(href)),
        );
    }
    if let Some(storage) = storage()
        && !list.is_empty()
    {
        storage.set_item(LIST, &list.join("\n")).ok();
    }
}

/// Opens the next or the previous job of the last list.
pub fn open_neighbor(forward: bool) {
    let list = storage().and_then(|storage| storage.get_item(LIST).ok().flatten());
    let list = list.unwrap_or_default();
    let list: Vec<&str> = list.lines().collect();
    let Ok(here) = window().location().pathname() else {
        return;
    };
    let Some(at) = list.iter().position(|address| *address == here) else {
        announce("You did not open this page from a list");
        return;
    };
    let to = if forward {
        at.checked_add(1)
    } else {
        at.checked_sub(1)
    };
    match to.and_then(|to| list.get(to)) {
        Some(address) => drop(window().location().assign(address)),
        None if forward => announce("Last job of the list"),
        None => announce("First job of the list"),
    }
}
