//! What can be done with many jobs at once: the buttons, each of which leads to a question (`app/confirm.rs`).

use leptos::prelude::*;

use super::icons::icon;
use super::parts::hidden;
use super::visit::Visit;
use crate::api::views::{Deed, JobRow, Role};
use crate::time;

/// The form to which the boxes belong that stand beside jobs.
const FORM: &str = "bulk";

/// On a button.
pub fn word(deed: Deed) -> &'static str {
    match deed {
        Deed::Retry => "Retry",
        Deed::Move => "Move",
        Deed::Priority => "Set priority",
        Deed::Tag => "Tag",
        Deed::Untag => "Untag",
        Deed::Track => "Track",
        Deed::Untrack => "Untrack",
        Deed::Cancel => "Cancel or delete",
    }
}

fn button(deed: Deed) -> AnyView {
    let look = match deed {
        Deed::Cancel => "button danger",
        _ => "button",
    };
    view! {
        <button type="submit" name="do" value=deed.as_str() class=look>
            {(deed == Deed::Retry).then(|| icon("retry"))} {word(deed)} "…"
        </button>
    }
    .into_any()
}

/// Whether somebody may do anything with jobs.
pub fn may_select(visit: &Visit) -> bool {
    visit.may(Role::Operator)
}

/// The box that selects a job of a list.
pub fn tick(job: &JobRow, name: &str) -> AnyView {
    view! {
        <td class="tick">
            <input type="checkbox" name="job" value=job.seq.to_string() form=FORM aria-label=format!("Select job {name}") />
        </td>
    }
    .into_any()
}

/// What can be done with the selected jobs, or with all that fit the search; `all` is how many these are, if that is
/// known.
pub fn bar(text: &str, all: Option<i64>, visit: &Visit) -> AnyView {
    if !may_select(visit) {
        return ().into_any();
    }
    let all = match all {
        Some(1) => "the only match".to_owned(),
        Some(n) => format!("all {} matching", time::number(n)),
        None => "all matching jobs".to_owned(),
    };
    view! {
        <form id=FORM method="get" action="/ui/confirm" class="choices">
            {hidden(vec![("q", text.to_owned())])}
            <fieldset class="row">
                <legend class="unseen">"Which jobs"</legend>
                <label class="choice"><input type="radio" name="of" value="ticked" checked /> "selected jobs"</label>
                <label class="choice"><input type="radio" name="of" value="all" /> {all}</label>
            </fieldset>
            <div class="row wrap">{Deed::ALL.map(button).collect_view()}</div>
        </form>
    }
    .into_any()
}

/// What can be done with all failed jobs that this search means.
pub fn of_failed(text: String, visit: &Visit) -> AnyView {
    if !may_select(visit) {
        return ().into_any();
    }
    let fields = vec![("of", "all".to_owned()), ("q", text)];
    view! {
        <form method="get" action="/ui/confirm" class="row wrap">
            {hidden(fields)} <span class="aside">"All of these jobs:"</span>
            {[Deed::Retry, Deed::Move, Deed::Tag, Deed::Cancel].map(button).collect_view()}
        </form>
    }
    .into_any()
}
