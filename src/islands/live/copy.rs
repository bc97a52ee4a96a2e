//! Copy buttons: one listener for all of them, because refreshes add and remove buttons.

use js_sys::futures::JsFuture;
use leptos::prelude::{document, set_timeout, window};
use leptos::task::spawn_local;
use leptos::wasm_bindgen::JsCast;
use std::time::Duration;
use web_sys::Element;

use crate::islands::browser::listen;
use crate::islands::keys::listen::announce;

/// How long a button confirms the copy.
const CONFIRMATION_DURATION: Duration = Duration::from_secs(2);

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
    let button = button.clone();
    spawn_local(async move {
        // Over plain HTTP there is no clipboard, and a browser can refuse access to it.
        let is_copied = window().is_secure_context() && {
            let written = window().navigator().clipboard().write_text(&text);
            JsFuture::from(written).await.is_ok()
        };
        if is_copied {
            show_label(&button, "Copied");
        } else if let Ok(Some(selection)) = window().get_selection() {
            // Selects the text, so that the user can copy it.
            selection.select_all_children(&source).ok();
            show_label(&button, "Selected");
        }
    });
}

fn show_label(button: &Element, word: &str) {
    announce(word);
    button.set_text_content(Some(word));
    let button = button.clone();
    set_timeout(
        move || button.set_text_content(Some("Copy")),
        CONFIRMATION_DURATION,
    );
}
