//! `/ui/namespaces` and `/ui/namespaces/{namespace}`: the lmstfy namespaces and their tokens.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::time;
use crate::ui::actions::tokens::RevokeToken;
use crate::ui::components::basics::{element_id, empty_note, loaded, number_of, plural};
use crate::ui::components::commands::{api, commands, copy, curl_commands, shell_quote};
use crate::ui::components::forms::{ConfirmDialog, confirm_dialog, hidden};
use crate::ui::components::icons::icon;
use crate::ui::components::paging::{key_pager, paged};
use crate::ui::components::state::count_cell;
use crate::ui::components::styles::{CARD, CARD_PADDED, CARD_TITLE, CRUMB, FIELDS, FLASH, NOTICE};
use crate::ui::components::tables;
use crate::ui::components::time::{ago, exact};
use crate::ui::model::PAGE_ROWS;
use crate::ui::model::paging::{Neighbors, PagePlace};
use crate::ui::model::state::{Counts, EffectiveState};
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::namespaces::model::{
    NamespaceRow, NamespaceView, NamespacesView, NewToken, TokenRow,
};
use crate::ui::pages::queues::{Sort, sort, table};
use crate::ui::urls;
use crate::ui::urls::encoding::segment;

#[component]
pub fn NamespacesPage() -> impl IntoView {
    let request = page_request();
    loaded(load::namespaces(), move |view| all(&view, &request))
}

fn all(view: &NamespacesView, request: &PageRequest) -> AnyView {
    let columns = [
        ("Namespace", ""),
        ("Queues", "num"),
        ("Tokens", "num"),
        ("Running", "num mid"),
        ("Waiting", "num"),
        ("Scheduled", "num mid"),
        ("Dead", "num"),
    ];
    let (shown, pages) = paged(request, "/ui/namespaces", &view.rows);
    let rows = shown.iter().map(row);
    view! {
        <Title text="Namespaces" />
        <h1>"Namespaces"</h1>
        <p class="text-muted wrap-anywhere">
            "lmstfy queues belong to namespaces. A token gives full access to its namespace and nothing else."
        </p>
        {no_token_notice(view.open)}
        {secret(request)}
        <div class=CARD>
            {if view.rows.is_empty() {
                empty_note("No namespaces yet. A namespace is created with its first token or queue.")
            } else {
                tables::table("Namespaces", tables::head(&columns), rows.collect_view().into_any())
            }}
            {pages}
        </div>
        {token_form(None)}
    }
    .into_any()
}

fn row(row: &NamespaceRow) -> AnyView {
    let Counts {
        running,
        stalled,
        waiting,
        scheduled,
        dead,
        ..
    } = row.counts;
    view! {
        <tr data-key=row.name.clone()>
            <th scope="row"><a class="name" href=urls::namespace(&row.name)>{row.name.clone()}</a></th>
            <td class="num">{time::number(number_of(row.queues))}</td>
            <td class="num">{time::number(number_of(row.tokens))}</td>
            {count_cell(running + stalled, EffectiveState::Running, "mid")}
            {count_cell(waiting, EffectiveState::Waiting, "")}
            {count_cell(scheduled, EffectiveState::Scheduled, "mid")}
            {count_cell(dead, EffectiveState::Dead, "")}
        </tr>
    }
    .into_any()
}

#[component]
pub fn NamespacePage() -> impl IntoView {
    let request = page_request();
    loaded(load::namespace(request.name(2)), move |view| {
        one(view, &request)
    })
}

