//! Shows the values of a chart at the pointer. The data table of the page has them as text.

use js_sys::Reflect;
use leptos::prelude::{document, window};
use leptos::wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlElement, NodeList};

use crate::islands::browser::listen;

const ID: &str = "values";

/// The distance between the pointer and the box, in pixels.
const DISTANCE: f64 = 12.0;

/// Listens for the pointer.
pub fn start() {
    listen(&document(), "pointermove", |event| {
        if show(&event).is_none()
            && let Some(shown) = document().get_element_by_id(ID)
        {
            shown.remove();
        }
    });
}

/// Shows the values at the pointer; `None` if it is not on a chart.
fn show(event: &Event) -> Option<()> {
    let drawing = chart_at(event)?;
    let chart = drawing.parent_element()?.get_attribute("data-chart")?;
    let x = event_number(event, "clientX")?;
    let area = drawing.get_bounding_client_rect();
    let text = values(&chart, (x - area.left()) / area.width())?;
    let shown = match document().get_element_by_id(ID) {
        Some(shown) => shown,
        None => create()?,
    };
    let shown: HtmlElement = shown.dyn_into().ok()?;
    shown.set_text_content(Some(&text));
    let size = shown.get_bounding_client_rect();
    let right = x + DISTANCE;
    let is_outside = right + size.width() > window().inner_width().ok()?.as_f64()?;
    let left = if is_outside {
        x - DISTANCE - size.width()
    } else {
        right
    };
    let top = event_number(event, "clientY")? - size.height() - DISTANCE;
    let style = shown.style();
    style
        .set_property("left", &format!("{}px", left.max(0.0)))
        .ok()?;
    style
        .set_property("top", &format!("{}px", top.max(0.0)))
        .ok()
}

/// The drawing of the chart at which the event happens.
pub fn chart_at(event: &Event) -> Option<Element> {
    let target: Element = event.target()?.dyn_into().ok()?;
    target.closest("[data-chart] > svg:first-child").ok()?
}

/// A number of the event, such as a position.
pub fn event_number(event: &Event, name: &str) -> Option<f64> {
    Reflect::get(event, &name.into()).ok()?.as_f64()
}

fn create() -> Option<Element> {
    let shown = document().create_element("div").ok()?;
    shown.set_id(ID);
    shown.set_class_name(
        "pointer-events-none fixed z-3 rounded-sm border border-line bg-card px-2 py-1 text-xs whitespace-pre",
    );
    // The data table is for screen readers.
    shown.set_attribute("aria-hidden", "true").ok()?;
    document().body()?.append_child(&shown).ok()?;
    Some(shown)
}

/// The row of the data table at this share of the width, with the columns of the chart.
fn values(chart: &str, share: f64) -> Option<String> {
    let titles = document().query_selector_all(&format!("th[data-chart='{chart}']"));
    let first = element(&titles.ok()?, 0)?;
    let rows = first
        .closest("table")
        .ok()??
        .query_selector_all("tbody tr")
        .ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it saturates"
    )]
    let index = (share * f64::from(rows.length())) as u32;
    let row = element(&rows, index.min(rows.length().checked_sub(1)?))?;
    let (titles, cells) = (
        first.parent_element()?.query_selector_all("th").ok()?,
        row.query_selector_all("th,td").ok()?,
    );
    let mut text = format!("{} UTC", element(&cells, 0)?.text_content()?);
    for column in 0..titles.length() {
        let title = element(&titles, column)?;
        if title.get_attribute("data-chart").as_deref() == Some(chart) {
            let name = title.text_content()?;
            let name = name.rsplit(": ").next().unwrap_or_default().to_owned();
            let value = element(&cells, column)?.text_content()?;
            text.push_str(&format!("\n{name}: {value}"));
        }
    }
    Some(text)
}

fn element(list: &NodeList, index: u32) -> Option<Element> {
    list.item(index)?.dyn_into().ok()
}
