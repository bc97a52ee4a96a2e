//! The parts of the queue page that are specific to lmstfy: lists, destroying, respawning, API calls.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::time;
use crate::ui::actions::queues::DestroyQueue;
use crate::ui::components::basics::plural;
use crate::ui::components::commands::{api, shell_quote};
use crate::ui::components::forms::{ConfirmDialog, confirm_dialog};
use crate::ui::components::time::ago;
use crate::ui::model::job::JobRow;
use crate::ui::model::queue::QueueRow;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::queue::job_table;
use crate::ui::pages::queue::model::QueueView;
use crate::ui::urls::encoding::segment;

/// The default time to live of a respawned job in seconds, as in lmstfy.
const TTL_S: u32 = 86_400;

/// A page of the jobs of a queue in one state.
pub fn list(view: &QueueView, request: &PageRequest) -> AnyView {
    let moment = match view.state {
        EffectiveState::Waiting => "Available",
        EffectiveState::Scheduled => "Due",
        _ => "TTR ends",
    };
    let columns = [
        (moment, "num w-[1%]"),
        ("Tries left", "num"),
        ("Expires", "num mid"),
    ];
    job_table(view, &columns, "Body", request, |job| {
        view! {
            <td class="num">{ago(job.state_time, request.now)}</td>
            <td class="num">{attempts(job)}</td>
            <td class="num mid">{expiry(job, request.now)}</td>
        }
        .into_any()
    })
}

pub fn attempts(job: &JobRow) -> String {
    let (left, allowed) = job.attempts();
    format!("{left} of {allowed}")
}

/// The end of the job's time to live.
fn expiry(job: &JobRow, now: i64) -> AnyView {
    match job.expires_at {
        Some(moment) => ago(moment, now),
        None => "never".into_any(),
    }
}

/// The button that deletes the ready jobs of a queue, with a confirmation.
pub fn destroy(queue: &QueueRow, request: &PageRequest) -> AnyView {
    let (queue_ref, counts) = (&queue.queue_ref, &queue.counts);
    if counts.waiting == 0 {
        return ().into_any();
    }
    let jobs = plural(counts.waiting, "ready job", "ready jobs");
    confirm_dialog(ConfirmDialog {
        id: "destroy".to_owned(),
        button: "Destroy…".to_owned(),
        danger: true,
        title: format!("Destroy {}? This deletes {jobs}.", queue_ref.label()),
        text: format!(
            "Deletes only the ready (waiting) jobs, permanently. {} New jobs can still be published.",
            kept_jobs(queue)
        ),
        action: DestroyQueue::PATH,
        fields: [queue_ref.fields(), vec![("back", request.here())]].concat(),
        confirm_label: format!("Delete {jobs}"),
        cancel_label: "Keep jobs",
    })
}

/// The jobs that are kept when the queue is destroyed, in words.
fn kept_jobs(queue: &QueueRow) -> String {
    let counts = &queue.counts;
    format!(
        "Scheduled ({}), running ({}) and dead ({}) jobs are not affected.",
        time::number(counts.scheduled),
        time::number(counts.running + counts.stalled),
        time::number(counts.dead)
    )
}

/// The effect of respawning, in sentences.
pub fn respawn_effect(queue_ref: &QueueRef, count: i64) -> String {
    if count == 1 {
        format!(
            "The job moves to the end of {} with one more try.",
            queue_ref.label()
        )
    } else {
        format!(
            "The jobs move to the end of {} with one more try each.",
            queue_ref.label()
        )
    }
}

/// The field for the time to live of respawned jobs. `dialog_id` is the ID of the dialog.
pub fn ttl_field(dialog_id: &str) -> AnyView {
    let (id, help) = (format!("{dialog_id}-ttl"), format!("{dialog_id}-help"));
    view! {
        <div>
            <label for=id.clone()>"New time to live (s)"</label>
            <input
                id=id.clone()
                name="ttl"
                type="number"
                min="0"
                max=u32::MAX.to_string()
                step="1"
                value=TTL_S.to_string()
                required
                autocomplete="off"
                aria-describedby=help.clone()
            />
            <p id=help.clone() class="text-muted wrap-anywhere">"86400 s is one day; 0 means no expiry. The job is deleted when it expires."</p>
        </div>
    }
    .into_any()
}

/// The API calls for what the page shows and does.
pub fn lines(view: &QueueView, request: &PageRequest) -> Vec<(&'static str, String)> {
    let queue_ref = &view.queue.queue_ref;
    let call =
        |method: &str, rest: &str, more: &str| command(queue_ref, request, method, rest, more);
    let data = format!(" --data-binary {}", shell_quote("hello"));
    let mut lines = vec![
        (
            "Publish a job with 3 tries and a time to live of 1 day",
            call("PUT", "?ttl=86400&tries=3", &data),
        ),
        (
            "Consume a job: wait up to 5 s, time to run 120 s",
            call("GET", "?timeout=5&ttr=120", ""),
        ),
        ("Number of ready jobs", call("GET", "/size", "")),
        ("Peek at the next job", call("GET", "/peek", "")),
        (
            "Dead letter: size and oldest job",
            call("GET", "/deadletter", ""),
        ),
    ];
    if view.state == EffectiveState::Dead {
        lines.extend([
            (
                "Respawn the 10 oldest dead jobs with a time to live of 1 day",
                call("PUT", "/deadletter?limit=10&ttl=86400", ""),
            ),
            (
                "Delete the 10 oldest dead jobs",
                call("DELETE", "/deadletter?limit=10", ""),
            ),
        ]);
    } else {
        lines.push((
            "Destroy the queue: delete its ready jobs",
            call("DELETE", "", ""),
        ));
    }
    lines
}

/// A request to the API of a queue, with a token of its namespace.
pub fn command(
    queue_ref: &QueueRef,
    request: &PageRequest,
    method: &str,
    rest: &str,
    more: &str,
) -> String {
    let path = format!(
        "/api/{}/{}{rest}",
        segment(&queue_ref.namespace),
        segment(&queue_ref.name)
    );
    let method = match method {
        "GET" => String::new(),
        other => format!(" -X {other}"),
    };
    let token = shell_quote("X-Token: …");
    format!(
        "curl{method} -H {token} {}{more}",
        shell_quote(&api(request, &path))
    )
}
