//! Points in time, relative to now or exact.

use leptos::prelude::*;

use crate::time;
use crate::ui::display::display;

/// A time in the format of the display settings: relative, which the browser updates, or exact.
pub fn ago(moment: i64, now: i64) -> AnyView {
    let text = if display().is_relative() {
        time::relative(moment, now)
    } else {
        time::utc(moment)
    };
    moment_as(None, moment, text)
}

/// A time to the second.
pub fn exact(moment: i64) -> AnyView {
    moment_as(Some("exact"), moment, time::utc(moment))
}

/// A time to the millisecond.
pub fn exact_millis(moment: i64) -> AnyView {
    moment_as(Some("millis"), moment, time::utc_millis(moment))
}

/// A time both relative and exact; the format of the display settings comes first.
pub fn when(moment: i64, now: i64) -> AnyView {
    let other = if display().is_relative() {
        exact(moment)
    } else {
        moment_as(Some("ago"), moment, time::relative(moment, now))
    };
    view! { {ago(moment, now)} <span class="text-muted wrap-anywhere">" · " {other}</span> }
        .into_any()
}

/// `data-as` tells the island how to format the time (`islands/live/times.rs`).
fn moment_as(kind: Option<&'static str>, moment: i64, text: String) -> AnyView {
    view! {
        <time datetime=time::iso(moment) title=time::utc(moment) data-as=kind>
            {text}
        </time>
    }
    .into_any()
}
