//! Bulk operations: checkboxes, and buttons that lead to the confirmation (`pages/confirm.rs`). Lists of jobs have
//! them, except the children of a recurring job and the dead letters of a queue. The island `Live` counts the selected
//! rows (`islands/live/select.rs`).

use leptos::prelude::*;

use crate::auth::Role;
use crate::time;
use crate::ui::components::forms::hidden;
use crate::ui::components::icons::icon;
use crate::ui::components::links::quoted_if_blank;
use crate::ui::components::styles::CHOICES;
use crate::ui::model::job::JobRow;
use crate::ui::model::operation::{JobActionKind, OperationRequest};
use crate::ui::model::queue_ref::Protocol;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::PageRequest;
use crate::ui::urls;

/// The ID of the form of the checkboxes.
const FORM: &str = "bulk";

/// The heading of the column of checkboxes, and its class. [`tables::head`](super::tables::head) adds the checkbox for
/// the whole page.
pub const SELECT: (&str, &str) = ("Select", "check-cell");

/// The label of the button.
pub fn label(action: JobActionKind) -> &'static str {
    match action {
        JobActionKind::Retry => "Retry",
        JobActionKind::Move => "Move",
        JobActionKind::Priority => "Set priority",
        JobActionKind::Tag => "Tag",
        JobActionKind::Untag => "Untag",
        JobActionKind::RenameTag => "Rename tag",
        JobActionKind::Track => "Track",
        JobActionKind::Untrack => "Untrack",
        JobActionKind::TimeOut => "Time out",
        JobActionKind::Cancel => "Cancel or delete",
        JobActionKind::EditAndRetry => "Edit and retry",
        JobActionKind::Complete => "Complete",
    }
}

/// The keyboard shortcut of the button.
fn key(action: JobActionKind) -> Option<&'static str> {
    match action {
        JobActionKind::Retry => Some("r"),
        JobActionKind::Move => Some("m"),
        JobActionKind::Track => Some("t"),
        JobActionKind::Cancel => Some("c"),
        JobActionKind::Priority
        | JobActionKind::Tag
        | JobActionKind::Untag
        | JobActionKind::RenameTag
        | JobActionKind::Untrack
        | JobActionKind::TimeOut
        | JobActionKind::EditAndRetry
        | JobActionKind::Complete => None,
    }
}

fn button(action: JobActionKind, key: Option<&'static str>) -> AnyView {
    let class = match action {
        JobActionKind::Cancel => "btn btn-danger",
        _ => "btn",
    };
    view! {
        <button type="submit" name="do" value=action.as_str() class=class data-shortcut=key>
            {(action == JobActionKind::Retry).then(|| icon("retry"))} {label(action)} "…"
        </button>
    }
    .into_any()
}

/// Whether the user may select jobs.
pub fn may_select(request: &PageRequest) -> bool {
    request.may(Role::Operator)
}

/// Whether the address selects the whole page, which the link of the bar does without JavaScript.
fn selects_all(request: &PageRequest) -> bool {
    // Each row asks, so nothing is decoded.
    request.query.split('&').any(|field| field == "select=all")
}

/// The checkbox of a job.
pub fn checkbox(job: &JobRow, request: &PageRequest) -> AnyView {
    checkbox_of(job.seq, &job.id, request)
}

/// The checkbox of the job with this insertion number.
pub fn checkbox_of(seq: i64, id: &str, request: &PageRequest) -> AnyView {
    let about = format!("Select job {}", quoted_if_blank(id));
    view! {
        <td class="check-cell">
            <input type="checkbox" name="job" value=seq.to_string() form=FORM checked=selects_all(request) aria-label=about />
        </td>
    }
    .into_any()
}

/// The jobs of a list, for the buttons above it.
pub struct BulkBar<'a> {
    /// The search that finds all jobs of the list; `None` if there is none, so that only selected jobs can be changed.
    pub search: Option<&'a str>,
    /// Their number, if it is known.
    pub all: Option<i64>,
    /// The jobs on this page.
    pub shown: usize,
    /// The actions that are possible for jobs of the list.
    pub actions: Vec<JobActionKind>,
}

/// The actions that are possible for jobs in a queue of this protocol and in this state; `None` if a list has several.
pub fn actions_of(protocol: Option<Protocol>, state: Option<EffectiveState>) -> Vec<JobActionKind> {
    let is_possible = |action: &JobActionKind| match action {
        JobActionKind::Retry => {
            state.is_none_or(|it| matches!(it, EffectiveState::Failed | EffectiveState::Dead))
        }
        JobActionKind::Cancel => state != Some(EffectiveState::Complete),
        // Only the page of a tag offers it.
        JobActionKind::RenameTag => false,
        JobActionKind::TimeOut => {
            let is_running = matches!(
                state,
                Some(EffectiveState::Running | EffectiveState::Stalled)
            );
            is_running && protocol.is_none_or(|protocol| protocol == Protocol::Qless)
        }
        _ => protocol.is_none_or(|protocol| protocol == Protocol::Qless),
    };
    JobActionKind::FOR_MANY
        .into_iter()
        .filter(is_possible)
        .collect()
}

/// The link to the confirmation of an action on all jobs of a search, as a button with these words.
pub fn link_for_all(
    action: JobActionKind,
    search: &str,
    words: &'static str,
    request: &PageRequest,
) -> AnyView {
    if !may_select(request) {
        return ().into_any();
    }
    let operation = OperationRequest {
        action: action.as_str().to_owned(),
        all: true,
        q: search.to_owned(),
        ..OperationRequest::default()
    };
    let address = urls::confirm(&operation, "", &request.here());
    view! { <a class="btn" href=address>{words}</a> }.into_any()
}

