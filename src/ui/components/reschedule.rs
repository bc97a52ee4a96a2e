//! Buttons that run a scheduled job now or postpone it.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::ui::actions::reschedule::Reschedule;
use crate::ui::components::forms::{
    ConfirmDialog, action_button, confirm_dialog_with, may_post, row_button, row_form, shortcut,
    unit_select,
};
use crate::ui::model::job::JobRow;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::PageRequest;
use crate::ui::urls;

fn fields(job: &JobRow, request: &PageRequest) -> Vec<(&'static str, String)> {
    let job = urls::job_param(&job.queue_ref, &job.id);
    vec![("job", job), ("back", request.here())]
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
            {unit_select()}
        </span>
    };
    let dialog = ConfirmDialog {
        id: "postpone".to_owned(),
        button: "Change due time…".to_owned(),
        danger: false,
        title: "Change when the job is due".to_owned(),
        text: "The job keeps its queue, its priority and its retries.".to_owned(),
        action: Reschedule::PATH,
        fields: fields(job, request),
        confirm_label: "Set due time".to_owned(),
        cancel_label: "Close",
    };
    confirm_dialog_with(dialog, input.into_any())
}

/// The ID of the form of each button of a row, its delay in seconds, and its label.
const ROW_BUTTONS: [(&str, &str, &str); 2] =
    [("now", "0", "Run now"), ("later", "3600", "Set due in 1 h")];

/// The forms of [`row_buttons`].
pub fn row_forms(request: &PageRequest) -> AnyView {
    let form = |(id, after, _): (&'static str, &str, &str)| {
        let fields = vec![("after", after.to_owned()), ("back", request.here())];
        row_form(id, Reschedule::PATH, fields)
    };
    ROW_BUTTONS.map(form).collect_view().into_any()
}

/// The buttons of a job in a list of scheduled jobs.
pub fn row_buttons(job: &JobRow) -> AnyView {
    let button = |(form, _, label): (&'static str, &str, &'static str)| {
        let value = urls::job_param(&job.queue_ref, &job.id);
        let about = format!("{label}: job {}", job.id);
        row_button(form, ("job", value), label, about, None)
    };
    view! { <span class="flex justify-end gap-2 max-sm:flex-wrap">{ROW_BUTTONS.map(button).collect_view()}</span> }
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
