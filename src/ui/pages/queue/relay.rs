//! The parts of the queue page that are specific to Relay: lists, texts, API calls.

use leptos::prelude::*;

use crate::time;
use crate::ui::components::commands::{api, curl, json_string, shell_quote};
use crate::ui::components::time::ago;
use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::queue::job_table;
use crate::ui::pages::queue::model::QueueView;
use crate::ui::urls::encoding::encode;

/// The stored number of retries for unlimited retries.
pub const UNLIMITED_RETRIES: i64 = i64::MAX;

/// A page of the jobs of a queue in one state.
pub fn list(view: &QueueView, request: &PageRequest) -> AnyView {
    let moment = match view.state {
        EffectiveState::Waiting => "Available",
        EffectiveState::Scheduled => "Run at",
        _ => "Timeout ends",
    };
    let columns = [(moment, "num w-[1%]"), ("Retries left", "num")];
    job_table(view, &columns, "Payload", request, |job| {
        view! {
            <td class="num">{ago(job.state_time, request.now)}</td>
            <td class="num">{retries(job)}</td>
        }
        .into_any()
    })
}

/// The remaining and the total number of retries, as text.
pub fn retries(job: &JobRow) -> String {
    match job.retries {
        UNLIMITED_RETRIES => "unlimited".to_owned(),
        _ => format!("{} of {}", time::number(job.remaining.max(0)), allowed(job)),
    }
}

/// The total number of retries, as text.
pub fn allowed(job: &JobRow) -> String {
    match job.retries {
        UNLIMITED_RETRIES => "unlimited".to_owned(),
        retries => time::number(retries),
    }
}

/// The effect of requeuing, in sentences.
pub fn requeue_effect(queue_ref: &QueueRef, count: i64) -> String {
    if count == 1 {
        format!(
            "Adds the job to {} again with its payload, last state and all retries, to run immediately. If the queue already has a job with the same ID, nothing changes.",
            queue_ref.label()
        )
    } else {
        format!(
            "Adds the jobs to {} again with their payloads, last states and all retries, to run immediately. A job whose ID is already in the queue stays dead.",
            queue_ref.label()
        )
    }
}

/// The text of an empty list.
pub fn nothing(state: EffectiveState) -> &'static str {
    match state {
        EffectiveState::Waiting => {
            "No waiting jobs. Jobs appear here when they are enqueued and leave when a worker claims them."
        }
        EffectiveState::Scheduled => {
            "No scheduled jobs. Jobs whose run_at is in the future appear here."
        }
        EffectiveState::Running => {
            "No running jobs. Jobs appear here when a worker claims them, until it completes them or sends no heartbeat within their timeout."
        }
        EffectiveState::Dead => {
            "No dead jobs. A job can have a limited number of retries. A run that sends no heartbeat within the timeout uses one. When no retries are left, the job is dead-lettered: clients no longer see it, and it stays here for 30 days unless you requeue or delete it."
        }
        EffectiveState::Depends
        | EffectiveState::Stalled
        | EffectiveState::Failed
        | EffectiveState::Complete
        | EffectiveState::Record => "Relay jobs are never in this state.",
    }
}

/// The API calls for what the page shows and does.
pub fn lines(view: &QueueView, request: &PageRequest) -> Vec<(&'static str, String)> {
    let queue_ref = &view.queue.queue_ref;
    let job = |more: &str| {
        let queue = json_string(&queue_ref.name);
        let job = format!(
            r#"[{{"queue": {queue}, "id": "1", "timeout": 30, "max_retries": 3, {more}"payload": {{"hello": "world"}}}}]"#
        );
        enqueue(request, &job)
    };
    vec![
        (
            "Enqueue a job with 3 retries and a heartbeat timeout of 30 s",
            job(""),
        ),
        (
            "Enqueue a job to run later",
            job(r#""run_at": "2030-01-01T00:00:00Z", "#),
        ),
        (
            "Get up to 10 jobs to run",
            call(queue_ref, request, "GET", &["jobs?num_jobs=10"]),
        ),
        ("Get job 1", call(queue_ref, request, "GET", &["jobs", "1"])),
        (
            "Delete job 1 in any state",
            call(queue_ref, request, "DELETE", &["jobs", "1"]),
        ),
    ]
}

/// The API call that enqueues these jobs, given as JSON.
pub fn enqueue(request: &PageRequest, jobs: &str) -> String {
    format!(
        "curl {} -H {} -d {}",
        api(request, "/v2/queues/jobs"),
        shell_quote("Content-Type: application/json"),
        shell_quote(jobs)
    )
}

/// A request to the API of a queue.
pub fn call(queue_ref: &QueueRef, request: &PageRequest, method: &str, rest: &[&str]) -> String {
    let mut path = "/v2/queues/".to_owned();
    encode(&queue_ref.name, &mut path);
    for part in rest {
        path.push('/');
        path.push_str(part);
    }
    curl(request, method, &path)
}
