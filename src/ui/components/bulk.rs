//! Bulk operations: checkboxes, and buttons that lead to the confirmation (`pages/confirm.rs`).

use leptos::prelude::*;

use crate::auth::Role;
use crate::time;
use crate::ui::components::forms::hidden;
use crate::ui::components::icons::icon;
use crate::ui::components::styles::CHOICES;
use crate::ui::model::job::JobRow;
use crate::ui::model::operation::JobActionKind;
use crate::ui::page_request::PageRequest;

/// The ID of the form of the checkboxes.
const FORM: &str = "bulk";

/// The label of the button.
pub fn label(action: JobActionKind) -> &'static str {
    match action {
        JobActionKind::Retry => "Retry",
        JobActionKind::Move => "Move",
        JobActionKind::Priority => "Set priority",
        JobActionKind::Tag => "Tag",
        JobActionKind::Untag => "Untag",
        JobActionKind::Track => "Track",
        JobActionKind::Untrack => "Untrack",
        JobActionKind::Cancel => "Cancel or delete",
    }
}

fn button(action: JobActionKind) -> AnyView {
    let class = match action {
        JobActionKind::Cancel => "btn btn-danger",
        _ => "btn",
    };
    view! {
        <button type="submit" name="do" value=action.as_str() class=class>
            {(action == JobActionKind::Retry).then(|| icon("retry"))} {label(action)} "…"
        </button>
    }
    .into_any()
}

/// Whether the user may select jobs.
pub fn may_select(request: &PageRequest) -> bool {
    request.may(Role::Operator)
}

/// The checkbox of a job.
pub fn checkbox(job: &JobRow, name: &str) -> AnyView {
    view! {
        <td class="check-cell">
            <input type="checkbox" name="job" value=job.seq.to_string() form=FORM aria-label=format!("Select job {name}") />
        </td>
    }
    .into_any()
}

/// The buttons for the selected jobs and for all jobs that match the search; `all` is the number of matching jobs, if
/// known.
pub fn bar(text: &str, all: Option<i64>, request: &PageRequest) -> AnyView {
    if !may_select(request) {
        return ().into_any();
    }
    let all = match all {
        Some(1) => "the only match".to_owned(),
        Some(n) => format!("all {} matching", time::number(n)),
        None => "all matching jobs".to_owned(),
    };
    view! {
        <form id=FORM method="get" action="/ui/confirm" class=CHOICES>
            {hidden(vec![("q", text.to_owned())])}
            <fieldset class="flex flex-wrap items-center gap-2">
                <legend class="sr-only">"Which jobs"</legend>
                <label class="inline-flex min-h-7 items-center gap-1.5"><input type="radio" name="of" value="selected" checked /> "selected jobs"</label>
                <label class="inline-flex min-h-7 items-center gap-1.5"><input type="radio" name="of" value="all" /> {all}</label>
            </fieldset>
            <div class="flex flex-wrap items-center gap-2">{JobActionKind::ALL.map(button).collect_view()}</div>
        </form>
    }
    .into_any()
}

/// The buttons for all failed jobs that match a search.
pub fn failed_jobs_bar(text: String, request: &PageRequest) -> AnyView {
    if !may_select(request) {
        return ().into_any();
    }
    let fields = vec![("of", "all".to_owned()), ("q", text)];
    view! {
        <form method="get" action="/ui/confirm" class="flex flex-wrap items-center gap-2">
            {hidden(fields)} <span class="text-muted wrap-anywhere">"All of these jobs:"</span>
            {[JobActionKind::Retry, JobActionKind::Move, JobActionKind::Tag, JobActionKind::Cancel].map(button).collect_view()}
        </form>
    }
    .into_any()
}
