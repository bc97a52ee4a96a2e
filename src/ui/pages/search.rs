//! `/ui/jobs`: the search over all jobs. The address contains the search (`q`), the position (`after`), and whether the
//! results are followed live (`follow`).

pub mod export;
pub mod load;
pub mod model;
pub mod saved;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::basics::{empty_note, loaded, number_of, plural};
use crate::ui::components::bulk::{self, BulkBar};
use crate::ui::components::exports::exports;
use crate::ui::components::icons::icon;
use crate::ui::components::styles::{CARD, CARD_PADDED, CARD_TITLE, NOTICE};
use crate::ui::components::tables::job_list::{self, JobList};
use crate::ui::components::time::exact;
use crate::ui::context::sentence;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::search::model::{
    Outcome, SearchError, SearchOrder, SearchPosition, SearchResults, SearchView, Term,
};
use crate::ui::urls::encoding::encode;

/// The parameter that asks for live results.
const FOLLOW: &str = "follow=1";

/// Maximum length of a search, in characters.
const CHARS_MAX: usize = 1_000;

/// The search syntax: examples of one kind, and their meaning.
const HELP: [(&[&str], &str); 19] = [
    (
        &["letter-1", "send"],
        "ID that starts with the word, or class that contains it. Case is ignored.",
    ),
    (
        &["state:failed,stalled"],
        "State, one of: waiting, scheduled, depends, running, stalled, failed, complete, dead, record (any Jobq job).",
    ),
    (
        &["queue:mail", "queue:billing.*"],
        "Full queue name. * matches any text, here and in all names; a quoted * is literal.",
    ),
    (
        &["class:Send*", "tag:vip", "worker:host-*"],
        "Class, tag, or the worker that is running the job.",
    ),
    (
        &["tracked:yes"],
        "Tracked qless jobs; tracked:no for all others.",
    ),
    (
        &["group:TimeoutError", "error:\"connection reset\""],
        "Last failure: its group, or part of its message. Kept until the job completes.",
    ),
    (
        &["fp:1a2b3c4d"],
        "Fingerprint of the failure message, ignoring numbers, IDs and quoted text. Shown on the page of a failure group.",
    ),
    (
        &["data.user.id:42", "data.items.0.sku:A*"],
        "Text or number at this path of a JSON payload; if the path leads to a list, any of its elements. Inside the path, a list needs an index (from 0). data.x:* matches any value.",
    ),
    (
        &["data.total:>100", "data.total:<=9.5"],
        "Compares the number at this path.",
    ),
    (
        &["payload:refund", "payload:\"order 17\""],
        "Part of the payload’s text, as it was sent. Case is ignored.",
    ),
    (
        &["priority:>=5", "retries:0"],
        "Priority, which is 0 for lmstfy and Relay jobs; retries left. Jobq jobs have neither.",
    ),
    (
        &["created:>2h", "created:<30m"],
        "Created more than 2 hours ago; less than 30 minutes ago. Units: s, m, h, d, w.",
    ),
    (
        &["created:2026-11-01", "created:>2026-11-01T10:00"],
        "Created on this day (UTC); after this minute. > and < exclude the given day or minute, >= and <= include it.",
    ),
    (
        &["updated:>1d"],
        "In its current state for more than 1 day; a Jobq job: not changed for more than 1 day. Dates as above.",
    ),
    (
        &["api:lmstfy", "ns:billing"],
        "Protocol (qless, lmstfy, relay, jobq); lmstfy namespace.",
    ),
    (
        &["-state:complete", "-tag:vip"],
        "A minus excludes matches.",
    ),
    (
        &[
            "tag:vip OR tag:eu",
            "queue:mail (state:failed OR retries:0)",
        ],
        "OR separates alternatives; parentheses group terms. A minus before parentheses excludes what they match.",
    ),
    (
        &["queue:\"a b\"", "\"data.x:1\""],
        "Put quotes around text with spaces, or around text that looks like a term. Write a quote inside quotes as \\\".",
    ),
    (
        &["queue:mail state:failed data.user.id:42"],
        "Terms are combined with AND. Up to 32 terms and 1,000 characters.",
    ),
];

