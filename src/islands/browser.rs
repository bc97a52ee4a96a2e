//! Helpers for browser APIs.

use js_sys::futures::JsFuture;
use js_sys::{Function, JSON, Reflect};
use leptos::prelude::{document, window};
use leptos::wasm_bindgen::{JsCast, JsValue, closure::Closure};
use web_sys::{Element, Event, EventTarget, RequestCache, RequestInit, Response, Storage};

/// Adds an event listener for the lifetime of the page.
pub fn listen(target: &EventTarget, event: &str, handler: impl Fn(Event) + 'static) {
    let handler = Closure::<dyn Fn(Event)>::new(handler);
    target
        .add_event_listener_with_callback(event, handler.as_ref().unchecked_ref())
        .ok();
    handler.forget();
}

/// The first element of a selector.
pub fn query(selector: &str) -> Option<Element> {
    document().query_selector(selector).ok().flatten()
}

/// All elements of a selector.
pub fn query_all(selector: &str) -> Vec<Element> {
    let Ok(found) = document().query_selector_all(selector) else {
        return Vec::new();
    };
    let found = (0..found.length()).filter_map(|i| found.item(i)?.dyn_into().ok());
    found.collect()
}

/// The session storage of the tab.
pub fn storage() -> Option<Storage> {
    window().session_storage().ok().flatten()
}

/// The locks that the tabs of this browser share, if it has any.
pub fn locks() -> Option<JsValue> {
    let navigator = window().navigator();
    let locks = Reflect::get(&navigator, &"locks".into()).ok()?;
    locks.is_object().then_some(locks)
}

/// Calls a function as soon as no other tab has the lock. The tab has it until the promise that the function returns
/// resolves.
pub fn request_lock(locks: &JsValue, name: &str, on_lock: &JsValue) -> Option<()> {
    let request = Reflect::get(locks, &"request".into()).ok()?;
    let request: Function = request.dyn_into().ok()?;
    let requested = request.call2(locks, &JsValue::from_str(name), on_lock);
    requested.ok().map(drop)
}

/// The address of a path of this server. If a proxy serves the dashboard below a base path, the address begins with
/// that path, which is read from the link to the icon.
pub fn address(path: &str) -> String {
    let icon = query("link[rel=icon]").and_then(|icon| icon.get_attribute("href"));
    let base = icon
        .as_deref()
        .and_then(|icon| icon.strip_suffix("/ui/favicon.svg"));
    format!("{}{path}", base.unwrap_or_default())
}

/// Fetches the text of a URL of this server. `headers` is a JSON object. A response with an error status is a result,
/// too.
pub async fn fetch(address: &str, headers: &str) -> Result<String, JsValue> {
    let init = RequestInit::new();
    init.set_cache(RequestCache::NoStore);
    Reflect::set(&init, &"headers".into(), &JSON::parse(headers)?)?;
    let response = JsFuture::from(window().fetch_with_str_and_init(address, &init)).await?;
    let response: Response = response.dyn_into()?;
    let text = JsFuture::from(response.text()?).await?;
    text.as_string().ok_or(JsValue::NULL)
}
