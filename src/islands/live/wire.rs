//! The browser's side of the live feed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use js_sys::{Date, JSON, Reflect};
use leptos::prelude::{GetUntracked, RwSignal, Set, WithUntracked, document, set_interval, window};
use leptos::task::spawn_local;
use leptos::wasm_bindgen::{JsCast, JsValue};
use web_sys::{DomParser, Event, EventSource, MessageEvent, SupportedType};

use super::{Link, copy, morph, times};
use crate::islands::browser::{fetch, listen, storage};
use crate::time;

/// Milliseconds without an event after which the feed counts as broken. The server sends one every 15 s.
const SILENCE_MS: f64 = 35_000.0;

/// Milliseconds between two attempts while the feed is broken.
const RETRY_MS: f64 = 10_000.0;

/// The storage key of the pause.
const PAUSED: &str = "switchyard-paused";

/// The state of the connection to the feed.
struct Wire {
    link: RwSignal<Link>,
    /// A warning about the device's clock; empty if it is right.
    astray: RwSignal<String>,
    source: RefCell<Option<EventSource>>,
    /// The sequence number of the feed's state that the page shows.
    seq: Cell<u64>,
    /// How far the server's clock is ahead of the browser's, in microseconds.
    ahead: Cell<f64>,
    /// The times of the last event and of the last request, by the browser's clock in milliseconds.
    heard: Cell<f64>,
    asked: Cell<f64>,
    /// Whether the page is being fetched, and whether it must be fetched again afterwards.
    busy: Cell<bool>,
    again: Cell<bool>,
}

thread_local! {
    static WIRE: RefCell<Option<Rc<Wire>>> = const { RefCell::new(None) };
}

/// Connects to the feed, unless this tab is paused.
pub fn start(link: RwSignal<Link>, astray: RwSignal<String>, now: i64, seq: u64) {
    let wire = Rc::new(Wire {
        link,
        astray,
        source: RefCell::new(None),
        seq: Cell::new(seq),
        ahead: Cell::new(now as f64 - Date::now() * 1000.0),
        heard: Cell::new(Date::now()),
        asked: Cell::new(Date::now()),
        busy: Cell::new(false),
        again: Cell::new(false),
    });
    WIRE.set(Some(Rc::clone(&wire)));
    copy::start();
    times::show(wire.now());
    if remembered_pause() {
        link.set(Link::Paused);
    } else {
        wire.connect();
    }
    let ticking = Rc::clone(&wire);
    set_interval(move || ticking.tick(), Duration::from_secs(1));
    let waking = Rc::clone(&wire);
    listen(&document(), "visibilitychange", move |_| waking.wake());
    listen(&window(), "pageshow", move |_| wire.wake());
}

/// Pauses or resumes live updates.
pub fn set_paused(paused: bool) {
    let Some(wire) = WIRE.with_borrow(Clone::clone) else {
        return;
    };
    if let Some(storage) = storage() {
        if paused {
            storage.set_item(PAUSED, "1").ok();
        } else {
            storage.remove_item(PAUSED).ok();
        }
    }
    if paused {
        wire.disconnect();
        wire.link.set(Link::Paused);
    } else {
        wire.link.set(Link::Connecting);
        wire.connect();
        wire.refresh();
    }
}

fn remembered_pause() -> bool {
    storage().is_some_and(|storage| storage.get_item(PAUSED).ok().flatten().is_some())
}

impl Wire {
    fn connect(self: &Rc<Self>) {
        self.disconnect();
        if document().hidden() {
            return;
        }
        let Ok(source) = EventSource::new("/ui/events") else {
            return;
        };
        self.heard.set(Date::now());
        let wire = Rc::clone(self);
        listen(&source, "change", move |event| wire.hear(&event));
        let wire = Rc::clone(self);
        listen(&source, "beat", move |event| wire.hear(&event));
        let wire = Rc::clone(self);
        listen(&source, "error", move |_| {
            wire.link.set(Link::Stale);
            // The next response can come from another server, which has its own sequence numbers, so any number counts
            // as new.
            wire.seq.set(u64::MAX);
        });
        *self.source.borrow_mut() = Some(source);
    }

