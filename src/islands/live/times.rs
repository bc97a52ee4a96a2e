//! Updates the times of a page, in the format of the display settings.

use js_sys::Date;
use leptos::prelude::document;
use leptos::wasm_bindgen::JsValue;
use web_sys::Element;

use crate::islands::browser::query_all;
use crate::time;

/// Updates all times, given the server's current time in microseconds. UTC times need no update.
pub fn show(now: i64) {
    let html = document().document_element();
    let clock = html.and_then(|html| html.get_attribute("data-clock"));
    let is_local = clock.as_deref() == Some("local");
    for element in query_all("time, [data-t]") {
        let Some(moment) = moment_of(&element) else {
            continue;
        };
        let text = match element.get_attribute("data-as").as_deref() {
            Some("ago") => time::relative(moment, now),
            None if clock.is_none() => time::relative(moment, now),
            Some("axis") if is_local => hour_and_minute(moment),
            kind if is_local => time::local(moment, ahead_of_utc(moment), kind == Some("millis")),
            _ => continue,
        };
        if element.text_content().as_deref() != Some(&text) {
            element.set_text_content(Some(&text));
        }
    }
}

/// The time of an element, in microseconds: that of its `datetime`; labels of charts have it in `data-t`.
#[expect(clippy::cast_possible_truncation, reason = "whole milliseconds")]
fn moment_of(element: &Element) -> Option<i64> {
    if let Some(text) = element.get_attribute("data-t") {
        return text.parse().ok();
    }
    let millis = Date::parse(&element.get_attribute("datetime")?);
    millis.is_finite().then_some(millis as i64 * 1_000)
}

/// The hour and the minute of a local time.
fn hour_and_minute(moment: i64) -> String {
    let text = time::local(moment, ahead_of_utc(moment), false);
    text.get(11..16).unwrap_or_default().to_owned()
}

/// The offset of the browser's time zone from UTC at a time, in minutes.
#[expect(clippy::cast_possible_truncation, reason = "zones have whole minutes")]
fn ahead_of_utc(moment: i64) -> i64 {
    let date = Date::new(&JsValue::from_f64(moment as f64 / 1000.0));
    -date.get_timezone_offset() as i64
}
