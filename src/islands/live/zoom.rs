//! Zooming by dragging across a chart of the statistics: fills in the form of the range and submits it.

use std::cell::Cell;

use js_sys::Date;
use leptos::prelude::document;
use leptos::wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, Event, HtmlElement, HtmlInputElement};

use crate::islands::browser::listen;
use crate::islands::live::hover::{chart_at, event_number};

/// The ID of the form with the range.
const FORM: &str = "range";

/// The ID of the element that shows the selected part.
const SHADE: &str = "selected-range";

/// The shortest movement that is a drag, in pixels.
const DRAG_MIN: f64 = 8.0;

/// Milliseconds per minute.
const MINUTE_MS: f64 = 60_000.0;

thread_local! {
    /// Where a drag has begun: the horizontal position, and the left and right end of the chart.
    static BEGUN: Cell<Option<(f64, f64, f64)>> = const { Cell::new(None) };
}

/// Listens for the mouse. A finger scrolls the page.
pub fn start() {
    listen(&document(), "mousedown", |event| {
        begin(&event);
    });
    listen(&document(), "mousemove", |event| {
        if let Some(begun) = BEGUN.get() {
            shade(begun, &event);
        }
    });
    listen(&document(), "mouseup", |event| {
        if let Some(begun) = BEGUN.take() {
            remove_shade();
            submit(begun, &event);
        }
    });
}

fn begin(event: &Event) -> Option<()> {
    document().get_element_by_id(FORM)?;
    if event_number(event, "button")? != 0.0 {
        return None;
    }
    let chart = chart_at(event)?.get_bounding_client_rect();
    BEGUN.set(Some((
        event_number(event, "clientX")?,
        chart.left(),
        chart.right(),
    )));
    // Otherwise the labels would be selected.
    event.prevent_default();
    Some(())
}

/// The ends of the selected part, from left to right.
fn ends((begun, left, right): (f64, f64, f64), event: &Event) -> Option<(f64, f64)> {
    let now = event_number(event, "clientX")?.clamp(left, right);
    Some((begun.min(now), begun.max(now)))
}

fn shade(begun: (f64, f64, f64), event: &Event) -> Option<()> {
    let (from, to) = ends(begun, event)?;
    let shade = match document().get_element_by_id(SHADE) {
        Some(shade) => shade,
        None => {
            let chart = chart_at(event)?.get_bounding_client_rect();
            let shade = document().create_element("div").ok()?;
            shade.set_id(SHADE);
            shade.set_class_name("pointer-events-none fixed z-3 border border-accent");
            let style = shade.dyn_ref::<HtmlElement>()?.style();
            style
                .set_property("top", &format!("{}px", chart.top()))
                .ok()?;
            style
                .set_property("height", &format!("{}px", chart.height()))
                .ok()?;
            document().body()?.append_child(&shade).ok()?;
            shade
        }
    };
    let style = shade.dyn_ref::<HtmlElement>()?.style();
    style.set_property("left", &format!("{from}px")).ok()?;
    style
        .set_property("width", &format!("{}px", to - from))
        .ok()
}

fn remove_shade() {
    if let Some(shade) = document().get_element_by_id(SHADE) {
        shade.remove();
    }
}

fn submit(begun: (f64, f64, f64), event: &Event) -> Option<()> {
    let (from, to) = ends(begun, event)?;
    if to - from < DRAG_MIN {
        return None;
    }
    let form = document().get_element_by_id(FORM)?;
    // Parsing a floating-point number would add kilobytes.
    let ms = |name: &str| Some(form.get_attribute(name)?.parse::<i64>().ok()? as f64 / 1000.0);
    let (first, last) = (ms("data-from")?, ms("data-to")?);
    let (_, left, right) = begun;
    let time = |x: f64| first + (x - left) / (right - left) * (last - first);
    let from = (time(from) / MINUTE_MS).floor();
    let to = (time(to) / MINUTE_MS).ceil().max(from + 1.0);
    set_value(&form, "from", from)?;
    set_value(&form, "to", to)?;
    let button = form.query_selector("button").ok()??;
    button.dyn_ref::<HtmlElement>()?.click();
    Some(())
}

fn set_value(form: &Element, name: &str, minute: f64) -> Option<()> {
    let field = form.query_selector(&format!("[name={name}]")).ok()??;
    let time = Date::new(&JsValue::from_f64(minute * MINUTE_MS));
    let text = time.to_iso_string().as_string()?;
    field
        .dyn_ref::<HtmlInputElement>()?
        .set_value(text.get(..16)?);
    Some(())
}