fn one(mut view: NamespaceView, request: &PageRequest) -> AnyView {
    sort(&mut view.queues, Sort::Need, request.now);
    let name = &view.name;
    let dead: i64 = view.queues.iter().map(|queue| queue.counts.dead).sum();
    let (shown, pages) = paged(request, &urls::namespace(name), &view.queues);
    view! {
        <Title text=format!("Namespace {name}") />
        <p class=CRUMB><a href="/ui/namespaces">"Namespaces"</a></p>
        <h1 class="name">{name.clone()}</h1>
        <p class="text-muted wrap-anywhere">
            {plural(number_of(view.queues.len()), "queue", "queues")} " · " {plural(number_of(view.tokens.len()), "token", "tokens")}
            {(dead > 0)
                .then(|| {
                    view! { " · " <a class="text-dead" href=urls::dead_in_namespace(name)>{plural(dead, "dead job", "dead jobs")}</a> }
                })}
        </p>
        {no_token_notice(view.open)}
        {secret(request)}
        {tokens(&view, request)}
        {token_form(Some(name))}
        <div class=CARD>
            <div class=CARD_TITLE><h2>"Queues"</h2></div>
            {if view.queues.is_empty() {
                empty_note("No queues yet. A queue is created when the first job is published to it, and deleted after it has been empty for a while.")
            } else {
                table("Queues of this namespace", shown, None, None, request.now)
            }}
            {pages}
        </div>
        {curl(name, request)}
    }
    .into_any()
}

/// The note that requests need no token, if `open`.
fn no_token_notice(open: bool) -> Option<AnyView> {
    let notice = || {
        view! {
            <p class=format!("{NOTICE} text-stalled")>
                {icon("stalled")}
                <span>"This server runs with " <code>"--no-auth"</code> ". Anyone who can reach it can use every namespace without a token."</span>
            </p>
        }
        .into_any()
    };
    open.then(notice)
}

/// The new token, or why it was not created. A refresh keeps it.
fn secret(request: &PageRequest) -> AnyView {
    let inside = use_context::<NewToken>().map(|token| match token.made {
        Ok(secret) => made(&token.namespace, &token.description, secret, request),
        Err(why) => view! {
            <p class=format!("{FLASH} text-failed") role="status">
                {icon("failed")} <span>"Token not created: " {why} "."</span>
            </p>
        }
        .into_any(),
    });
    view! { <div id="secret" class="empty:hidden" data-keep="">{inside}</div> }.into_any()
}

fn made(namespace: &str, description: &str, secret: String, request: &PageRequest) -> AnyView {
    let path = format!("/api/{}/work", segment(namespace));
    let header = format!("X-Token: {secret}");
    let line = format!(
        "curl -X PUT -H {} {} --data-binary {}",
        shell_quote(&header),
        shell_quote(&api(request, &path)),
        shell_quote("hello")
    );
    view! {
        <section class=format!("{CARD_PADDED} border-l-3 border-l-complete [&>*+*]:mt-3 [&_h2_svg]:text-complete") aria-labelledby="secret-title" role="status">
            <h2 id="secret-title">{icon("complete")} " " {format!("Token created for {namespace}: {description}")}</h2>
            <p>"Copy the secret now. It is not stored and not shown again. If you lose it, create another token."</p>
            <p class="flex flex-wrap items-center gap-2">
                <code id="secret-text" class="rounded-md bg-page px-2.5 py-1.5 text-base wrap-anywhere" tabindex="0">{secret}</code>
                {copy("secret-text".to_owned(), "Copy the secret".to_owned())}
            </p>
            {commands("secret-curl", vec![("Publish a first job to the queue work with this token", line)])}
        </section>
    }
    .into_any()
}

/// A page of the tokens of a namespace, which are sorted by creation time and ID, and the positions of its neighbors. A
/// position is that of a token: its creation time and its ID.
fn page_of<'a>(tokens: &'a [TokenRow], place: &PagePlace) -> (&'a [TokenRow], Neighbors) {
    let position = |text: &str| {
        let (created, name) = text.split_once('-')?;
        Some((created.parse::<i64>().ok()?, name.to_owned()))
    };
    let order = |token: &TokenRow, (created, name): &(i64, String)| {
        (token.created, &token.name).cmp(&(*created, name))
    };
    let start = match (position(&place.after), position(&place.before)) {
        (Some(after), _) => tokens.partition_point(|token| order(token, &after).is_le()),
        (_, Some(before)) => tokens
            .partition_point(|token| order(token, &before).is_lt())
            .saturating_sub(PAGE_ROWS),
        _ => 0,
    };
    // If the last tokens were revoked, the page shows those before them.
    let start = match start < tokens.len() {
        true => start,
        false => tokens.len().saturating_sub(PAGE_ROWS),
    };
    let rest = tokens.get(start..).unwrap_or_default();
    let shown = rest.get(..PAGE_ROWS).unwrap_or(rest);
    let text = |token: &TokenRow| format!("{}-{}", token.created, token.name);
    let neighbors = Neighbors {
        previous: shown.first().filter(|_| start > 0).map(text),
        next: shown.last().filter(|_| rest.len() > PAGE_ROWS).map(text),
    };
    (shown, neighbors)
}