#[component]
pub fn SearchPage() -> impl IntoView {
    let request = page_request();
    let text = request.raw_param("q").unwrap_or_default();
    let order = SearchOrder::parse(&request.param("sort").unwrap_or_default());
    let position = SearchPosition {
        after: request.param("after").and_then(|after| after.parse().ok()),
        order,
        offset: request.offset(),
    };
    let follows = follows(&request);
    let empty = || ().into_any();
    // A refresh searches again only if the user follows the results: rows must not move while the user reads, and
    // searches are expensive.
    if request.is_refresh && !follows {
        return page(&text, order, false, follows, (empty(), empty()));
    }
    let found = load::search(text, position.after, order, position.offset);
    loaded(found, move |view| {
        let is_invalid = matches!(view.outcome, Outcome::Invalid(_));
        // A refresh does not change what is beside the field.
        let beside = match request.is_refresh {
            true => empty(),
            false => saved::saved_searches(&view.text, &request),
        };
        let outcome = outcome(&view, &request, position);
        page(&view.text, order, is_invalid, follows, (beside, outcome))
    })
}

/// Whether the address asks for results that are updated live: only those of the first page.
fn follows(request: &PageRequest) -> bool {
    let is_first = request.param("after").is_none() && request.offset() == 0;
    is_first && is_followed(&request.query)
}

/// Whether the query of an address asks for results that are updated live.
pub fn is_followed(query: &str) -> bool {
    query.split('&').any(|pair| pair == FOLLOW)
}

/// The label of an order.
fn order_label(order: SearchOrder) -> &'static str {
    match order {
        SearchOrder::Newest => "newest first",
        SearchOrder::Priority => "by priority",
        SearchOrder::Retries => "by retries left",
        SearchOrder::Time => "by When, earliest first",
        SearchOrder::Queue => "by queue",
        SearchOrder::Class => "by class",
        SearchOrder::State => "by state",
    }
}

fn page(
    text: &str,
    order: SearchOrder,
    is_invalid: bool,
    follows: bool,
    (beside, outcome): (AnyView, AnyView),
) -> AnyView {
    let orders = SearchOrder::ALL.map(|it| {
        view! { <option value=it.as_str() selected=it == order>{order_label(it)}</option> }
    });
    view! {
        <Title text="Jobs" />
        <h1>"Jobs"</h1>
        <form id="search" method="get" action="/ui/jobs" role="search" class="flex flex-wrap gap-2 [--spacing-button:32px]" data-keep="">
            <label for="q" class="sr-only">"Search all jobs"</label>
            <input
                id="q"
                class="min-w-60 flex-1 font-mono text-sm"
                name="q"
                type="search"
                value=text.to_owned()
                maxlength=CHARS_MAX.to_string()
                placeholder="queue:mail state:failed data.user.id:42"
                autocomplete="off"
                list=saved::SUGGESTED
                autocapitalize="off"
                spellcheck="false"
                aria-invalid=is_invalid.then_some("true")
                aria-describedby=is_invalid.then_some("mistake")
                data-shortcut="/"
            />
            <select name="sort" aria-label="Order">{orders.into_iter().collect_view()}</select>
            <button type="submit" class="btn btn-strong px-4">"Search"</button>
        </form>
        <div id="beside-search" class="-mt-2 empty:-mt-4" data-keep="">{beside}</div>
        <div id="hits" class="flex flex-col gap-4" data-keep=(!follows).then_some("")>{outcome}</div>
        {help()}
    }
    .into_any()
}

/// The address of a search.
fn address(text: &str, position: SearchPosition) -> String {
    let mut address = "/ui/jobs".to_owned();
    let mut mark = '?';
    if !text.trim().is_empty() {
        address.push_str("?q=");
        encode(text, &mut address);
        mark = '&';
    }
    if position.order != SearchOrder::Newest {
        address.push_str(&format!("{mark}sort={}", position.order.as_str()));
        mark = '&';
    }
    if let Some(after) = position.after {
        address.push_str(&format!("{mark}after={after}"));
    }
    if position.offset > 0 {
        address.push_str(&format!("{mark}offset={}", position.offset));
    }
    address
}

fn outcome(view: &SearchView, request: &PageRequest, position: SearchPosition) -> AnyView {
    match &view.outcome {
        Outcome::Invalid(error) => invalid_search(&view.text, error),
        Outcome::Found(found) => results(&view.text, found, request, position),
    }
}

