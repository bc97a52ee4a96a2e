//! The browser's side of the live feed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use js_sys::{Date, JSON, Reflect};
use leptos::prelude::{GetUntracked, RwSignal, Set, WithUntracked, document, set_interval, window};
use leptos::task::spawn_local;
use leptos::wasm_bindgen::JsValue;
use web_sys::{DomParser, SupportedType};

use super::morph::{IN_USE, Refresh};
use super::share::{Shared, StreamUpdate};
use super::{LiveState, base, copy, hover, notify, select, suggest, times, zoom};
use crate::islands::browser::{fetch, listen, storage};
use crate::time;

/// Milliseconds without an event after which the feed counts as broken. The server sends one at least every 15 s.
const SILENCE_MS: f64 = 35_000.0;

/// Milliseconds between two attempts while the feed is broken.
const RETRY_MS: f64 = 10_000.0;

/// The storage key of the pause.
const PAUSED: &str = "switchyard-paused";

/// The state of the connection to the feed.
struct FeedClient {
    state: RwSignal<LiveState>,
    /// A warning about the device's clock; empty if it is right.
    clock_warning: RwSignal<String>,
    /// The text for changes that a refresh did not apply to lists in use; empty if none.
    pending: RwSignal<String>,
    /// The stream of events, which the tabs of a browser share.
    stream: RefCell<Option<Rc<Shared>>>,
    /// The sequence number of the feed's state that the page shows.
    seq: Cell<u64>,
    /// How far the server's clock is ahead of the browser's, in microseconds.
    server_offset_us: Cell<f64>,
    /// The times of the last event and of the last request, by the browser's clock in milliseconds.
    last_event_ms: Cell<f64>,
    last_request_ms: Cell<f64>,
    /// Whether the page is being fetched, and whether it must be fetched again afterwards.
    is_fetching: Cell<bool>,
    must_refetch: Cell<bool>,
    /// Whether the next refresh also changes lists in use.
    is_forced: Cell<bool>,
}

thread_local! {
    static CLIENT: RefCell<Option<Rc<FeedClient>>> = const { RefCell::new(None) };
}

/// Connects to the feed, unless this tab is paused.
pub fn start(
    state: RwSignal<LiveState>,
    clock_warning: RwSignal<String>,
    pending: RwSignal<String>,
    now: i64,
    seq: u64,
) {
    let client = Rc::new(FeedClient {
        state,
        clock_warning,
        pending,
        stream: RefCell::new(None),
        seq: Cell::new(seq),
        server_offset_us: Cell::new(now as f64 - Date::now() * 1000.0),
        last_event_ms: Cell::new(Date::now()),
        last_request_ms: Cell::new(Date::now()),
        is_fetching: Cell::new(false),
        must_refetch: Cell::new(false),
        is_forced: Cell::new(false),
    });
    CLIENT.set(Some(Rc::clone(&client)));
    copy::start();
    hover::start();
    notify::start();
    select::start();
    suggest::start();
    zoom::start();
    times::show(client.now());
    if remembered_pause() {
        state.set(LiveState::Paused);
    } else {
        client.connect(false);
    }
    let ticking = Rc::clone(&client);
    set_interval(move || ticking.tick(), Duration::from_secs(1));
    let waking = Rc::clone(&client);
    listen(&document(), "visibilitychange", move |_| {
        waking.on_visibility_change();
    });
    listen(&window(), "pageshow", move |_| {
        client.on_visibility_change();
    });
}

/// Pauses or resumes live updates.
pub fn set_paused(paused: bool) {
    let Some(client) = CLIENT.with_borrow(Clone::clone) else {
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
        client.disconnect();
        client.pending.set(String::new());
        client.state.set(LiveState::Paused);
    } else {
        client.state.set(LiveState::Connecting);
        client.connect(false);
        client.refresh();
    }
}

/// Applies the changes that refreshes did not apply to lists in use.
pub fn show_pending() {
    if let Some(client) = CLIENT.with_borrow(Clone::clone) {
        client.is_forced.set(true);
        client.refresh();
    }
}

fn remembered_pause() -> bool {
    storage().is_some_and(|storage| storage.get_item(PAUSED).ok().flatten().is_some())
}

impl FeedClient {
    /// Connects to the stream of events. `is_alone` does not share that of another tab.
    fn connect(self: &Rc<Self>, is_alone: bool) {
        self.disconnect();
        if document().hidden() {
            return;
        }
        self.last_event_ms.set(Date::now());
        let client = Rc::clone(self);
        let stream = Shared::connect(is_alone, move |update| match update {
            StreamUpdate::Event(id, data) => client.on_event(id, data),
            StreamUpdate::Broken => {
                client.state.set(LiveState::Stale);
                // The next response can come from another server, which has its own sequence numbers, so any number
                // counts as new.
                client.seq.set(u64::MAX);
            }
        });
        *self.stream.borrow_mut() = Some(stream);
    }

