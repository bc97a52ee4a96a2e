//! `/ui/workers/{worker}`: one worker and the jobs it holds.

use leptos::prelude::*;
use leptos_meta::Title;

use super::parts::{ago, loaded, many};
use super::tables::{self, JobList};
use super::visit::visit;
use crate::api::read;

#[component]
pub fn WorkerPage() -> impl IntoView {
    let visit = visit();
    loaded(read::worker(visit.name(2)), move |view| {
        let worker = &view.worker;
        view! {
            <Title text=worker.name.clone() />
            <p class="crumb"><a href="/ui/workers">"Workers"</a></p>
            <h1 class="name">{worker.name.clone()}</h1>
            <p class="lead row">
                {tables::pulse(worker, visit.now)} <span>"seen " {ago(worker.last_seen, visit.now)}</span>
                <span>{format!("{} running, {} stalled", worker.running, many(worker.stalled, "job", "jobs"))}</span>
            </p>
            <div class="card">
                {if view.jobs.is_empty() {
                    view! { <p class="empty">"This worker holds no job."</p> }.into_any()
                } else {
                    tables::jobs("Jobs of this worker", JobList::Worker, &view.jobs, &visit)
                }}
            </div>
        }
        .into_any()
    })
}
