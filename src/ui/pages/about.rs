//! `/ui/about`: the server, its database, and the addresses of the protocols.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::basics::{card, definitions, loaded, number_of, plural};
use crate::ui::components::commands::{api, curl_commands, shell_quote};
use crate::ui::components::icons::icon;
use crate::ui::components::state::protocol_badge;
use crate::ui::components::styles::HEALTHY;
use crate::ui::components::time::{exact, when};
use crate::ui::model::queue_ref::Protocol;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::about::model::AboutView;

/// A database response time above this is shown as slow, in microseconds.
const SLOW_US: i64 = 250_000;

/// The directory with the documents of the protocols, in the repository.
const DOCS: &str = "docs/protocols";

#[component]
pub fn AboutPage() -> impl IntoView {
    let request = page_request();
    loaded(load::about(), move |view| page(&view, &request))
}

fn page(view: &AboutView, request: &PageRequest) -> AnyView {
    view! {
        <Title text="About" />
        <h1>"About"</h1>
        <p class="text-muted wrap-anywhere">{format!("Switchyard {}, up for {}.", view.version, time::span(request.now.saturating_sub(view.since)))}</p>
        {health(view)}
        <div class="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
            {card("server", "Server", definitions(server(view, request)))}
            {card("database", "Database", definitions(database(view)))}
        </div>
        {card("apis", "Protocols", protocols(request))}
        {curl(request)}
    }
    .into_any()
}

/// The state of the database.
fn health(view: &AboutView) -> AnyView {
    let took = time::span(view.took);
    if view.took > SLOW_US {
        return view! {
            <p class="flex min-h-9 items-center gap-2 rounded-md border border-line bg-card px-4 py-1.5">
                {icon("stalled")}
                <span>{format!("The database took {took} to respond. Check its disk and the load on its machine.")}</span>
            </p>
        }
        .into_any();
    }
    view! {
        <p class=HEALTHY>{icon("complete")} <span>{format!("The database responded in {took}.")}</span></p>
    }
    .into_any()
}

fn server(view: &AboutView, request: &PageRequest) -> Vec<(&'static str, AnyView)> {
    let clock = if view.trusts_client_clock {
        "set by qless clients (--trust-client-clock); no maintenance of qless jobs"
    } else if view.kind.starts_with("SQLite") {
        "of this server"
    } else {
        "of the database"
    };
    vec![
        ("Version", view.version.clone().into_any()),
        ("Started", when(view.since, request.now)),
        ("Time", exact(request.now)),
        ("Clock", clock.into_any()),
        (
            "Servers on this database",
            view.servers.to_string().into_any(),
        ),
        (
            "Contents",
            view! {
                <a href="/ui/queues">{plural(number_of(view.queues), "queue", "queues")}</a> ", "
                <a href="/ui/workers">{plural(number_of(view.workers), "worker", "workers")}</a>
            }
            .into_any(),
        ),
        ("License", "MIT or Apache-2.0".into_any()),
    ]
}

fn database(view: &AboutView) -> Vec<(&'static str, AnyView)> {
    let survives = if view.survives_power {
        "crashes and power losses (full)"
    } else {
        "crashes of the server (process); a power loss or a crash of Postgres can lose the most recent writes"
    };
    vec![
        ("Type", view.kind.clone().into_any()),
        (
            "Location",
            view! { <code>{view.address.clone()}</code> }.into_any(),
        ),
        ("Size", bytes(view.bytes).into_any()),
        ("Last migration", view.migration.to_string().into_any()),
        ("Acknowledged writes survive", survives.into_any()),
    ]
}

/// A size in bytes, kB, MB, GB or TB.
fn bytes(n: i64) -> String {
    let (mut size, mut unit) = (n as f64, "bytes");
    for next in ["kB", "MB", "GB", "TB"] {
        if size < 1_000.0 {
            break;
        }
        size /= 1_000.0;
        unit = next;
    }
    match unit {
        "bytes" => format!("{n} bytes"),
        unit => format!("{size:.1} {unit}"),
    }
}

/// The addresses of the protocols, and the link to their reference.
fn protocols(request: &PageRequest) -> AnyView {
    view! {
        {definitions(apis(request))}
        <p class="mt-2"><a href="/ui/api">"API reference"</a></p>
    }
    .into_any()
}

fn apis(request: &PageRequest) -> Vec<(&'static str, AnyView)> {
    let row = |name, protocol: Protocol, path: &str, document: &str| {
        let view = view! {
            <code>{api(request, path)}</code> " " {protocol_badge(protocol)}
            <span class="text-muted wrap-anywhere">{format!(" · {DOCS}/{document}.md")}</span>
        };
        (name, view.into_any())
    };
    vec![
        row("qless over HTTP", Protocol::Qless, "/", "qless"),
        row(
            "lmstfy",
            Protocol::Lmstfy,
            "/api/{namespace}/{queue}",
            "lmstfy",
        ),
        row("Relay v2", Protocol::Relay, "/v2/queues", "relay"),
        row("Jobq", Protocol::Jobq, "/api/v0", "jobq"),
    ]
}

fn curl(request: &PageRequest) -> AnyView {
    let line = |path: &str| format!("curl {}", shell_quote(&api(request, path)));
    curl_commands(vec![
        ("Health check", line("/health")),
        ("Queues and their job counts", line("/queues")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_suitable_unit() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(1_000), "1.0 kB");
        assert_eq!(bytes(1_234_567), "1.2 MB");
        assert_eq!(bytes(i64::MAX), "9223372.0 TB");
    }
}
