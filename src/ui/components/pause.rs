//! Pauses of queues: the chip with its details, the fields of the forms, and the form for several queues.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::time;
use crate::ui::actions::queues::{PauseQueue, PauseQueues, ResumeQueues};
use crate::ui::components::basics::plural;
use crate::ui::components::forms::{
    ConfirmDialog, confirm_dialog_with, hidden, may_post, unit_select,
};
use crate::ui::components::state::paused_chip;
use crate::ui::components::styles::CHOICES;
use crate::ui::components::time::{ago, exact};
use crate::ui::model::queue::{PauseDetails, QueueRow};
use crate::ui::model::queue_ref::Protocol;
use crate::ui::page_request::PageRequest;
use crate::ui::urls;

/// The ID of the form of the checkboxes in the list of queues.
const SELECTION_FORM: &str = "pause-several";

/// The ID of the form of the buttons in the rows of the list.
const ROW_FORM: &str = "pause-row";

/// The label of a paused queue, and in the next line who paused it, when it resumes, and the reason.
pub fn chip(pause: &PauseDetails, now: i64) -> AnyView {
    let details = (!pause.is_plain()).then(|| {
        view! { <span class="line-clamp-2 text-xs leading-4 text-muted wrap-anywhere">{details(pause, now)}</span> }
    });
    view! { {paused_chip()} {details} }.into_any()
}

/// Who paused a queue, when it resumes, and the reason, with a time that the browser updates.
/// [`PauseDetails::words`] is the same as plain text.
pub fn details(pause: &PauseDetails, now: i64) -> AnyView {
    let by = (!pause.by.is_empty()).then(|| format!("by {}", pause.by));
    let until = pause
        .until
        .map(|until| view! { "resumes " {ago(until, now)} });
    let reason = (!pause.reason.is_empty()).then(|| pause.reason.to_string());
    let dot = |both: bool| both.then_some(" · ");
    let (with_until, with_reason) = (until.is_some(), reason.is_some());
    view! {
        {by.clone()} {dot(by.is_some() && with_until)} {until}
        {dot((by.is_some() || with_until) && with_reason)} {reason}
    }
    .into_any()
}

/// When, by whom and why a queue has been paused, and when it resumes, as sentences.
pub fn sentences(pause: &PauseDetails, now: i64) -> AnyView {
    let since = pause.since.map(|since| view! { " " {ago(since, now)} });
    let by = (!pause.by.is_empty()).then(|| format!(" by {}", pause.by));
    let began = (since.is_some() || by.is_some()).then(|| view! { " Paused" {since} {by} "." });
    let reason = (!pause.reason.is_empty())
        .then(|| view! { " Reason: " <strong>{pause.reason.to_string()}</strong> });
    let until = pause
        .until
        .map(|until| view! { " It resumes at " {exact(until)} ", " {ago(until, now)} "." });
    view! { {began} {until} {reason} }.into_any()
}

/// The fields of a pause: reason, and end as a duration or a time.
fn inputs(id: &str, pause: &PauseDetails) -> AnyView {
    let field = |name: &str| format!("{id}-{name}");
    let until = pause.until.map(|until| {
        let until = time::iso(until);
        until.get(..16).unwrap_or_default().to_owned()
    });
    view! {
        <div>
            <label for=field("reason")>"Reason (optional)"</label>
            <input id=field("reason") name="reason" type="text" value=pause.reason.to_string() maxlength="500" autocomplete="off" />
        </div>
        <div class="mt-2">
            <label for=field("duration")>"Resume after (optional)"</label>
            <span class="flex gap-1">
                <input id=field("duration") name="duration" class="flex-1" type="number" step="any" min="0" autocomplete="off" />
                {unit_select()}
            </span>
        </div>
        <div class="mt-2">
            <label for=field("until")>"Or resume at (UTC, optional)"</label>
            <input id=field("until") name="until" type="datetime-local" value=until autocomplete="off" />
        </div>
    }
    .into_any()
}

