//! `/ui/workers`: all workers.

pub mod load;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::ui::access::role_to_read;
use crate::ui::components::basics::{loaded, number_of, plural};
use crate::ui::components::paging::paged;
use crate::ui::components::styles::{CARD, EMPTY};
use crate::ui::components::tables;
use crate::ui::model::worker::WorkerActivity;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::redis_clients::load as load_clients;
use crate::ui::urls;

/// The link to the clients that are connected over the Redis protocol, for users who may see them.
fn redis_clients(request: &PageRequest) -> AnyView {
    if !request.may(role_to_read(urls::REDIS_CLIENTS)) {
        return ().into_any();
    }
    Suspend::new(async {
        let view = load_clients::redis_clients(0).await;
        // On error, the link is omitted; the page itself shows the error.
        view.ok().filter(|view| view.listens).map(|view| {
            let connected = plural(view.total, "Redis client", "Redis clients");
            view! { <a class="btn" href=urls::REDIS_CLIENTS>{connected}</a> }
        })
    })
    .into_any()
}

#[component]
pub fn WorkersPage() -> impl IntoView {
    let request = page_request();
    loaded(load::workers(), move |workers| {
        let alive = workers
            .iter()
            .filter(|worker| worker.activity(request.now) == WorkerActivity::Alive)
            .count();
        let (shown, pages) = paged(&request, "/ui/workers", &workers);
        view! {
            <Title text="Workers" />
            <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
                <h1>"Workers"</h1>
                {redis_clients(&request)}
            </div>
            {if workers.is_empty() {
                view! {
                    <div class=CARD>
                        <p class=EMPTY>
                            "No workers seen recently. A worker appears here when it tries to claim a job with its name: "
                            <code>"GET /get/<queue>?host=<name>"</code> "."
                        </p>
                    </div>
                }
                    .into_any()
            } else {
                view! {
                    <p class="text-muted wrap-anywhere">
                        {format!(
                            "{} seen recently, {} alive. Alive: active in the last minute; late: in the last 5 minutes; silent: longer ago.",
                            plural(number_of(workers.len()), "worker", "workers"),
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
