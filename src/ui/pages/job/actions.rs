//! The actions on the page of a job.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::ui::actions::jobs::{
    AddTag, Cancel, MoveJob, Note, Prioritize, TimeOut, Track, UndependAll, Untrack,
};
use crate::ui::actions::manual::{Complete, EDIT_AND_RETRY};
use crate::ui::components::forms::{
    ConfirmDialog, action_button, allowed, confirm_dialog, confirm_dialog_with, hidden, may_post,
    shortcut,
};
use crate::ui::components::reschedule;
use crate::ui::components::tables;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::job::model::JobView;
use crate::ui::urls;

/// The actions for the job in its state.
pub fn actions(job: &JobView, request: &PageRequest) -> AnyView {
    let row = &job.row;
    let retry =
        (row.state == EffectiveState::Failed).then(|| tables::retry_button(&row.id, request));
    let cancel = (row.state != EffectiveState::Complete).then(|| {
        confirm_dialog(ConfirmDialog {
            id: "cancel".to_owned(),
            button: "Cancel…".to_owned(),
            danger: true,
            title: "Cancel this job?".to_owned(),
            text: match &row.worker {
                Some(worker) => format!(
                    "Deletes the job and its history. {worker} is running it and can no longer complete it. You can undo this for 30 s."
                ),
                None => "Deletes the job and its history. You can undo this for 30 s.".to_owned(),
            },
            action: Cancel::PATH,
            fields: vec![
                ("id", row.id.clone()),
                ("back", request.here()),
                ("after", urls::state(&row.queue_ref, row.listed_state())),
            ],
            confirm_label: "Cancel job".to_owned(),
            cancel_label: "Keep job",
        })
    });
    let edit = (row.state == EffectiveState::Failed && may_post(EDIT_AND_RETRY.path))
        .then(|| view! { <a class="btn" href=urls::edit(&row.id)>"Edit and retry…"</a> }.into_any())
        .map(|edit| shortcut("e", edit));
    let complete = (row.state != EffectiveState::Complete)
        .then(|| shortcut("", complete_dialog(job, request)));
    let track = if job.tracked {
        let fields = vec![("id", row.id.clone()), ("back", request.here())];
        action_button(
            Untrack::PATH,
            fields,
            "Untrack",
            format!("Untrack job {}", row.id),
        )
    } else {
        let fields = vec![("id", row.id.clone()), ("back", request.here())];
        action_button(
            Track::PATH,
            fields,
            "Track",
            format!("Track job {}", row.id),
        )
    };
    let time_out = row
        .worker
        .as_ref()
        .map(|worker| time_out(&row.id, worker, request));
    let can_wait = row.state != EffectiveState::Complete && may_post(Prioritize::PATH);
    let priority = can_wait.then(|| shortcut("", priority_form(job, request)));
    let move_form = allowed(MoveJob::PATH, || shortcut("m", move_form(job, request)));
    let clone = may_post("/ui/put")
        .then(|| view! { <a class="btn" href=urls::put_like(&row.id)>"Clone…"</a> });
    let (cancel, track) = (
        cancel.map(|cancel| shortcut("c", cancel)),
        shortcut("t", track),
    );
    let time_out = time_out.map(|time_out| shortcut("", time_out));
    let schedule = reschedule::buttons(row, request);
    view! { {retry} {edit} {schedule} {track} {priority} {move_form} {clone} {time_out} {complete} {cancel} }
        .into_any()
}

/// The button that completes the job without a worker, for admins.
fn complete_dialog(job: &JobView, request: &PageRequest) -> AnyView {
    let row = &job.row;
    let loser = row.worker.as_ref().map_or(String::new(), |worker| {
        format!(" {worker} is running it and will no longer be able to complete it.")
    });
    let undo = if job.dependents.total > 0 {
        " Jobs that depend only on it become available, so this cannot be undone."
    } else {
        " You can undo this for 30 s."
    };
    confirm_dialog(ConfirmDialog {
        id: "complete".to_owned(),
        button: "Complete…".to_owned(),
        danger: false,
        title: "Complete this job?".to_owned(),
        text: format!(
            "The job becomes complete with its payload, and no worker runs it.{loser}{undo}"
        ),
        action: Complete::PATH,
        fields: vec![
            ("id", row.id.clone()),
            ("state", row.state.as_str().to_owned()),
            ("since", job.times.state_since.to_string()),
            ("back", request.here()),
        ],
        confirm_label: "Complete job".to_owned(),
        cancel_label: "Close",
    })
}

