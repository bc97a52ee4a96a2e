//! The events that the charts mark, as marks and as a list.

use leptos::prelude::*;

use crate::auth::Role;
use crate::time::iso;
use crate::ui::components::basics::plural;
use crate::ui::components::chart::Mark;
use crate::ui::components::links::link_if_allowed;
use crate::ui::components::styles::{CARD_PADDED, SECTION_TITLE};
use crate::ui::components::time::exact;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::statistics::model::{ChartEvent, RangeView};
use crate::ui::urls;

/// The marks: one for each span with events, at the first of them.
pub fn marks(view: &RangeView) -> Vec<Mark> {
    let width = view.series.width.max(1);
    let span = |event: &ChartEvent| (event.at - view.from).div_euclid(width);
    let mut oldest_first: Vec<&ChartEvent> = view.events.iter().collect();
    oldest_first.reverse();
    let spans = oldest_first.chunk_by(|one, next| span(one) == span(next));
    let marks = spans.filter_map(|events| {
        let first = events.first()?;
        let title = match events.len() - 1 {
            0 => first.text.clone(),
            n => format!(
                "{}, and {}",
                first.text,
                plural(n as i64, "more event", "more events")
            ),
        };
        Some(Mark {
            at: first.at,
            title,
        })
    });
    marks.collect()
}

/// The list of the events, newest first.
pub fn list(view: &RangeView, request: &PageRequest) -> AnyView {
    if view.events.is_empty() {
        return ().into_any();
    }
    let events = view.events.iter().map(|event| {
        let text = match event.link.as_str() {
            "" => view! { <span class="name">{event.text.clone()}</span> }.into_any(),
            link => link_if_allowed(link.to_owned(), event.text.clone()),
        };
        view! { <li>{exact(event.at)} " " {text}</li> }
    });
    let minute = |at: i64| iso(at).get(..16).unwrap_or_default().to_owned();
    let audit = urls::with_fields(
        "/ui/audit",
        [
            ("from", minute(view.from).as_str()),
            ("until", minute(view.to).as_str()),
        ],
    );
    view! {
        <section class=CARD_PADDED aria-labelledby="events">
            <div class=SECTION_TITLE>
                <h2 id="events">"Marked events"</h2>
                {request.may(Role::Admin).then(|| view! { <a href=audit>"Audit log of this period"</a> })}
            </div>
            <ul class="flex flex-col gap-1 [&_a]:underline">{events.collect_view()}</ul>
            <p class="text-muted wrap-anywhere">
                {view.has_more_events.then(|| format!("Shows the newest {}. ", plural(view.events.len() as i64, "event", "events")))}
                "Pauses, option changes and bulk operations in the dashboard and on the command line. Changes through the APIs are not in the audit log."
            </p>
        </section>
    }
    .into_any()
}
