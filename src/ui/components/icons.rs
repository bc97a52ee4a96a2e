//! Icons, defined once per page as SVG symbols. Every state has its own shape, so that it does not depend on color
//! alone.

use leptos::prelude::*;

/// The name of a symbol, and its path on a 16×16 grid.
const SHAPES: &[(&str, &str)] = &[
    // States.
    ("running", "M4 2.5v11l9.5-5.5z"),
    (
        "waiting",
        "M8 1.75a6.25 6.25 0 1 0 0 12.5a6.25 6.25 0 1 0 0-12.5M8 4.5V8l2.5 1.75",
    ),
    (
        "scheduled",
        "M4 1.75h8M4 14.25h8M5 2v2.5L8 8l3-3.5V2M5 14v-2.5L8 8l3 3.5V14",
    ),
    ("depends", "M5 2v12M5 9c4 0 6-1 6-4.5M9 6l2-2.5L13 6"),
    ("stalled", "M8 2L1.75 13.5h12.5zM8 6.5v3.25M8 11.25v.5"),
    ("failed", "M3 3l10 10M13 3L3 13"),
    ("complete", "M2.5 8.5l3.75 3.75L13.5 4"),
    ("paused", "M5.25 3v10M10.75 3v10"),
    (
        "dead",
        "M5.25 14.25v-2.5C3.25 11 2.25 9.25 2.25 7.25a5.75 5.5 0 0 1 11.5 0c0 2-1 3.75-3 4.5v2.5zM5.75 7.5v.01M10.25 7.5v.01M8 9.75v.5",
    ),
    ("record", "M3.5 1.75h6l3 3v9.5h-9zM9.25 2v3h3M6 8h4M6 11h4"),
    (
        "recurring",
        "M2.75 7a5.25 5.25 0 0 1 9.5-2.25M12.5 1.75v3.5H9M13.25 9a5.25 5.25 0 0 1-9.5 2.25M3.5 14.25v-3.5H7",
    ),
    // Pages.
    ("overview", "M2 2h5v6H2zM9 2h5v3H9zM9 7h5v7H9zM2 10h5v4H2z"),
    ("queues", "M2 3h12v3H2zM2 8h12v3H2zM2 13.5h7"),
    (
        "failures",
        "M8 1.75a6.25 6.25 0 1 0 0 12.5a6.25 6.25 0 1 0 0-12.5M8 4.5v4.25M8 10.75v.5",
    ),
    (
        "workers",
        "M4.5 4.5h7v7h-7zM6.5 2v2.5M9.5 2v2.5M6.5 11.5V14M9.5 11.5V14M2 6.5h2.5M2 9.5h2.5M11.5 6.5H14M11.5 9.5H14",
    ),
    (
        "search",
        "M6.75 2a4.75 4.75 0 1 0 0 9.5a4.75 4.75 0 1 0 0-9.5M10.25 10.25L14 14",
    ),
    ("namespaces", "M2 3.5h4.5l1.5 2h6v7.5H2zM2 5.5h6"),
    (
        "config",
        "M2 4.5h5M11 4.5h3M9 2.5a2 2 0 1 0 0 4a2 2 0 1 0 0-4M2 11.5h2M8 11.5h6M6 9.5a2 2 0 1 0 0 4a2 2 0 1 0 0-4",
    ),
    (
        "stats",
        "M2 14h12M3.5 11.5V8M7 11.5V3M10.5 11.5V6M13.5 11.5V9.5",
    ),
    (
        "tracked",
        "M8 1.75l1.9 3.9 4.35.6-3.15 3 .75 4.25L8 11.5l-3.85 2 .75-4.25-3.15-3 4.35-.6z",
    ),
    ("tags", "M2 2.25h5.75l6.5 6.25-5.5 5.5L2 7.5zM5 5.25v.25"),
    (
        "operations",
        "M2 4l1.25 1.25L5.5 3M8 4h6M2 8.5l1.25 1.25L5.5 7.5M8 8.5h6M2 12.5h3M8 12.5h6",
    ),
    (
        "check",
        "M8 1.75l5.5 2v3.75c0 3.25-2.25 5.5-5.5 6.75c-3.25-1.25-5.5-3.5-5.5-6.75V3.75zM5.5 8l2 2 3.25-3.75",
    ),
    (
        "about",
        "M8 1.75a6.25 6.25 0 1 0 0 12.5a6.25 6.25 0 1 0 0-12.5M8 7.25v4M8 4.75v.5",
    ),
    ("audit", "M3 1.75h10v12.5H3zM5.5 5h5M5.5 8h5M5.5 11h2.5"),
    ("more", "M3.25 8v.01M8 8v.01M12.75 8v.01"),
    // Actions.
    ("note", "M2.25 2.75h11.5v8H7l-3.25 3v-3h-1.5z"),
    ("retry", "M13 8a5 5 0 1 1-1.5-3.5L13.25 6M13.25 2.5V6H9.75"),
    (
        "theme",
        "M8 1.75a6.25 6.25 0 1 0 0 12.5zM8 1.75a6.25 6.25 0 1 1 0 12.5",
    ),
];

/// The width of the icon's lines, if it is not the usual one.
fn stroke_width(name: &str) -> Option<&'static str> {
    match name {
        "failed" | "complete" | "paused" => Some("2"),
        "more" => Some("3"),
        _ => None,
    }
}

/// The definitions of all icons, invisible.
pub fn sprite() -> impl IntoView {
    let symbols = SHAPES.iter().map(|(name, path)| {
        view! {
            <path id=format!("i-{name}") d=*path fill=(*name == "running").then_some("currentColor") stroke-width=stroke_width(name) />
        }
    });
    view! { <svg class="absolute size-0" aria-hidden="true">{symbols.collect_view()}</svg> }
}

/// An icon beside its text.
pub fn icon(name: &str) -> AnyView {
    view! {
        <svg aria-hidden="true">
            <use_ href=format!("#i-{name}") />
        </svg>
    }
    .into_any()
}