    fn disconnect(&self) {
        if let Some(stream) = self.stream.borrow_mut().take() {
            stream.close();
        }
    }

    /// Handles an event. Its ID is the sequence number of the feed's state.
    fn on_event(self: &Rc<Self>, id: &str, data: &str) {
        self.last_event_ms.set(Date::now());
        if let Some(now) = number(data, "now") {
            self.compare_clocks(now - Date::now() * 1000.0);
        }
        if self.state.get_untracked() == LiveState::Paused {
            return;
        }
        self.state.set(LiveState::Live);
        if id != self.seq.get().to_string() {
            self.refresh();
        }
    }

    /// Compares the clocks, ignoring the latency of the event.
    #[expect(clippy::cast_possible_truncation, reason = "present-day times fit")]
    fn compare_clocks(&self, server_offset_us: f64) {
        self.server_offset_us.set(server_offset_us);
        let clock_warning = time::clock_warning(server_offset_us as i64);
        if self
            .clock_warning
            .with_untracked(|shown| *shown != clock_warning)
        {
            self.clock_warning.set(clock_warning);
        }
    }

    /// The tab becomes visible or hidden.
    fn on_visibility_change(self: &Rc<Self>) {
        if self.state.get_untracked() == LiveState::Paused {
            return;
        }
        if document().hidden() {
            self.disconnect();
        } else if self.stream.borrow().is_none() {
            self.connect(false);
            self.refresh();
        }
    }

    /// Runs once a second: updates times, and replaces a broken feed.
    fn tick(self: &Rc<Self>) {
        if self.state.get_untracked() == LiveState::Paused || document().hidden() {
            return;
        }
        times::show(self.now());
        let now = Date::now();
        // Another tab's stream can be silent because that tab is suspended.
        let is_silent = now - self.last_event_ms.get() > SILENCE_MS;
        if is_silent {
            self.state.set(LiveState::Stale);
        }
        let has_pending = !self.pending.with_untracked(String::is_empty);
        if has_pending && matches!(document().query_selector(IN_USE), Ok(None)) {
            self.refresh();
        }
        if self.state.get_untracked() == LiveState::Stale
            && now - self.last_request_ms.get() > RETRY_MS
        {
            self.connect(is_silent);
            self.refresh();
        }
    }

    /// The estimated server time, in microseconds.
    #[expect(clippy::cast_possible_truncation, reason = "present-day times fit")]
    fn now(&self) -> i64 {
        (Date::now() * 1000.0 + self.server_offset_us.get()) as i64
    }

    /// Fetches the page and applies the differences, one fetch at a time. A hidden page is fetched when it becomes
    /// visible.
    fn refresh(self: &Rc<Self>) {
        if document().hidden() {
            return;
        }
        if self.is_fetching.replace(true) {
            self.must_refetch.set(true);
            return;
        }
        self.last_request_ms.set(Date::now());
        let client = Rc::clone(self);
        spawn_local(async move {
            if let Ok(html) = fetch_page().await
                && client.state.get_untracked() != LiveState::Paused
            {
                client.show(&html);
            }
            client.is_fetching.set(false);
            if client.must_refetch.replace(false) {
                client.refresh();
            }
        });
    }

    fn show(&self, html: &str) {
        let Ok(parser) = DomParser::new() else { return };
        let Ok(page) = parser.parse_from_string(html, SupportedType::TextHtml) else {
            return;
        };
        let mut refresh = Refresh {
            is_forced: self.is_forced.replace(false),
            ..Refresh::default()
        };
        for id in ["rail", "main"] {
            if let (Some(old), Some(new)) =
                (document().get_element_by_id(id), page.get_element_by_id(id))
            {
                refresh.element(&old, &new);
                if let Some(seq) = new
                    .get_attribute("data-seq")
                    .and_then(|seq| seq.parse().ok())
                {
                    self.seq.set(seq);
                }
            }
        }
        let pending = match refresh.new_rows {
            0 if refresh.has_list_changes => "List changed".to_owned(),
            0 => String::new(),
            n => format!("{n} new"),
        };
        if self.pending.with_untracked(|shown| *shown != pending) {
            self.pending.set(pending);
        }
        if document().title() != page.title() {
            document().set_title(&page.title());
        }
        times::show(self.now());
    }
}

/// Fetches this page with any status: after the end of the session, the response is the sign-in page with status 401.
/// The server sends what has changed since the last time.
async fn fetch_page() -> Result<String, JsValue> {
    let address = window().location().href()?;
    // The first header tells the server to keep the flash for another tab.
    let headers = format!(
        r#"{{"x-switchyard-refresh":"1","x-switchyard-base":"{}"}}"#,
        base::id()
    );
    let answer = fetch(&address, &headers).await?;
    base::page(answer).ok_or(JsValue::NULL)
}

/// A number in a JSON object.
fn number(json: &str, key: &str) -> Option<f64> {
    let object = JSON::parse(json).ok()?;
    Reflect::get(&object, &key.into()).ok()?.as_f64()
}