/// The search with the invalid part marked.
fn invalid_search(text: &str, error: &SearchError) -> AnyView {
    let part =
        |from: usize, length: usize| text.chars().skip(from).take(length).collect::<String>();
    let (from, to) = (error.from, error.to.max(error.from));
    let wrong = match part(from, to - from) {
        // If something is missing, there is no text to mark, so the mark needs a space.
        wrong if wrong.trim().is_empty() => "\u{a0}".to_owned(),
        wrong => wrong,
    };
    view! {
        <div id="mistake" class=CARD_PADDED role="alert">
            <h2>{format!("Invalid search at column {}", from + 1)}</h2>
            <pre class="mb-2 whitespace-pre-wrap"><code class="text-sm leading-6">{part(0, from)}<mark>{wrong}</mark>{part(to, CHARS_MAX)}</code></pre>
            <p class="wrap-anywhere">{sentence(&error.why)}</p>
        </div>
    }
    .into_any()
}

fn results(
    text: &str,
    found: &SearchResults,
    request: &PageRequest,
    position: SearchPosition,
) -> AnyView {
    let all = found.sorted.unwrap_or(found.jobs.len());
    let all = number_of(all);
    let is_all = position.after.is_none() && found.next.is_none();
    let bar = BulkBar {
        search: Some(text),
        all: is_all.then_some(all),
        shown: found.jobs.len(),
        actions: bulk::actions_of(None, None),
    };
    view! {
        {terms(&found.terms, position.order)}
        {(!found.exact.is_empty())
            .then(|| {
                view! {
                    <section class=CARD>
                        <div class=CARD_TITLE><h2>"Exact ID match"</h2></div>
                        {job_list::jobs("Jobs with exactly this ID", JobList::Found, &found.exact, request)}
                    </section>
                }
            })}
        <div class=CARD>
            {if found.jobs.is_empty() {
                empty_note(empty_text(text, found, position))
            } else {
                view! {
                    {bulk::bar(bar, request)}
                    {job_list::jobs("Matching jobs", JobList::Found, &found.jobs, request)}
                }
                    .into_any()
            }}
        </div>
        {found.is_limited.then(|| limit_notice(found, request))}
        {(found.sorted.is_some() && found.next.is_some()).then(|| sorted_notice(all))}
        {pager(text, found, position)}
        {(!found.jobs.is_empty()).then(|| exports(text))}
        <p class="text-muted wrap-anywhere">
            "As of " {exact(request.now)} ", " {order_label(position.order)} ". "
            <a href=request.here()>"Search again"</a>
            {follow_link(text, request, position)}
        </p>
    }
    .into_any()
}

/// The link that follows the results of the first page live, or stops it.
fn follow_link(text: &str, request: &PageRequest, position: SearchPosition) -> AnyView {
    if position.after.is_some() || position.offset > 0 {
        return ().into_any();
    }
    let plain = address(text, position);
    if follows(request) {
        return view! { " · updated live, every few seconds · " <a href=plain>"Stop following"</a> }
            .into_any();
    }
    let mark = if plain.contains('?') { '&' } else { '?' };
    view! { " · " <a href=format!("{plain}{mark}{FOLLOW}")>"Follow live"</a> }.into_any()
}

/// The terms of the search, each with a link that removes it.
fn terms(terms: &[Term], order: SearchOrder) -> AnyView {
    let first = SearchPosition {
        order,
        ..SearchPosition::default()
    };
    if terms.is_empty() {
        return ().into_any();
    }
    let terms = terms.iter().map(|term| {
        view! {
            <li>
                <span class="tag mr-0 min-w-0 rounded-r-none border-r-0 bg-card px-2 py-px">{term.description.clone()}</span>
                <a class="flex min-h-6 min-w-6 items-center justify-center rounded-r-sm border border-line text-muted hover:text-failed hover:no-underline" href=address(&term.without, first) aria-label=format!("Remove {}", term.description)>"×"</a>
            </li>
        }
    });
    view! { <ul class="flex flex-wrap gap-x-2 gap-y-1.5 *:flex *:min-w-0" aria-label="Search terms">{terms.collect_view()}</ul> }.into_any()
}

/// Why the list is empty.
fn empty_text(text: &str, found: &SearchResults, position: SearchPosition) -> AnyView {
    if found.is_limited {
        return "No matches so far.".into_any();
    }
    if position.after.is_some() || position.offset > 0 {
        return "No more jobs.".into_any();
    }
    if text.trim().is_empty() {
        return view! { "No jobs yet. " <a href="/ui">"How to add a first job"</a> }.into_any();
    }
    view! {
        "No matching jobs. Remove a term above, or see the search syntax below. Canceled, acknowledged and deleted \
        jobs cannot be found, and complete jobs are removed after a while."
    }
    .into_any()
}