fn priority_form(job: &JobView, request: &PageRequest) -> AnyView {
    let effect = match job.row.state {
        _ if job.row.is_timed_out() => {
            "The job stays before all other waiting jobs; the priority applies the next time it waits in its queue."
        }
        EffectiveState::Waiting => "Its position in the queue changes immediately.",
        _ => "The priority applies once the job waits in its queue.",
    };
    let input = view! {
        <label for="priority-value">"Priority"</label>
        <input
            id="priority-value"
            name="priority"
            type="number"
            step="any"
            value=job.row.priority.to_string()
            required
            autocomplete="off"
        />
    };
    let dialog = ConfirmDialog {
        id: "priority".to_owned(),
        button: "Priority…".to_owned(),
        danger: false,
        title: "Change priority".to_owned(),
        text: format!("Lower numbers run first. {effect}"),
        action: Prioritize::PATH,
        fields: vec![("id", job.row.id.clone()), ("back", request.here())],
        confirm_label: "Change".to_owned(),
        cancel_label: "Close",
    };
    confirm_dialog_with(dialog, input.into_any())
}

fn move_form(job: &JobView, request: &PageRequest) -> AnyView {
    let effect = if job.row.state == EffectiveState::Running {
        "The job restarts in that queue with all its retries. The worker that is running it loses it."
    } else {
        "The job restarts in that queue with all its retries."
    };
    let input = view! {
        <label for="move-queue">"Queue"</label>
        <input
            id="move-queue"
            name="queue"
            type="text"
            value=job.row.queue_ref.name.clone()
            required
            maxlength="255"
            autocomplete="off"
        />
    };
    let dialog = ConfirmDialog {
        id: "move".to_owned(),
        button: "Move…".to_owned(),
        danger: false,
        title: "Move job".to_owned(),
        text: effect.to_owned(),
        action: MoveJob::PATH,
        fields: vec![("id", job.row.id.clone()), ("back", request.here())],
        confirm_label: "Move".to_owned(),
        cancel_label: "Close",
    };
    confirm_dialog_with(dialog, input.into_any())
}

fn time_out(id: &str, worker: &str, request: &PageRequest) -> AnyView {
    confirm_dialog(ConfirmDialog {
        id: "time-out".to_owned(),
        button: "Time out…".to_owned(),
        danger: true,
        title: "Time out this job?".to_owned(),
        text: format!(
            "{worker} loses its lease and can no longer complete the job. The job goes before all waiting jobs of its queue and keeps its retries."
        ),
        action: TimeOut::PATH,
        fields: vec![("id", id.to_owned()), ("back", request.here())],
        confirm_label: "Time out job".to_owned(),
        cancel_label: "Close",
    })
}

pub fn remove_dependencies_button(job: &JobView, request: &PageRequest) -> AnyView {
    confirm_dialog(ConfirmDialog {
        id: "remove-dependencies".to_owned(),
        button: "Remove all…".to_owned(),
        danger: false,
        title: "Remove all dependencies?".to_owned(),
        text: "Workers can claim the job immediately, or after its delay, even if the other jobs never complete.".to_owned(),
        action: UndependAll::PATH,
        fields: vec![("id", job.row.id.clone()), ("back", request.here())],
        confirm_label: "Remove dependencies".to_owned(),
        cancel_label: "Keep dependencies",
    })
}

pub fn tag_form(id: &str, request: &PageRequest) -> AnyView {
    let input = view! {
        <label for="tag-name">"Tag"</label>
        <input id="tag-name" name="tag" type="text" required maxlength="255" autocomplete="off" />
    };
    let dialog = ConfirmDialog {
        id: "tag".to_owned(),
        button: "Add tag…".to_owned(),
        danger: false,
        title: "Add tag".to_owned(),
        text: "Jobs with the same tag are listed together across queues.".to_owned(),
        action: AddTag::PATH,
        fields: vec![("id", id.to_owned()), ("back", request.here())],
        confirm_label: "Add".to_owned(),
        cancel_label: "Close",
    };
    confirm_dialog_with(dialog, input.into_any())
}

pub fn note_form(id: &str, request: &PageRequest) -> AnyView {
    if !may_post(Note::PATH) {
        return ().into_any();
    }
    view! {
        <form method="post" action=Note::PATH class="mt-3 grid grid-cols-[auto_minmax(0,1fr)_auto] items-center gap-x-3 gap-y-2 border-t border-line pt-3 max-sm:grid-cols-[minmax(0,1fr)_auto] max-sm:[&>label]:col-span-full">
            {hidden(vec![("id", id.to_owned()), ("back", request.here())])}
            <label for="note">"Note in the job’s history"</label>
            <input id="note" name="message" type="text" required maxlength="1000" autocomplete="off" />
            <button type="submit" class="btn">"Add note"</button>
        </form>
    }
    .into_any()
}