/// The button and the form to pause a queue with a reason or until a time, or to change both.
pub fn dialog(queue: &QueueRow, request: &PageRequest) -> AnyView {
    let (button, title, confirm) = if queue.paused {
        ("Change pause…", "Change the pause", "Change pause")
    } else {
        (
            "Pause with a reason or end time…",
            "Pause the queue",
            "Pause queue",
        )
    };
    let dialog = ConfirmDialog {
        id: "pause".to_owned(),
        button: button.to_owned(),
        danger: false,
        title: title.to_owned(),
        text: "Workers get no jobs from the queue until it resumes. Without a duration or a time, it stays paused until someone resumes it.".to_owned(),
        action: PauseQueue::PATH,
        fields: [queue.queue_ref.fields(), vec![("back", request.here())]].concat(),
        confirm_label: confirm.to_owned(),
        cancel_label: "Close",
    };
    confirm_dialog_with(dialog, inputs("pause", &queue.pause))
}

/// Whether the user may pause queues from the list.
pub fn may_select() -> bool {
    may_post(PauseQueues::PATH)
}

/// The form for several queues, and the form of the buttons in the rows. `n` queues match the filter, whose fields are
/// `filter`.
pub fn several(n: i64, filter: Vec<(&'static str, String)>, request: &PageRequest) -> AnyView {
    if !may_select() || n == 0 {
        return ().into_any();
    }
    let is_filtered = filter.iter().any(|(_, value)| !value.is_empty());
    let all = format!(
        "all {}{}",
        plural(n, "queue", "queues"),
        if is_filtered { " that match" } else { "" }
    );
    let fields = [filter, vec![("back", request.here())]].concat();
    view! {
        <form id=ROW_FORM method="post" action=PauseQueues::PATH>{hidden(vec![("back", request.here())])}</form>
        <div class=CHOICES>
            <button type="button" class="btn" popovertarget="several">"Pause or resume several…"</button>
            <div id="several" class="dialog" popover="auto" role="dialog" aria-labelledby="several-title">
                <h2 id="several-title">"Pause or resume queues"</h2>
                <p>"Workers get no jobs from paused queues. Jobs can still be added, and running jobs continue. Jobq queues cannot be paused."</p>
                <form id=SELECTION_FORM method="post" action=PauseQueues::PATH>
                    {hidden(fields)}
                    <div class="mb-2">
                        <label for="several-of">"Queues"</label>
                        <select id="several-of" name="of">
                            <option value="selected">"the selected queues"</option>
                            <option value="all">{all}</option>
                        </select>
                    </div>
                    {inputs("several", &PauseDetails::default())}
                    <div>
                        <button type="submit" class="btn btn-strong">"Pause queues"</button>
                        <button type="submit" class="btn" formaction=ResumeQueues::PATH>"Resume queues"</button>
                        <button type="button" class="btn" popovertarget="several" popovertargetaction="hide">"Close"</button>
                    </div>
                </form>
            </div>
        </div>
    }
    .into_any()
}

/// The cell with the checkbox of a queue.
pub fn checkbox(queue: &QueueRow) -> AnyView {
    let queue_ref = &queue.queue_ref;
    let input = (queue_ref.protocol != Protocol::Jobq).then(|| {
        let about = format!("Select queue {}", queue_ref.label());
        view! { <input type="checkbox" name="queues[]" value=urls::queue_param(queue_ref) form=SELECTION_FORM aria-label=about /> }
    });
    view! { <td class="check-cell">{input}</td> }.into_any()
}

/// The cell with the button that pauses or resumes a queue.
pub fn row_button(queue: &QueueRow) -> AnyView {
    let queue_ref = &queue.queue_ref;
    let (word, action) = if queue.paused {
        ("Resume", Some(ResumeQueues::PATH))
    } else {
        ("Pause", None)
    };
    let button = (queue_ref.protocol != Protocol::Jobq).then(|| {
        let about = format!("{word} {}", queue_ref.label());
        view! { <button type="submit" class="btn" form=ROW_FORM name="only" value=urls::queue_param(queue_ref) formaction=action aria-label=about>{word}</button> }
    });
    view! { <td class="text-right mid">{button}</td> }.into_any()
}
