//! `/ui/workers`: all workers.

pub mod load;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::ui::components::basics::{loaded, plural};
use crate::ui::components::paging::paged;
use crate::ui::components::styles::CARD;
use crate::ui::components::tables;
use crate::ui::model::worker::Pulse;
use crate::ui::page_request::page_request;

#[component]
pub fn WorkersPage() -> impl IntoView {
    let request = page_request();
    loaded(load::workers(), move |workers| {
        let alive = workers
            .iter()
            .filter(|worker| worker.pulse(request.now) == Pulse::Alive)
            .count();
        let (shown, pages) = paged(&request, "/ui/workers", &workers);
        let n = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        view! {
            <Title text="Workers" />
            <h1>"Workers"</h1>
            {if workers.is_empty() {
                view! {
                    <div class=CARD>
                        <p class="px-4 py-5 text-muted">
                            "No workers seen recently. A worker appears here when it asks for jobs with its name: "
                            <code>"GET /get/<queue>?host=<name>"</code> "."
                        </p>
                    </div>
                }
                    .into_any()
            } else {
                view! {
                    <p class="text-muted wrap-anywhere">
                        {format!(
                            "{} seen recently, {} alive. Alive: active in the last minute; late: in the last 5 minutes; silent: before.",
                            plural(n(workers.len()), "worker", "workers"),
                            alive,
                        )}
                    </p>
                    <div class=CARD>{tables::workers(shown, request.now)}</div>
                    {pages}
                }
                    .into_any()
            }}
        }
        .into_any()
    })
}
