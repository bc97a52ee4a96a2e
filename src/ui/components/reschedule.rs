//! Buttons that run a scheduled job now or postpone it.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::ui::actions::reschedule::Reschedule;
use crate::ui::components::forms::{
    ConfirmDialog, action_button, confirm_dialog_with, hidden, may_post, shortcut,
};
use crate::ui::model::job::JobRow;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::PageRequest;

fn fields(job: &JobRow, request: &PageRequest) -> Vec<(&'static str, String)> {
    let id = vec![("id", job.id.clone()), ("back", request.here())];
    [job.queue_ref.fields(), id].concat()
}

/// Whether the user may reschedule jobs.
pub fn is_allowed() -> bool {
    may_post(Reschedule::PATH)
}

/// The button that makes a scheduled job available now.
fn run_now(job: &JobRow, request: &PageRequest) -> AnyView {
    let fields = [fields(job, request), vec![("after", "0".to_owned())]].concat();
    let about = format!("Run now: job {}", job.id);
    action_button(Reschedule::PATH, fields, "Run now", about)
}

/// The button and the form that change when a scheduled job is due.
fn postpone(job: &JobRow, request: &PageRequest) -> AnyView {
    let input = view! {
        <label for="postpone-after">"Due in (from now)"</label>
        <span class="flex gap-1">
            <input id="postpone-after" name="after" class="flex-1" type="number" step="any" min="0" required autocomplete="off" />
            <select name="unit" class="shrink-0" aria-label="Unit">
                <option value="60">"minutes"</option>
                <option value="3600">"hours"</option>
                <option value="86400">"days"</option>
            </select>
        </span>
    };
    let dialog = ConfirmDialog {
        id: "postpone".to_owned(),
        button: "Postpone…".to_owned(),
        danger: false,
        title: "Change when the job is due".to_owned(),
        text: "The job keeps its place, its priority and its retries.".to_owned(),
        action: Reschedule::PATH,
        fields: fields(job, request),
        confirm_label: "Set due time".to_owned(),
        cancel_label: "Close",
    };
    confirm_dialog_with(dialog, input.into_any())
}

/// The buttons of a job in a list of scheduled jobs. A form for each, or a dialog, would make the page much longer.
pub fn row_buttons(job: &JobRow, request: &PageRequest) -> AnyView {
    let button = |after: &'static str, label: &'static str| {
        let about = format!("{label}: job {}", job.id);
        view! { <button type="submit" class="btn" name="after" value=after aria-label=about>{label}</button> }
    };
    view! {
        <form method="post" action=Reschedule::PATH class="flex justify-end gap-2 max-sm:flex-wrap">
            {hidden(fields(job, request))} {button("0", "Run now")} {button("3600", "Due in 1 h")}
        </form>
    }
    .into_any()
}

/// The buttons of a scheduled job on its page; nothing for other jobs.
pub fn buttons(job: &JobRow, request: &PageRequest) -> AnyView {
    if job.state != EffectiveState::Scheduled {
        return ().into_any();
    }
    let (run_now, postpone) = (run_now(job, request), postpone(job, request));
    view! { {shortcut("", run_now)} {shortcut("", postpone)} }.into_any()
}
