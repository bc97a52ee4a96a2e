//! The selection in a list of jobs: the checkbox for the whole page, and the number of selected rows. The form works
//! without it.

use leptos::prelude::document;
use leptos::wasm_bindgen::JsCast;
use web_sys::{Event, HtmlInputElement};

use crate::islands::browser::{listen, query_all};

/// The checkboxes of the rows.
const ROWS: &str = "main tbody .check-cell input";

/// The checkboxes for all rows of a page.
const ALL: &str = "[data-select-all]";

/// Listens for changes of the checkboxes.
pub fn start() {
    listen(&document(), "change", |event| {
        on_change(&event);
    });
    // The browser restores checkboxes when the user goes back.
    show();
}

fn on_change(event: &Event) -> Option<()> {
    let changed: HtmlInputElement = event.target()?.dyn_into().ok()?;
    let is_all = changed.matches(ALL).ok()?;
    if !is_all && !changed.matches(ROWS).ok()? {
        return None;
    }
    if is_all {
        for row in inputs(ROWS) {
            row.set_checked(changed.checked());
        }
    }
    if changed.checked() {
        // A user who selects rows means these rows, not all matching jobs.
        for choice in inputs("[name=of][value=selected]") {
            choice.set_checked(true);
        }
    }
    show();
    Some(())
}

/// Shows the number of selected rows, and whether they are all rows of the page.
fn show() {
    let rows = inputs(ROWS);
    let selected = rows.iter().filter(|row| row.checked()).count();
    for all in inputs(ALL) {
        all.set_checked(selected > 0 && selected == rows.len());
        all.set_indeterminate(selected > 0 && selected < rows.len());
    }
    let text = (selected > 0).then(|| format!(" ({selected})"));
    for count in query_all("[data-selected]") {
        count.set_text_content(text.as_deref());
    }
}

fn inputs(selector: &str) -> Vec<HtmlInputElement> {
    let found = query_all(selector).into_iter();
    found.filter_map(|it| it.dyn_into().ok()).collect()
}
