//! `/ui/operations`: all operations; `/ui/operations/{id}`: one operation and its progress.

pub mod load;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::auth::Role;
use crate::time;
use crate::ui::actions::operations::{StopOperation, UndoOperation};
use crate::ui::components::basics::{definitions, loaded, number_of, plural};
use crate::ui::components::forms::hidden;
use crate::ui::components::icons::icon;
use crate::ui::components::links::{queue_link_with_protocol, quoted_if_blank};
use crate::ui::components::paging::key_pager;
use crate::ui::components::styles::{CARD, CARD_PADDED, CARD_TITLE, CRUMB, EMPTY, NOTICE};
use crate::ui::components::tables;
use crate::ui::components::time::{ago, exact, when};
use crate::ui::model::operation::{
    JobActionKind, OperationRow, OperationState, OperationView, OperationsView, SkipRow,
};
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::confirm::{job_count, sentence};
use crate::ui::urls;

const LIST: &str = "/ui/operations";

#[component]
pub fn OperationsPage() -> impl IntoView {
    let request = page_request();
    loaded(load::operations(request.page()), move |view| {
        list(&view, &request)
    })
}

#[component]
pub fn OperationPage() -> impl IntoView {
    let request = page_request();
    let operation = load::operation(request.name(2), request.page());
    loaded(operation, move |view| page(&view, &request))
}

/// The state as icon, word and color.
fn chip(row: &OperationRow) -> AnyView {
    let (class, shape, word) = match row.state {
        OperationState::Running if row.started.is_none() => ("text-waiting", "waiting", "queued"),
        OperationState::Running => ("text-running", "running", "running"),
        OperationState::Done => ("text-complete", "complete", "done"),
        OperationState::Stopped => ("text-paused", "paused", "stopped"),
        OperationState::Failed => ("text-failed", "failed", "failed"),
        OperationState::Undoing => ("text-running", "running", "undoing"),
        OperationState::Undone => ("text-paused", "complete", "undone"),
    };
    view! { <span class=format!("chip {class}")>{icon(shape)} {word}</span> }.into_any()
}

/// The action with its argument.
fn title(row: &OperationRow) -> String {
    let what = sentence(row.action, &job_count(row.total, row.is_minimum));
    let arg = &row.request.arg;
    match row.action {
        JobActionKind::Move => format!("{what} to {}", quoted_if_blank(arg)),
        JobActionKind::Priority => format!("{what} to {arg}"),
        JobActionKind::Tag | JobActionKind::Untag => format!("{what}: {arg}"),
        JobActionKind::RenameTag => format!("{what} to {arg}"),
        JobActionKind::Retry
        | JobActionKind::Cancel
        | JobActionKind::Track
        | JobActionKind::Untrack
        | JobActionKind::TimeOut
        | JobActionKind::EditAndRetry
        | JobActionKind::Complete => what,
    }
}

/// The jobs of the operation.
fn subject(row: &OperationRow) -> AnyView {
    let n = number_of(row.request.jobs.len());
    if !row.request.all {
        return plural(n, "selected job", "selected jobs").into_any();
    }
    let text = match row.request.q.trim() {
        "" => "all jobs".into_any(),
        text => view! { <code>{text.to_owned()}</code> }.into_any(),
    };
    view! { <a href=urls::search(&row.request.q)>{text}</a> }.into_any()
}