fn tokens(view: &NamespaceView, request: &PageRequest) -> AnyView {
    let (shown, neighbors) = page_of(&view.tokens, &request.page());
    let path = urls::namespace(&view.name);
    let total = number_of(view.tokens.len());
    let columns = [
        ("Description", ""),
        ("Created", "num mid"),
        ("Expires", "num"),
        ("Last used", "num mid"),
        ("Token ID", "mid"),
        ("Action", "w-[1%] text-right"),
    ];
    let rows = shown.iter().map(|token| {
        view! {
            <tr data-key=token.name.clone()>
                <th scope="row" class="text-cell">{token.description.clone()}</th>
                <td class="num mid">{ago(token.created, request.now)}</td>
                <td class="num">{expiry(token, request.now)}</td>
                <td class="num mid">{last_use(token)}</td>
                <td class="mid"><code>{token.name.clone()}</code></td>
                <td class="w-[1%] text-right whitespace-nowrap">{revoke(&view.name, token)}</td>
            </tr>
        }
    });
    view! {
        <section class=CARD aria-labelledby="tokens">
            <div class=CARD_TITLE>
                <h2 id="tokens">"Tokens"</h2>
                <span class="text-muted wrap-anywhere">"Secrets cannot be shown again: only their hashes are stored."</span>
            </div>
            {if view.tokens.is_empty() {
                let text = if view.open {
                    "No tokens. This server accepts requests without a token."
                } else {
                    "No tokens. Create one to use this namespace through the API."
                };
                empty_note(text)
            } else {
                tables::table("Tokens of this namespace", tables::head(&columns), rows.collect_view().into_any())
            }}
        </section>
        {key_pager(&path, &neighbors, shown.len(), total)}
    }
    .into_any()
}

/// The expiry of the token.
fn expiry(token: &TokenRow, now: i64) -> AnyView {
    match token.expires {
        None => "never".into_any(),
        Some(at) if token.expired => {
            view! { <span class="text-failed">"expired "{ago(at, now)}</span> }.into_any()
        }
        Some(at) => ago(at, now),
    }
}

/// The hour of the last use.
fn last_use(token: &TokenRow) -> AnyView {
    match token.last_used {
        None => "not used".into_any(),
        Some(hour) => exact(hour),
    }
}

fn revoke(namespace: &str, token: &TokenRow) -> AnyView {
    confirm_dialog(ConfirmDialog {
        id: element_id("revoke-", &token.name),
        button: "Revoke…".to_owned(),
        danger: true,
        title: "Revoke this token?".to_owned(),
        text: format!(
            "“{}”, {}. Clients that use it are rejected immediately, including those waiting for a job. Jobs and queues are kept. This cannot be undone.",
            token.description, token.name
        ),
        action: RevokeToken::PATH,
        fields: vec![
            ("namespace", namespace.to_owned()),
            ("name", token.name.clone()),
            ("back", urls::namespace(namespace)),
        ],
        confirm_label: "Revoke token".to_owned(),
        cancel_label: "Keep token",
    })
    .into_any()
}