/// The number of selected rows, which a script fills in.
pub fn selected_count() -> AnyView {
    view! { <span data-selected="" data-keep=""></span> }.into_any()
}

/// The buttons for the selected jobs and for all jobs of the list.
pub fn bar(bar: BulkBar<'_>, request: &PageRequest) -> AnyView {
    if !may_select(request) || bar.shown == 0 {
        return ().into_any();
    }
    let all = match bar.all {
        Some(1) => "the only match".to_owned(),
        Some(n) => format!("all {} matching", time::number(n)),
        None => "all matching jobs".to_owned(),
    };
    let mut fields = vec![("from", list_address(request))];
    fields.extend(bar.search.map(|search| ("q", search.to_owned())));
    let has_search = bar.search.is_some();
    let buttons = bar
        .actions
        .into_iter()
        .map(|action| button(action, key(action)));
    view! {
        <form id=FORM method="get" action="/ui/confirm" class=CHOICES>
            {hidden(fields)}
            <fieldset class="flex flex-wrap items-center gap-2">
                <legend class="sr-only">"Which jobs"</legend>
                <label class="inline-flex min-h-7 items-center gap-1.5"><input type="radio" name="of" value="selected" checked /> "selected jobs" {selected_count()}</label>
                {has_search.then(|| view! { <label class="inline-flex min-h-7 items-center gap-1.5"><input type="radio" name="of" value="all" data-shortcut="* m" /> {all}</label> })}
                {select_link(bar.shown, request)}
            </fieldset>
            <div class="flex flex-wrap items-center gap-2">
                {buttons.collect_view()}
                <span class="ml-2 text-muted">"Export:"</span>
                {export_button("csv", "CSV")}
                {export_button("jsonl", "JSON lines")}
            </div>
        </form>
    }
    .into_any()
}

/// Exports the selected jobs, or all.
fn export_button(extension: &str, label: &'static str) -> AnyView {
    let (path, about) = (
        format!("/ui/jobs.{extension}"),
        format!("{label}: export these jobs"),
    );
    view! { <button type="submit" class="btn" formaction=path aria-label=about>{label}</button> }
        .into_any()
}

/// The address of the list without a selection.
fn list_address(request: &PageRequest) -> String {
    let query: Vec<&str> = request.query.split('&').collect();
    let kept = query
        .into_iter()
        .filter(|pair| !pair.is_empty() && *pair != "select=all");
    match kept.collect::<Vec<_>>().join("&") {
        query if query.is_empty() => request.path.clone(),
        query => format!("{}?{query}", request.path),
    }
}

/// Selects the whole page without JavaScript. With it, the heading of the list has a checkbox.
fn select_link(shown: usize, request: &PageRequest) -> AnyView {
    let list = list_address(request);
    let (address, label) = if selects_all(request) {
        (list, "Select none".to_owned())
    } else {
        let mark = if list.contains('?') { '&' } else { '?' };
        let label = match shown {
            1 => "Select the job on this page".to_owned(),
            n => format!("Select the {n} on this page"),
        };
        (format!("{list}{mark}select=all"), label)
    };
    view! { <a class="scripted:hidden" href=address>{label}</a> }.into_any()
}

/// The buttons for all jobs that match a search.
pub fn all_jobs_bar(text: String, actions: &[JobActionKind], request: &PageRequest) -> AnyView {
    if !may_select(request) {
        return ().into_any();
    }
    let fields = vec![
        ("of", "all".to_owned()),
        ("q", text),
        ("from", list_address(request)),
    ];
    let buttons = actions.iter().map(|action| button(*action, None));
    view! {
        <form method="get" action="/ui/confirm" class="flex flex-wrap items-center gap-2">
            {hidden(fields)} <span class="text-muted wrap-anywhere">"All of these jobs:"</span>
            {buttons.collect_view()}
        </form>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_offers_only_actions_that_are_possible() {
        let of = |protocol, state| actions_of(Some(protocol), Some(state));
        let relay = of(Protocol::Relay, EffectiveState::Waiting);
        assert_eq!(relay, [JobActionKind::Cancel]);
        let dead = of(Protocol::Lmstfy, EffectiveState::Dead);
        assert_eq!(dead, [JobActionKind::Retry, JobActionKind::Cancel]);
        let complete = of(Protocol::Qless, EffectiveState::Complete);
        assert!(!complete.contains(&JobActionKind::Cancel));
        assert!(!complete.contains(&JobActionKind::Retry));
        assert_eq!(complete.len(), 6);
        // Only running jobs can be timed out.
        let in_some_lists = [JobActionKind::RenameTag, JobActionKind::TimeOut];
        let mut others = JobActionKind::FOR_MANY.to_vec();
        others.retain(|action| !in_some_lists.contains(action));
        assert_eq!(actions_of(None, None), others);
        let running = of(Protocol::Qless, EffectiveState::Running);
        assert!(running.contains(&JobActionKind::TimeOut));
    }

    #[test]
    fn the_address_of_a_list_keeps_all_but_the_selection() {
        let of = |query: &str| {
            list_address(&PageRequest {
                path: "/ui/tags/x".to_owned(),
                query: query.to_owned(),
                ..PageRequest::default()
            })
        };
        assert_eq!(of(""), "/ui/tags/x");
        assert_eq!(of("select=all"), "/ui/tags/x");
        assert_eq!(of("offset=50&select=all"), "/ui/tags/x?offset=50");
    }
}
