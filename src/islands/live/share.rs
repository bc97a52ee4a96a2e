//! Shares one stream of events between the tabs of a browser, because a browser opens at most six connections to a
//! server over HTTP/1.1.
//!
//! The tabs compete for a lock. The one that gets it opens the stream and sends each event to a channel, which the
//! other tabs read. When it is closed or hidden, the browser gives the lock to the next tab. Browsers have locks only
//! on pages over HTTPS and on the local machine; elsewhere each tab has a stream of its own.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Function, Promise};
use leptos::wasm_bindgen::closure::Closure;
use leptos::wasm_bindgen::{JsCast, JsValue};
use web_sys::{BroadcastChannel, EventSource, MessageEvent};

use crate::islands::browser::{address, listen, locks, request_lock};

/// Messages of the channel: a new tab asks for the latest event, and the stream is broken. All others are events: the
/// ID, a space, and the data.
const ASK: &str = "?";
const BROKEN: &str = "!";

/// What happens on the stream.
pub enum StreamUpdate<'a> {
    /// An event: its ID and its data.
    Event(&'a str, &'a str),
    Broken,
}

type Handler = Rc<dyn Fn(StreamUpdate<'_>)>;

/// The connection of this tab.
pub struct Shared {
    handler: Handler,
    channel: Option<BroadcastChannel>,
    /// The stream, if this tab has it.
    source: RefCell<Option<EventSource>>,
    /// Releases the lock.
    release: RefCell<Option<Function>>,
    /// The latest event, unless the stream is broken.
    latest: RefCell<Option<String>>,
    is_closed: Cell<bool>,
}

impl Shared {
    /// Connects to the stream: to that of another tab, or to its own. `is_alone` does not wait for other tabs.
    pub fn connect(is_alone: bool, handler: impl Fn(StreamUpdate<'_>) + 'static) -> Rc<Shared> {
        let locks = (!is_alone).then(locks).flatten();
        let name = address("/ui/events");
        let channel = locks
            .as_ref()
            .and_then(|_| BroadcastChannel::new(&name).ok());
        let shared = Rc::new(Shared {
            handler: Rc::new(handler),
            channel,
            source: RefCell::default(),
            release: RefCell::default(),
            latest: RefCell::default(),
            is_closed: Cell::new(false),
        });
        if let Some(channel) = &shared.channel {
            let reading = Rc::clone(&shared);
            listen(channel, "message", move |event| {
                if let Some(text) = text_of(&event) {
                    reading.on_message(&text);
                }
            });
            shared.post(ASK);
        }
        let is_waiting = locks
            .is_some_and(|locks| shared.channel.is_some() && shared.wait(&locks, &name).is_some());
        if !is_waiting {
            shared.open();
        }
        shared
    }

    /// Opens the stream as soon as no other tab has it.
    fn wait(self: &Rc<Self>, locks: &JsValue, name: &str) -> Option<()> {
        let shared = Rc::clone(self);
        let on_lock = Closure::once_into_js(move |_: JsValue| {
            if shared.is_closed.get() {
                return JsValue::UNDEFINED;
            }
            shared.open();
            // The tab has the lock until this promise resolves.
            let held = Promise::new(&mut |resolve, _| {
                shared.release.replace(Some(resolve));
            });
            held.into()
        });
        request_lock(locks, name, &on_lock)
    }

    fn open(self: &Rc<Self>) {
        let Ok(source) = EventSource::new(&address("/ui/events")) else {
            return;
        };
        for kind in ["change", "beat"] {
            let shared = Rc::clone(self);
            listen(&source, kind, move |event| {
                let Some(event) = event.dyn_ref::<MessageEvent>() else {
                    return;
                };
                let data = event.data().as_string().unwrap_or_default();
                let text = format!("{} {data}", event.last_event_id());
                shared.post(&text);
                shared.on_event(&text);
                shared.latest.replace(Some(text));
            });
        }
        let shared = Rc::clone(self);
        listen(&source, "error", move |_| {
            shared.latest.take();
            shared.post(BROKEN);
            (shared.handler)(StreamUpdate::Broken);
        });
        self.source.replace(Some(source));
    }

    /// Disconnects. Another tab can open the stream.
    pub fn close(&self) {
        self.is_closed.set(true);
        if let Some(source) = self.source.take() {
            source.close();
        }
        if let Some(channel) = &self.channel {
            channel.close();
        }
        if let Some(release) = self.release.take() {
            release.call0(&JsValue::UNDEFINED).ok();
        }
    }

    fn post(&self, text: &str) {
        if let Some(channel) = &self.channel {
            channel.post_message(&text.into()).ok();
        }
    }

    fn on_message(&self, text: &str) {
        if self.is_closed.get() {
            return;
        }
        match (text, self.source.borrow().is_some()) {
            (ASK, true) => {
                if let Some(latest) = &*self.latest.borrow() {
                    self.post(latest);
                }
            }
            (ASK, false) | (_, true) => {}
            (BROKEN, false) => (self.handler)(StreamUpdate::Broken),
            (event, false) => self.on_event(event),
        }
    }

    fn on_event(&self, text: &str) {
        if let Some((id, data)) = text.split_once(' ') {
            (self.handler)(StreamUpdate::Event(id, data));
        }
    }
}

fn text_of(event: &web_sys::Event) -> Option<String> {
    event.dyn_ref::<MessageEvent>()?.data().as_string()
}
