//! Points in time, relative to now or exact.

use leptos::prelude::*;

use crate::time;
use crate::ui::display::display;

/// A moment as this browser wants it: its distance from now, which the browser keeps fresh, or the time.
pub fn ago(moment: i64, now: i64) -> AnyView {
    let text = if display().tells_distances() {
        time::ago(moment, now)
    } else {
        time::utc(moment)
    };
    moment_as(None, moment, text)
}

/// A moment to the second.
pub fn exact(moment: i64) -> AnyView {
    moment_as(Some("exact"), moment, time::utc(moment))
}

/// A moment to the millisecond.
pub fn exact_millis(moment: i64) -> AnyView {
    moment_as(Some("millis"), moment, time::utc_millis(moment))
}

/// A moment both ways, that which this browser wants first.
pub fn when(moment: i64, now: i64) -> AnyView {
    let other = if display().tells_distances() {
        exact(moment)
    } else {
        moment_as(Some("ago"), moment, time::ago(moment, now))
    };
    view! { {ago(moment, now)} <span class="aside">" · " {other}</span> }.into_any()
}

/// `data-as` tells the browser what it may make of the text (`live/times.rs`).
fn moment_as(kind: Option<&'static str>, moment: i64, text: String) -> AnyView {
    view! {
        <time datetime=time::iso(moment) title=time::utc(moment) data-t=moment.to_string() data-as=kind>
            {text}
        </time>
    }
    .into_any()
}