    fn disconnect(&self) {
        if let Some(source) = self.source.borrow_mut().take() {
            source.close();
        }
    }

    /// Handles an event. Its ID is the sequence number of the feed's state.
    fn hear(self: &Rc<Self>, event: &Event) {
        let Some(event) = event.dyn_ref::<MessageEvent>() else {
            return;
        };
        self.heard.set(Date::now());
        let news = event.data().as_string();
        if let Some(now) = news.and_then(|news| number(&news, "now")) {
            self.compare_clocks(now - Date::now() * 1000.0);
        }
        if self.link.get_untracked() == Link::Paused {
            return;
        }
        self.link.set(Link::Live);
        if event.last_event_id() != self.seq.get().to_string() {
            self.refresh();
        }
    }

    /// Compares the clocks, ignoring the latency of the event.
    #[expect(clippy::cast_possible_truncation, reason = "a time of our days")]
    fn compare_clocks(&self, ahead: f64) {
        self.ahead.set(ahead);
        let astray = time::clock_warning(ahead as i64);
        if self.astray.with_untracked(|told| *told != astray) {
            self.astray.set(astray);
        }
    }

    /// The tab becomes visible or hidden.
    fn wake(self: &Rc<Self>) {
        if self.link.get_untracked() == Link::Paused {
            return;
        }
        if document().hidden() {
            self.disconnect();
        } else if self.source.borrow().is_none() {
            self.connect();
            self.refresh();
        }
    }

    /// Runs once a second: updates times, and replaces a broken feed.
    fn tick(self: &Rc<Self>) {
        if self.link.get_untracked() == Link::Paused || document().hidden() {
            return;
        }
        times::show(self.now());
        let now = Date::now();
        if now - self.heard.get() > SILENCE_MS {
            self.link.set(Link::Stale);
        }
        if self.link.get_untracked() == Link::Stale && now - self.asked.get() > RETRY_MS {
            self.connect();
            self.refresh();
        }
    }

    /// The estimated server time, in microseconds.
    #[expect(clippy::cast_possible_truncation, reason = "a time of our days")]
    fn now(&self) -> i64 {
        (Date::now() * 1000.0 + self.ahead.get()) as i64
    }

    /// Fetches the page and applies the differences; one fetch at a time.
    fn refresh(self: &Rc<Self>) {
        if self.busy.replace(true) {
            self.again.set(true);
            return;
        }
        self.asked.set(Date::now());
        let wire = Rc::clone(self);
        spawn_local(async move {
            if let Ok(html) = fetch_page().await
                && wire.link.get_untracked() != Link::Paused
            {
                wire.show(&html);
            }
            wire.busy.set(false);
            if wire.again.replace(false) {
                wire.refresh();
            }
        });
    }

    fn show(&self, html: &str) {
        let Ok(parser) = DomParser::new() else { return };
        let Ok(page) = parser.parse_from_string(html, SupportedType::TextHtml) else {
            return;
        };
        for id in ["rail", "main"] {
            if let (Some(old), Some(new)) =
                (document().get_element_by_id(id), page.get_element_by_id(id))
            {
                morph::element(&old, &new);
                if let Some(seq) = new
                    .get_attribute("data-seq")
                    .and_then(|seq| seq.parse().ok())
                {
                    self.seq.set(seq);
                }
            }
        }
        if document().title() != page.title() {
            document().set_title(&page.title());
        }
        times::show(self.now());
    }
}

/// Fetches this page with any status, because the page of a removed job has status 404.
async fn fetch_page() -> Result<String, JsValue> {
    let address = window().location().href()?;
    // The header tells the server to keep the flash for another tab.
    fetch(&address, r#"{"x-switchyard-refresh":"1"}"#).await
}

/// A number in a JSON object.
fn number(json: &str, key: &str) -> Option<f64> {
    let object = JSON::parse(json).ok()?;
    Reflect::get(&object, &key.into()).ok()?.as_f64()
}