/// The note that the search stopped at its limit, and how to narrow it.
fn limit_notice(found: &SearchResults, request: &PageRequest) -> AnyView {
    let searched = time::number(number_of(found.searched));
    let searched_back_to = found.searched_back_to.map_or(String::new(), |moment| {
        format!(
            ", back to jobs created {}",
            time::relative(moment, request.now)
        )
    });
    view! {
        <div class=format!("{NOTICE} text-waiting") role="status">
            {icon("waiting")}
            <span>
                {format!("Searched {searched} of about {}{searched_back_to}. ", plural(found.total, "job", "jobs"))}
                "Continue, or narrow the search with terms that use an index: queue:, state:, tag:, tracked:yes, class: without *, or group: together with \
                state:failed."
            </span>
        </div>
    }
    .into_any()
}

/// The note that only some of the matching jobs are sorted.
fn sorted_notice(sorted: i64) -> AnyView {
    view! {
        <p class="text-muted wrap-anywhere">
            {format!("Only the newest {} are sorted. There may be more.", plural(sorted, "match", "matches"))}
        </p>
    }
    .into_any()
}

/// Links to the first page and the next page.
fn pager(text: &str, found: &SearchResults, position: SearchPosition) -> AnyView {
    let shown = found.jobs.len();
    let (next, is_first) = match found.sorted {
        None => {
            let after = |after| SearchPosition {
                after: Some(after),
                ..position
            };
            (found.next.map(after), position.after.is_none())
        }
        Some(sorted) => {
            let offset = position.offset.saturating_add(shown);
            let next = SearchPosition { offset, ..position };
            (
                (shown > 0 && offset < sorted).then_some(next),
                position.offset == 0,
            )
        }
    };
    let label = match found.sorted {
        None if found.is_limited => "Continue searching",
        _ => "Next",
    };
    let first = SearchPosition {
        order: position.order,
        ..SearchPosition::default()
    };
    let first_label = match found.sorted {
        None => "Newest",
        Some(_) => "First",
    };
    let jobs = plural(number_of(shown), "job", "jobs");
    view! {
        <nav class="flex items-center gap-3 text-muted" aria-label="Pagination">
            {(!is_first).then(|| view! { <a class="btn" href=address(text, first)>{first_label}</a> })}
            <span>
                {if is_first && next.is_none() { jobs } else { format!("{jobs} on this page") }}
            </span>
            {next
                .map(|next| view! { <a class="btn" rel="next" href=address(text, next)>{label}</a> })}
        </nav>
    }
    .into_any()
}

fn help() -> AnyView {
    let rows = HELP.map(|(examples, meaning)| {
        let examples = examples.iter().map(|example| {
            view! { <a href=address(example, SearchPosition::default())><code>{*example}</code></a> " " }
        });
        view! {
            <div>
                <dt>{examples.collect_view()}</dt>
                <dd>{meaning}</dd>
            </div>
        }
    });
    view! {
        <details>
            <summary>"Search syntax"</summary>
            <dl class=format!("{CARD_PADDED} divide-y divide-line *:grid *:grid-cols-[minmax(220px,340px)_1fr] *:gap-x-4 *:gap-y-0.5 *:py-1.25 max-md:*:grid-cols-1 [&_a]:mr-2 [&_a]:inline-block [&_a]:min-h-6 [&_a]:wrap-anywhere")>{rows.collect_view()}</dl>
        </details>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_contains_the_search() {
        let (first, after) = (
            SearchPosition::default(),
            SearchPosition {
                after: Some(7),
                ..SearchPosition::default()
            },
        );
        assert_eq!(address(" ", first), "/ui/jobs");
        assert_eq!(address("", after), "/ui/jobs?after=7");
        assert_eq!(
            address("a b:\"ü&\"", after),
            "/ui/jobs?q=a%20b%3A%22%C3%BC%26%22&after=7"
        );
        let sorted = SearchPosition {
            order: SearchOrder::Priority,
            offset: 50,
            ..first
        };
        assert_eq!(address("a", sorted), "/ui/jobs?q=a&sort=priority&offset=50");
    }
}
