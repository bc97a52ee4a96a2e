//! `/ui/redis`: the clients that are connected to this server over the Redis protocol.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::ui::components::basics::{loaded, plural};
use crate::ui::components::paging::pager;
use crate::ui::components::styles::{CARD, CRUMB, EMPTY};
use crate::ui::components::tables::{head, table};
use crate::ui::components::time::ago;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::redis_clients::model::{RedisClient, RedisClientsView};
use crate::ui::urls;

#[component]
pub fn RedisClientsPage() -> impl IntoView {
    let request = page_request();
    loaded(load::redis_clients(request.offset()), move |view| {
        view! {
            <Title text="Redis clients" />
            <p class=CRUMB><a href="/ui/workers">"Workers"</a></p>
            <h1>"Redis clients"</h1>
            {content(&view, &request)}
        }
        .into_any()
    })
}

fn content(view: &RedisClientsView, request: &PageRequest) -> AnyView {
    if !view.listens {
        return view! {
            <div class=CARD>
                <p class=EMPTY>
                    "This server does not accept clients over the Redis protocol. Start it with "
                    <code>"--redis-listen <address>:<port>"</code> " to connect clients of qless."
                </p>
            </div>
        }
        .into_any();
    }
    let connected = plural(view.total, "qless client", "qless clients");
    view! {
        <p class="text-muted wrap-anywhere">
            {format!(
                "{connected} connected to this server over the Redis protocol. With several servers on one database, each server lists only its own clients.",
            )}
        </p>
        {(view.total > 0).then(|| view! { <div class=CARD>{rows(&view.clients, request.now)}</div> })}
        {pager(request, urls::REDIS_CLIENTS, view.clients.len(), view.total)}
    }
    .into_any()
}

fn rows(clients: &[RedisClient], now: i64) -> AnyView {
    let columns = [
        ("Client", ""),
        ("Address", ""),
        ("Connected", "num mid"),
        ("Last command", "num"),
        ("Subscriptions", "num mid"),
        ("Library", "wide"),
    ];
    let rows = clients.iter().map(|client| {
        view! {
            <tr data-key=client.number.to_string()>
                <th scope="row">{name(client)}</th>
                <td><code>{client.address.clone()}</code></td>
                <td class="num mid">{ago(client.connected, now)}</td>
                <td class="num">
                    {(!client.command.is_empty()).then(|| view! { <code>{client.command.clone()}</code> " " })}
                    {ago(client.active, now)}
                </td>
                <td class="num mid">{client.subscriptions.to_string()}</td>
                <td class="wide">{client.library.clone()}</td>
            </tr>
        }
    });
    table(
        "Redis clients",
        head(&columns),
        rows.collect_view().into_any(),
    )
}

fn name(client: &RedisClient) -> AnyView {
    match client.name.as_str() {
        "" => view! { <span class="text-muted wrap-anywhere">{format!("client {}", client.number)}</span> }.into_any(),
        name => view! { <span class="name">{name.to_owned()}</span> }.into_any(),
    }
}
