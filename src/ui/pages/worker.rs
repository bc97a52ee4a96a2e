//! `/ui/workers/{worker}`: one worker and its claimed jobs.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::ui::actions::workers::ForgetWorker;
use crate::ui::components::basics::{empty_note, loaded, plural};
use crate::ui::components::bulk::{self, BulkBar};
use crate::ui::components::exports::search_and_exports;
use crate::ui::components::forms::{ConfirmDialog, confirm_dialog};
use crate::ui::components::styles::{CARD, CRUMB};
use crate::ui::components::tables::{
    self,
    job_list::{self, JobList},
};
use crate::ui::components::time::ago;
use crate::ui::components::worker_results;
use crate::ui::model::operation::JobActionKind;
use crate::ui::model::state::EffectiveState;
use crate::ui::model::worker::{WorkerActivity, WorkerRow};
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::search::model::in_quotes;

#[component]
pub fn WorkerPage() -> impl IntoView {
    let request = page_request();
    loaded(load::worker(request.name(2)), move |view| {
        let worker = &view.worker;
        let search = format!("worker:{}", in_quotes(&worker.name));
        let bar = BulkBar {
            search: Some(&search),
            all: Some(worker.running.saturating_add(worker.stalled)),
            shown: view.jobs.len(),
            actions: bulk::actions_of(None, Some(EffectiveState::Running)),
        };
        view! {
            <Title text=worker.name.clone() />
            <p class=CRUMB><a href="/ui/workers">"Workers"</a></p>
            <div class="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
                <h1 class="name">{worker.name.clone()}</h1>
                <div class="flex flex-wrap items-center gap-2">
                    {(!view.jobs.is_empty()).then(|| bulk::link_for_all(JobActionKind::TimeOut, &search, "Time out all jobs…", &request))}
                    {(worker.activity(request.now) == WorkerActivity::Silent).then(|| forget(worker, &request))}
                </div>
            </div>
            <p class="-mt-3 flex flex-wrap items-center gap-2 text-muted wrap-anywhere">
                {tables::activity_chip(worker, request.now)} <span>"last seen " {ago(worker.last_seen, request.now)}</span>
                <span>{format!("{} running, {} stalled", plural(worker.running, "job", "jobs"), worker.stalled)}</span>
            </p>
            <div class=CARD>
                {bulk::bar(bar, &request)}
                {if view.jobs.is_empty() {
                    empty_note("This worker has no leases.")
                } else {
                    job_list::jobs("Jobs of this worker", JobList::Worker, &view.jobs, &request)
                }}
            </div>
            {(!view.jobs.is_empty()).then(|| search_and_exports(&search))}
            {(!view.queues.listed.is_empty()).then(|| view! { <p>"In the last hour: " {worker_results::summary(&view.results)}</p> })}
            {worker_results::run_times(&view.run_bars, &view.results)}
            {worker_results::queues(&view.queues, request.now)}
        }
        .into_any()
    })
}

/// The button that removes the worker from the lists. Only for inactive workers, because an active worker would
/// reappear at once.
fn forget(worker: &WorkerRow, request: &PageRequest) -> AnyView {
    let leases = match worker.running + worker.stalled {
        0 => String::new(),
        1 => " Its lease stays valid until another worker claims the job.".to_owned(),
        n => format!(
            " Its {} stay valid until another worker claims the jobs.",
            plural(n, "lease", "leases"),
        ),
    };
    confirm_dialog(ConfirmDialog {
        id: "forget".to_owned(),
        button: "Forget…".to_owned(),
        danger: false,
        title: "Forget this worker?".to_owned(),
        text: format!(
            "Hides the worker from the lists until it tries to claim a job or sends a heartbeat.{leases}"
        ),
        action: ForgetWorker::PATH,
        fields: vec![
            ("worker", worker.name.clone()),
            ("back", request.here()),
            ("after", "/ui/workers".to_owned()),
        ],
        confirm_label: "Forget worker".to_owned(),
        cancel_label: "Keep worker",
    })
}