fn list(view: &OperationsView, request: &PageRequest) -> AnyView {
    let columns = [
        ("Operation", ""),
        ("State", ""),
        ("Jobs", "text-cell mid"),
        ("Started by", "mid"),
        ("Requested", "num"),
        ("Applied", "num"),
        ("Skipped", "num mid"),
    ];
    let rows = view.rows.iter().map(|row| {
        view! {
            <tr data-key=row.id.to_string()>
                <th scope="row" class="text-cell"><a href=urls::operation(row.id)>{title(row)}</a></th>
                <td>{chip(row)}</td>
                <td class="text-cell mid">{subject(row)}</td>
                <td class="mid">{row.who.clone()}</td>
                <td class="num">{ago(row.created, request.now)}</td>
                <td class="num">{time::number(row.done)}</td>
                <td class="num mid">{time::number(row.skipped)}</td>
            </tr>
        }
    });
    let body = if view.rows.is_empty() {
        view! {
            <p class=EMPTY>
                "No operations yet. Select jobs, or all matching jobs of a search, under "
                <a href="/ui/jobs">"Jobs"</a> ". Bulk operations and their progress are listed here."
            </p>
        }
        .into_any()
    } else {
        let rows = rows.collect_view().into_any();
        tables::table(
            "Bulk operations, newest first",
            tables::head(&columns),
            rows,
        )
    };
    view! {
        <Title text="Bulk operations" />
        <h1>"Bulk operations"</h1>
        <p class="text-muted wrap-anywhere">"Actions on many jobs, newest first. The last 1,000 are kept for 30 days."</p>
        <div class=CARD>{body}</div>
        {key_pager(LIST, &view.neighbors, view.rows.len(), view.total)}
    }
    .into_any()
}

fn page(view: &OperationView, request: &PageRequest) -> AnyView {
    let row = &view.row;
    let title = title(row);
    view! {
        <Title text=title.clone() />
        <p class=CRUMB><a href=LIST>"Bulk operations"</a></p>
        <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
            <div class="flex flex-wrap items-center gap-2"><h1 class="name">{title}</h1> {chip(row)}</div>
            <div class="flex flex-wrap items-center gap-2">{buttons(row, request)}</div>
        </div>
        {row.error.clone().map(|error| view! { <p class=format!("{NOTICE} text-failed")>{icon("failed")} <span>{error}</span></p> })}
        <section class=CARD_PADDED aria-labelledby="progress">
            <h2 id="progress">"Progress"</h2>
            {progress(row)} {facts(row, request.now)}
        </section>
        {skipped(view)}
    }
    .into_any()
}

fn buttons(row: &OperationRow, request: &PageRequest) -> AnyView {
    if !request.may(Role::Operator) {
        return ().into_any();
    }
    let fields = || hidden(vec![("id", row.id.to_string()), ("back", request.here())]);
    let runs = row.state == OperationState::Running;
    let undo = row.undo_until.map(|until| {
        view! {
            <form method="post" action=UndoOperation::PATH class="flex flex-wrap items-center gap-2">
                {fields()} <button type="submit" class="btn btn-strong" data-undo="">"Undo"</button>
                <span class="text-muted wrap-anywhere">"until " {exact(until)} ", " {ago(until, request.now)}</span>
            </form>
        }
    });
    let stop = runs.then(|| {
        view! {
            <form method="post" action=StopOperation::PATH>
                {fields()} <button type="submit" class="btn">"Stop"</button>
            </form>
        }
    });
    let again = (!runs && row.state != OperationState::Undoing && row.action.is_for_many()).then(
        || view! { <a class="btn" href=urls::confirm(&row.request, "", "")>"Run again…"</a> },
    );
    view! { {undo} {stop} {again} }.into_any()
}

/// The progress as a bar and in words.
fn progress(row: &OperationRow) -> AnyView {
    let is_undo = matches!(row.state, OperationState::Undoing | OperationState::Undone);
    let (at, of) = if is_undo {
        (row.restored + row.lost, row.done)
    } else {
        (
            row.done + row.skipped,
            row.total.max(row.done + row.skipped),
        )
    };
    // Once it is done, the jobs that are not processed no longer exist or no longer match.
    let at = if row.state == OperationState::Done {
        of
    } else {
        at
    };
    let words = match (is_undo, row.state) {
        (true, _) => format!(
            "{} of {} restored",
            time::number(row.restored),
            plural(row.done, "job", "jobs")
        ),
        (false, OperationState::Done) => {
            let seen = row.done + row.skipped;
            format!("{} processed", plural(seen, "job", "jobs"))
        }
        (false, _) => format!(
            "{} of {} processed",
            time::number(at),
            job_count(row.total, row.is_minimum)
        ),
    };
    view! {
        <progress max=of.max(1).to_string() value=at.to_string() aria-label=words.clone()></progress>
        <p>{words} "."</p>
    }
    .into_any()
}

