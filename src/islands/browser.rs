//! Helpers for browser APIs.

use js_sys::futures::JsFuture;
use js_sys::{JSON, Reflect};
use leptos::prelude::window;
use leptos::wasm_bindgen::{JsCast, JsValue, closure::Closure};
use web_sys::{Event, EventTarget, RequestCache, RequestInit, Response, Storage};

/// Adds an event listener for the lifetime of the page.
pub fn listen(target: &EventTarget, event: &str, handler: impl Fn(Event) + 'static) {
    let handler = Closure::<dyn Fn(Event)>::new(handler);
    target
        .add_event_listener_with_callback(event, handler.as_ref().unchecked_ref())
        .ok();
    handler.forget();
}

/// The session storage of the tab.
pub fn storage() -> Option<Storage> {
    window().session_storage().ok().flatten()
}

/// Fetches the text of a URL of this server, with any status.
pub async fn fetch(address: &str, headers: &str) -> Result<String, JsValue> {
    let init = RequestInit::new();
    init.set_cache(RequestCache::NoStore);
    Reflect::set(&init, &"headers".into(), &JSON::parse(headers)?)?;
    let response = JsFuture::from(window().fetch_with_str_and_init(address, &init)).await?;
    let response: Response = response.dyn_into()?;
    let text = JsFuture::from(response.text()?).await?;
    text.as_string().ok_or(JsValue::NULL)
}
