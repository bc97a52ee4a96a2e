//! Copy buttons: one listener for all of them, so that they may come and go with the page's content.

use leptos::prelude::{document, set_timeout, window};
use leptos::wasm_bindgen::JsCast;
use std::time::Duration;
use web_sys::Element;

use crate::islands::browser::listen;

/// How long a button says that it has copied.
const THANKS: Duration = Duration::from_secs(2);

/// Listens for clicks on `[data-copy]`.
pub fn start() {
    listen(&document(), "click", |event| {
        let target = event
            .target()
            .and_then(|target| target.dyn_into::<Element>().ok());
        let button = target.and_then(|target| target.closest("[data-copy]").ok().flatten());
        if let Some(button) = button {
            copy(&button);
        }
    });
}

fn copy(button: &Element) {
    let id = button.get_attribute("data-copy").unwrap_or_default();
    let Some(source) = document().get_element_by_id(&id) else {
        return;
    };
    let text = source.text_content().unwrap_or_default();
    if window().is_secure_context() {
        // Whether it worked cannot be waited for without a promise; where it is allowed, it works.
        drop(window().navigator().clipboard().write_text(&text));
        say(button, "Copied");
    } else if let Ok(Some(selection)) = window().get_selection() {
        // Plain HTTP has no clipboard: select it, so that a key press copies it.
        selection.select_all_children(&source).ok();
        say(button, "Selected");
    }
}

fn say(button: &Element, word: &str) {
    button.set_text_content(Some(word));
    let button = button.clone();
    set_timeout(move || button.set_text_content(Some("Copy")), THANKS);
}
