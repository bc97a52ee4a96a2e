//! Queries: the box for them, examples, and what was found or refused.

use leptos::prelude::*;

use super::super::icons::icon;
use super::super::parts::{commands, many, quoted, written};
use super::super::visit::{Visit, to};
use super::{call, table};
use crate::api::read::FOUND_MAX;
use crate::api::views::{Mark, Place, RecordList, RecordRow, RefusedQuery, Wanted};
use crate::time;

/// Those whose state begins with CREATED.
pub const CREATED: &str = r#"[["IS", "json_extract(state, '$[0]')", "CREATED"]]"#;

/// Queries to begin with, and what they find.
const EXAMPLES: [(&str, &str); 8] = [
    (CREATED, "the state begins with CREATED"),
    (r#"[["IS", "j.state", null]]"#, "never given a state"),
    (
        r#"[["=", "json_extract(state, '$[0]') IN ('CREATED', 'RETRY')", "1"]]"#,
        "either of two",
    ),
    (
        r#"[["!=", "json_extract(state, '$[0]')", "'FINISHED'"]]"#,
        "not finished",
    ),
    (
        r#"[["=", "json_extract(state, '$[1].node')", 1]]"#,
        "assigned to node 1",
    ),
    (
        r#"[["=", "json_extract(j.state, '$[0]')", "'ASSIGNED'"], ["<", "modified", "strftime('%s','now') - 60"]]"#,
        "assigned, and untouched for a minute",
    ),
    (
        r#"[["LIKE", "json_extract(payload, '$.msg')", "'hello%'"]]"#,
        "the message begins with hello",
    ),
    (r#"[[">=", "id", 100]]"#, "by id"),
];

/// The box, with the query that was run last.
pub fn form(place: &Place, wanted: &Wanted, visit: &Visit) -> AnyView {
    let query = match wanted {
        Wanted::Found(query) => Some(query.clone()),
        _ => None,
    };
    let clear = query
        .is_some()
        .then(|| view! { <a class="button" href=to::queue(place)>"Show all jobs"</a> });
    view! {
        <div class="card padded query">
            <form method="get" action=to::queue(place) role="search">
                <label for="q">"Query: a list of " <code>"[OP, EXPR, EXPR]"</code> ", all of which hold"</label>
                <textarea id="q" name="q" rows="2" data-hot="/" spellcheck="false" autocomplete="off" required placeholder=CREATED>{written(query.as_deref().unwrap_or_default())}</textarea>
                <div class="row">
                    <button type="submit" class="button strong">"Find jobs"</button>
                    {clear}
                </div>
            </form>
            {help(place, query.as_deref(), visit)}
        </div>
    }
    .into_any()
}

fn help(place: &Place, query: Option<&str>, visit: &Visit) -> AnyView {
    let examples = EXAMPLES.map(|(query, finds)| {
        view! {
            <li><a href=to::found(place, query)><code>{query}</code></a> <span class="aside">{finds}</span></li>
        }
    });
    let body = format!(r#"{{"query": {}}}"#, query.unwrap_or(CREATED));
    let line = format!(
        "{} -d {}",
        call(place, visit, "GET", "/query_jobs"),
        quoted(&body)
    );
    let what = match query {
        Some(_) => "This query by curl",
        None => "The first of them by curl",
    };
    view! {
        <details class="more">
            <summary>"Examples, and the same by curl"</summary>
            <div class="help">
                <ul class="examples">{examples.collect_view()}</ul>
                <p class="aside">
                    "Expressions are SQLite’s, over the columns " <code>"id"</code> ", " <code>"payload"</code> ", "
                    <code>"state"</code> ", " <code>"events"</code> " and " <code>"modified"</code>
                    " of one job. A single word that is no column is a text."
                </p>
                {commands("curl-query", vec![(what, line)])}
            </div>
        </details>
    }
    .into_any()
}

/// What a query found, or why it was not run. It stays as it is while the page is refreshed.
pub fn answer(place: &Place, list: &RecordList, visit: &Visit) -> AnyView {
    let inner = match list {
        RecordList::Found(rows) => found(place, rows, visit),
        RecordList::Refused(refused) => refusal(refused),
        RecordList::Page(..) | RecordList::Nothing => ().into_any(),
    };
    view! { <section id="found-jobs" data-keep="" aria-label="What the query finds">{inner}</section> }
        .into_any()
}

fn found(place: &Place, rows: &[RecordRow], visit: &Visit) -> AnyView {
    let n = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let title = match rows.len() {
        0 => "No job matches".to_owned(),
        FOUND_MAX => format!("The first {n} jobs that match"),
        1 => "1 job matches".to_owned(),
        _ => many(n, "job matches", "jobs match"),
    };
    view! {
        <div class="card">
            <div class="card-title">
                <h2>{title}</h2>
                <span class="aside">{format!("at {} UTC · ", time::clock(visit.now))} <a href=visit.here()>"Run it again"</a></span>
            </div>
            {if rows.is_empty() {
                view! { <p class="empty">"No job of this queue is as the query says."</p> }.into_any()
            } else {
                table("Jobs that match, longest untouched first", place, rows, visit)
            }}
        </div>
    }
    .into_any()
}

fn refusal(refused: &RefusedQuery) -> AnyView {
    view! {
        <div class="card padded question danger" role="alert">
            <h2 class="s-failed">{icon("failed")} " The query cannot be run"</h2>
            <p>{refused.why.clone()}</p>
            {refused.mark.as_ref().map(marked)}
        </div>
    }
    .into_any()
}

/// The place of what is wrong, pointed at.
fn marked(mark: &Mark) -> AnyView {
    let text = match mark.at {
        None => mark.text.clone().into_any(),
        Some(at) => {
            let mut chars = mark.text.chars();
            let before: String = chars.by_ref().take(at).collect();
            // Behind the end there is nothing to point at but the end.
            let here = chars.next().unwrap_or('␣');
            let after: String = chars.collect();
            view! { {before} <mark>{here.to_string()}</mark> {after} }.into_any()
        }
    };
    view! {
        <p class="aside">{mark.place.clone()} ":"</p>
        <pre class="payload" tabindex="0" aria-label="The place in the query">{text}</pre>
    }
    .into_any()
}
