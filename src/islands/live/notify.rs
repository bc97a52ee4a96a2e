//! Notifications of the browser about new problems of the overview.
//!
//! A button in the display panel turns them on. Then one tab of the browser fetches the overview at intervals, also
//! while it is hidden: the tab that has a lock. The browser stores which problems are known, so each is shown once.

use std::time::Duration;

use js_sys::futures::JsFuture;
use js_sys::{Promise, Reflect};
use leptos::prelude::{document, set_interval, window};
use leptos::task::spawn_local;
use leptos::wasm_bindgen::closure::Closure;
use leptos::wasm_bindgen::{JsCast, JsValue};
use web_sys::{
    DomParser, Element, Notification, NotificationOptions, NotificationPermission, Storage,
    SupportedType,
};

use crate::islands::browser::{address, fetch, listen, locks, request_lock};
use crate::islands::keys::listen::announce;

/// The time between two fetches of the overview.
const INTERVAL: Duration = Duration::from_secs(10);

/// The storage key of the known problems: their addresses, a line for each. Without it, notifications are off.
const KNOWN: &str = "switchyard-problems";

/// A problem of the overview.
struct Problem {
    /// The page that shows it.
    address: String,
    text: String,
}

/// Adds the button to the display panel. Browsers have locks and notifications only on pages over HTTPS and on the
/// local machine.
pub fn start() {
    let has_notifications = Reflect::has(&window(), &"Notification".into()).unwrap_or(false);
    if has_notifications && let Some(locks) = locks() {
        add_button(&locks);
        if known().is_some() {
            watch(&locks);
        }
    }
}

fn add_button(locks: &JsValue) -> Option<()> {
    let panel = document().get_element_by_id("display")?;
    let line = document().create_element("p").ok()?;
    line.set_class_name("mt-3");
    let button = document().create_element("button").ok()?;
    button.set_class_name("btn");
    button.set_attribute("type", "button").ok()?;
    label(&button);
    line.append_child(&button).ok()?;
    panel.append_child(&line).ok()?;
    let stored = button.clone();
    // Another tab can turn notifications on or off.
    listen(&window(), "storage", move |_| label(&stored));
    let (clicked, locks) = (button.clone(), locks.clone());
    listen(&button, "click", move |_| {
        let (button, locks) = (clicked.clone(), locks.clone());
        spawn_local(async move {
            match known() {
                Some(_) => turn_off(),
                None => turn_on(&locks).await,
            }
            label(&button);
        });
    });
    Some(())
}

fn label(button: &Element) {
    button.set_text_content(Some(match known() {
        Some(_) => "Stop notifications",
        None => "Notify me of new problems",
    }));
}

fn turn_off() {
    if let Some(storage) = storage() {
        storage.remove_item(KNOWN).ok();
    }
    announce("Notifications are off");
}

/// Asks the user for permission. The current problems count as known: only later ones are shown.
async fn turn_on(locks: &JsValue) {
    if let Ok(asked) = Notification::request_permission() {
        JsFuture::from(asked).await.ok();
    }
    if Notification::permission() != NotificationPermission::Granted {
        announce("Your browser does not allow notifications");
        return;
    }
    remember(&problems().await.unwrap_or_default());
    show(
        "You will see new problems like this, while a page of the dashboard is open.",
        "/ui",
    );
    announce("Notifications are on");
    watch(locks);
}

/// Checks for new problems as soon as no other tab does, until the tab is closed.
fn watch(locks: &JsValue) {
    let on_lock = Closure::once_into_js(|_: JsValue| {
        check();
        set_interval(check, INTERVAL);
        // The tab has the lock as long as this promise is open.
        JsValue::from(Promise::new(&mut |_, _| {}))
    });
    request_lock(locks, &address("/ui#notifications"), &on_lock);
}

/// Shows the problems that are not known.
fn check() {
    if known().is_none() {
        return;
    }
    spawn_local(async {
        let Some(found) = problems().await else {
            return;
        };
        // The user can have turned notifications off meanwhile.
        let Some(known) = known() else { return };
        let is_new = |problem: &&Problem| known.lines().all(|line| line != problem.address);
        for problem in found.iter().filter(is_new) {
            show(&problem.text, &problem.address);
        }
        remember(&found);
    });
}

/// The problems of the overview; `None` if it cannot be read, for example after the end of the session.
async fn problems() -> Option<Vec<Problem>> {
    // The header tells the server to keep the flash for the page.
    let overview = address("/ui");
    let html = fetch(&overview, r#"{"x-switchyard-refresh":"1"}"#);
    let html = html.await.ok()?;
    let page = DomParser::new().ok()?;
    let page = page
        .parse_from_string(&html, SupportedType::TextHtml)
        .ok()?;
    let list = page.get_element_by_id("problems")?;
    let links = list.query_selector_all("li>a").ok()?;
    let problem = |n| {
        let link: Element = links.item(n)?.dyn_into().ok()?;
        let text = link.query_selector("span").ok()??.first_child()?;
        Some(Problem {
            address: link.get_attribute("href")?,
            text: text.text_content()?,
        })
    };
    Some((0..links.length()).filter_map(problem).collect())
}

fn show(text: &str, address: &str) {
    let options = NotificationOptions::new();
    options.set_body(text);
    options.set_tag(address);
    let host = window().location().host().unwrap_or_default();
    let Ok(shown) = Notification::new_with_options(&format!("Switchyard on {host}"), &options)
    else {
        return;
    };
    let address = address.to_owned();
    listen(&shown, "click", move |_| {
        window().focus().ok();
        window().location().set_href(&address).ok();
    });
}

fn storage() -> Option<Storage> {
    window().local_storage().ok().flatten()
}

/// The known problems, if notifications are on.
fn known() -> Option<String> {
    let known = storage()?.get_item(KNOWN).ok().flatten()?;
    (Notification::permission() == NotificationPermission::Granted).then_some(known)
}

fn remember(problems: &[Problem]) {
    let addresses: Vec<&str> = problems.iter().map(|it| it.address.as_str()).collect();
    if let Some(storage) = storage() {
        storage.set_item(KNOWN, &addresses.join("\n")).ok();
    }
}
