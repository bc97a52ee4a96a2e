//! Queries: the form, examples, and results.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::basics::{empty_note, number_of, plural};
use crate::ui::components::commands::{commands, escape_textarea, shell_quote};
use crate::ui::components::icons::icon;
use crate::ui::components::styles::{CARD, CARD_PADDED, CARD_TITLE, PAYLOAD, QUESTION};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::records::load::FOUND_MAX;
use crate::ui::pages::records::model::{
    QueryPosition, RecordFilter, RecordList, RecordRow, RefusedQuery,
};
use crate::ui::pages::records::{call, selection_bar, table};
use crate::ui::urls;

/// The records whose state begins with CREATED.
pub const CREATED: &str = r#"[["IS", "json_extract(state, '$[0]')", "CREATED"]]"#;

/// Example queries, and descriptions of their results.
const EXAMPLES: [(&str, &str); 8] = [
    (CREATED, "state starts with CREATED"),
    (r#"[["IS", "j.state", null]]"#, "no state"),
    (
        r#"[["=", "json_extract(state, '$[0]') IN ('CREATED', 'RETRY')", "1"]]"#,
        "CREATED or RETRY",
    ),
    (
        r#"[["!=", "json_extract(state, '$[0]')", "'FINISHED'"]]"#,
        "label other than FINISHED",
    ),
    (
        r#"[["=", "json_extract(state, '$[1].node')", 1]]"#,
        "assigned to node 1",
    ),
    (
        r#"[["=", "json_extract(j.state, '$[0]')", "'ASSIGNED'"], ["<", "modified", "strftime('%s','now') - 60"]]"#,
        "assigned, unchanged for 60 s",
    ),
    (
        r#"[["LIKE", "json_extract(payload, '$.msg')", "'hello%'"]]"#,
        "message starts with hello",
    ),
    (r#"[[">=", "id", 100]]"#, "ID 100 or higher"),
];

/// The query form, filled with the last query.
pub fn form(queue_ref: &QueueRef, filter: &RecordFilter, request: &PageRequest) -> AnyView {
    let query = match filter {
        RecordFilter::Found(query) => Some(query.clone()),
        _ => None,
    };
    let clear = query
        .is_some()
        .then(|| view! { <a class="btn" href=urls::queue(queue_ref)>"Show all jobs"</a> });
    view! {
        <div class=CARD_PADDED>
            <form method="get" action=urls::queue(queue_ref) role="search" class="mb-2 grid gap-2">
                <label for="q" class="text-sm text-muted">"Query: a list of " <code>"[OP, EXPR, EXPR]"</code> "; a job must match all of them"</label>
                <textarea id="q" class="field-sizing-content max-h-60 min-h-12.5" name="q" rows="2" data-shortcut="/" spellcheck="false" autocomplete="off" required placeholder=CREATED>{escape_textarea(query.as_deref().unwrap_or_default())}</textarea>
                <div class="flex flex-wrap items-center gap-2">
                    <button type="submit" class="btn btn-strong">"Find jobs"</button>
                    {clear}
                </div>
            </form>
            {help(queue_ref, query.as_deref(), request)}
        </div>
    }
    .into_any()
}

fn help(queue_ref: &QueueRef, query: Option<&str>, request: &PageRequest) -> AnyView {
    let examples = EXAMPLES.map(|(query, finds)| {
        view! {
            <li><a href=urls::query_results(queue_ref, query)><code>{query}</code></a> <span class="block text-xs text-muted">{finds}</span></li>
        }
    });
    let body = format!(r#"{{"query": {}}}"#, query.unwrap_or(CREATED));
    let line = format!(
        "{} -d {}",
        call(queue_ref, request, "GET", "/query_jobs"),
        shell_quote(&body)
    );
    let what = match query {
        Some(_) => "Run this query",
        None => "Run the first example",
    };
    view! {
        <details>
            <summary>"Examples and API call (curl)"</summary>
            <div class="grid gap-3">
                <ul id="examples" class="columns-2 gap-x-8 max-sm:columns-1 *:break-inside-avoid *:py-0.75 *:wrap-anywhere">{examples.collect_view()}</ul>
                <p class="text-muted wrap-anywhere">
                    "Expressions use SQLite syntax and the columns " <code>"id"</code> ", " <code>"payload"</code> ", "
                    <code>"state"</code> ", " <code>"events"</code> " and " <code>"modified"</code>
                    ". A single word that is not a column is text."
                </p>
                {commands("curl-query", vec![(what, line)])}
            </div>
        </details>
    }
    .into_any()
}

/// The results of the query, or its error. A refresh does not change them.
pub fn results(queue_ref: &QueueRef, list: &RecordList, request: &PageRequest) -> AnyView {
    let inner = match list {
        RecordList::Found(rows) => found(queue_ref, rows, request),
        RecordList::Refused(refused) => invalid_query(refused),
        RecordList::Page(..) | RecordList::Nothing => ().into_any(),
    };
    view! { <section id="found-jobs" data-keep="" aria-label="Query results">{inner}</section> }
        .into_any()
}

fn found(queue_ref: &QueueRef, rows: &[RecordRow], request: &PageRequest) -> AnyView {
    let n = number_of(rows.len());
    let title = match rows.len() {
        0 => "No matching jobs".to_owned(),
        FOUND_MAX => format!("First {n} matching jobs"),
        1 => "1 matching job".to_owned(),
        _ => plural(n, "matching job", "matching jobs"),
    };
    view! {
        <div class=CARD>
            <div class=CARD_TITLE>
                <h2>{title}</h2>
                <span class="text-muted wrap-anywhere [&>a]:text-sm [&>a]:underline">{format!("at {} UTC · ", time::clock(request.now))} <a href=request.here()>"Run again"</a></span>
            </div>
            {if rows.is_empty() {
                empty_note("No job in this queue matches the query.")
            } else {
                view! {
                    {selection_bar(None, rows, request)}
                    {table("Matching jobs, least recently changed first", queue_ref, rows, request)}
                }
                    .into_any()
            }}
        </div>
    }
    .into_any()
}

fn invalid_query(refused: &RefusedQuery) -> AnyView {
    view! {
        <div class=format!("{QUESTION} border-l-failed") role="alert">
            <h2 class="text-failed">{icon("failed")} " Invalid query"</h2>
            <p>{refused.why.clone()}</p>
            {refused.mark.as_ref().map(query_with_error)}
        </div>
    }
    .into_any()
}

/// The text of the query with the error marked.
fn query_with_error(mark: &QueryPosition) -> AnyView {
    let text = match mark.at {
        None => mark.text.clone().into_any(),
        Some(at) => {
            let mut chars = mark.text.chars();
            let before: String = chars.by_ref().take(at).collect();
            // An error at the end of the text is marked after the last character.
            let here = chars.next().unwrap_or('␣');
            let after: String = chars.collect();
            view! { {before} <mark>{here.to_string()}</mark> {after} }.into_any()
        }
    };
    view! {
        <p class="text-muted wrap-anywhere">{mark.place.clone()} ":"</p>
        <pre class=PAYLOAD tabindex="0" aria-label="Position in the query">{text}</pre>
    }
    .into_any()
}