/// The form for a new token, in this namespace, or in any if it is `None`. After an error it contains the user's input.
fn token_form(namespace: Option<&str>) -> AnyView {
    let refused = use_context::<NewToken>().filter(|token| token.made.is_err());
    let is_refused = refused.is_some();
    let (typed, description, expires) = refused.map_or_else(Default::default, |token| {
        (token.namespace, token.description, token.expires)
    });
    let action = namespace.map_or_else(|| "/ui/namespaces".to_owned(), urls::namespace);
    view! {
        <section class=CARD_PADDED aria-labelledby="new-token">
            <h2 id="new-token">"Create token"</h2>
            // A refresh keeps what the user has typed when an error is shown.
            <form method="post" action=action class=FIELDS data-keep=is_refused.then_some("")>
                // Repeating the request, such as by a reload, creates no second token.
                {hidden(vec![("once", page_request().now.to_string())])}
                {namespace
                    .is_none()
                    .then(|| {
                        view! {
                            <div>
                                <label for="token-namespace">"Existing or new namespace"</label>
                                <input
                                    id="token-namespace"
                                    name="namespace"
                                    type="text"
                                    value=typed
                                    required
                                    maxlength="255"
                                    pattern="[A-Za-z0-9_\\-]+"
                                    title="Letters, digits, - and _"
                                    autocomplete="off"
                                />
                            </div>
                        }
                    })}
                <div class="flex-[1_1_240px] [&_input]:w-full">
                    <label for="token-description">"Description: who uses it and for what"</label>
                    <input
                        id="token-description"
                        name="description"
                        type="text"
                        value=description
                        required
                        maxlength="1024"
                        autocomplete="off"
                    />
                </div>
                <div>
                    <label for="token-expires">"Expiry (optional, a duration or a time)"</label>
                    <input
                        id="token-expires"
                        name="expires"
                        type="text"
                        value=expires
                        maxlength="64"
                        placeholder="30d"
                        title="A duration in s, m, h, d or w such as 30d, or a time such as 2030-01-31T00:00:00Z. Leave empty for no expiry."
                        autocomplete="off"
                    />
                </div>
                <button type="submit" class="btn btn-strong">"Create token"</button>
            </form>
        </section>
    }
    .into_any()
}

fn curl(name: &str, request: &PageRequest) -> AnyView {
    let call = |path: &str| shell_quote(&api(request, &format!("/token/{}{path}", segment(name))));
    curl_commands(vec![
        (
            "Create token",
            format!(
                "curl {} --data-urlencode {}",
                call(""),
                shell_quote("description=the mailer")
            ),
        ),
        (
            "Create a token that expires",
            format!(
                "curl {} --data-urlencode {} -d expires=30d",
                call(""),
                shell_quote("description=the mailer")
            ),
        ),
        ("List tokens by token ID", format!("curl {}", call(""))),
        (
            "List tokens with expiry and last use",
            format!("curl {}", call("?details=true")),
        ),
        (
            "Revoke a token by its secret or token ID",
            format!("curl -X DELETE {}", call("/sha256:…")),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens of which several were created at the same time.
    fn tokens(count: usize) -> Vec<TokenRow> {
        let token = |n: usize| TokenRow {
            name: format!("sha256:{n:016x}"),
            description: String::new(),
            created: number_of(n / 7),
            expires: None,
            expired: false,
            last_used: None,
        };
        (0..count).map(token).collect()
    }

    #[test]
    fn each_token_is_on_one_page() {
        for count in [0, 1, 19, 20, 21, 40, 41, 1_000] {
            let all = tokens(count);
            let (mut place, mut seen, mut pages) = (PagePlace::default(), Vec::new(), 0);
            loop {
                let (shown, neighbors) = page_of(&all, &place);
                assert_eq!(neighbors.previous.is_none(), seen.is_empty());
                if let Some(previous) = neighbors.previous {
                    let before = PagePlace {
                        before: previous,
                        ..PagePlace::default()
                    };
                    assert_eq!(page_of(&all, &before).0, &all[seen.len() - 20..seen.len()]);
                }
                seen.extend_from_slice(shown);
                pages += 1;
                match neighbors.next {
                    Some(next) => place = PagePlace::after(next),
                    None => break,
                }
            }
            assert_eq!(seen, all);
            assert_eq!(pages, count.div_ceil(20).max(1));
        }
    }

    #[test]
    fn a_page_whose_tokens_were_revoked_shows_those_before() {
        let all = tokens(45);
        let (_, neighbors) = page_of(&all, &PagePlace::default());
        let next = PagePlace::after(neighbors.next.unwrap());
        let (shown, neighbors) = page_of(&all[..20], &next);
        assert_eq!((shown, neighbors), (&all[..20], Neighbors::default()));
        let (shown, neighbors) = page_of(&all[..15], &PagePlace::after("5-x".to_owned()));
        assert_eq!((shown, neighbors), (&all[..15], Neighbors::default()));
        assert_eq!(
            page_of(&all, &PagePlace::after("x".to_owned())).0,
            &all[..20]
        );
    }
}
