//! Suggestions for every term of a search. The browser compares suggestions with the whole text, so each one gets the
//! terms before the last.

use leptos::prelude::document;
use leptos::wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;

use crate::islands::browser::{listen, query_all};

/// Holds the suggestion without the terms before it.
const ONLY: &str = "data-only";

/// Listens for changes of the search field.
pub fn start() {
    listen(&document(), "input", |event| {
        let field = event.target();
        let field = field.and_then(|it| it.dyn_into::<HtmlInputElement>().ok());
        if let Some(field) = field.filter(|field| field.id() == "q") {
            extend(&field);
        }
    });
}

fn extend(field: &HtmlInputElement) {
    let text = field.value();
    // A quoted name can contain spaces.
    let is_quoted = text.matches('"').count() % 2 == 1;
    let end = text.rfind(' ').filter(|_| !is_quoted);
    let before = end.and_then(|end| text.get(..=end)).unwrap_or_default();
    for option in query_all("#suggested option") {
        let only = option.get_attribute(ONLY).or_else(|| {
            let value = option.get_attribute("value")?;
            option.set_attribute(ONLY, &value).ok()?;
            Some(value)
        });
        let value = format!("{before}{}", only.unwrap_or_default());
        option.set_attribute("value", &value).ok();
    }
}