fn facts(row: &OperationRow, now: i64) -> AnyView {
    let moment = |moment: i64| when(moment, now);
    let number = |n: i64| time::number(n).into_any();
    let counted = job_count(row.total, row.is_minimum);
    let mut facts = vec![
        ("Jobs", subject(row)),
        ("Started by", row.who.clone().into_any()),
        ("Requested", moment(row.created)),
    ];
    facts.extend(row.started.map(|at| ("Started", moment(at))));
    facts.extend(row.ended.map(|at| ("Ended", moment(at))));
    facts.push(("Jobs at start", counted.into_any()));
    facts.push(("Applied", number(row.done)));
    facts.push(("Skipped", number(row.skipped)));
    if matches!(row.state, OperationState::Undoing | OperationState::Undone) {
        facts.push(("Restored", number(row.restored)));
        facts.push(("Not restored", number(row.lost)));
    }
    if let Some(rate) = rate(row, now) {
        facts.push(("Jobs/s", number(rate)));
        let left = row.total - row.done - row.skipped;
        if row.state == OperationState::Running && left > 0 && rate > 0 {
            let span = left.saturating_mul(1_000_000) / rate;
            let about = format!("about {}", time::span(span.max(1_000_000)));
            facts.push(("Time left", about.into_any()));
        }
    }
    if row.can_be_undone && row.state == OperationState::Running {
        facts.push(("Undo", "for 30 s after it ends".into_any()));
    } else if (row.action == JobActionKind::Cancel || !row.action.is_for_many())
        && row.undo_until.is_none()
        && row.state != OperationState::Undoing
    {
        facts.push(("Undo", "not available".into_any()));
    }
    definitions(facts)
}

/// Jobs processed per second, on average.
fn rate(row: &OperationRow, now: i64) -> Option<i64> {
    let span = row.ended.unwrap_or(now) - row.started?;
    let seen = row.done + row.skipped;
    // An operation of a single batch starts and ends at the same time.
    (span > 0 && seen > 0).then(|| seen.saturating_mul(1_000_000) / span)
}

fn skipped(view: &OperationView) -> AnyView {
    let row = &view.row;
    let all = row.skipped + row.lost;
    if all == 0 {
        return ().into_any();
    }
    let columns = [("Job", ""), ("Queue", "mid"), ("Reason", "text-cell")];
    let skip = |skip: &SkipRow| {
        let (job, queue) = match &skip.queue_ref {
            Some((queue_ref, id)) => (
                view! { <a class="id" href=urls::job(queue_ref, id)>{quoted_if_blank(id)}</a> }
                    .into_any(),
                queue_link_with_protocol(queue_ref),
            ),
            None => (format!("#{}", skip.job).into_any(), "–".into_any()),
        };
        view! {
            <tr data-key=skip.job.to_string()>
                <th scope="row">{job}</th>
                <td class="mid">{queue}</td>
                <td class="text-cell"><span class="wrap-anywhere">{skip.reason.clone()}</span></td>
            </tr>
        }
    };
    let rows = view.skips.iter().map(skip);
    let rows = rows.collect_view().into_any();
    view! {
        <section class=CARD aria-labelledby="skipped">
            <div class=CARD_TITLE><h2 id="skipped">"Skipped jobs"</h2></div>
            {tables::table("Skipped jobs with reasons", tables::head(&columns), rows)}
        </section>
        {(all > view.known)
            .then(|| {
                view! {
                    <p class="text-muted wrap-anywhere">
                        {format!("{} in total. Reasons are kept for the first {}.", plural(all, "skipped job", "skipped jobs"), time::number(view.known))}
                    </p>
                }
            })}
        {key_pager(&urls::operation(row.id), &view.neighbors, view.skips.len(), view.known)}
    }
    .into_any()
}
